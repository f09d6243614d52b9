"""Linear-chain CRFs on tensors of log-potentials: partition function, marginals, best path.

The log-potentials (batch, length, from, to) hold everything: entry (i, j) of step t is what it adds
to a path's score to go from tag i to tag j there, with the emission of j, the start scores (row 0
of the first real step, all paths come from state 0) and the end scores. A step of padding is the
identity: it keeps the tag at no cost, so that masks of any shape need no further care. Every score
is finite; what is forbidden costs so much that its probability is 0 in float32.

Source: https://repository.upenn.edu/cis_papers/159 (Lafferty, McCallum, Pereira 2001), section 3.
"""

import contextlib

from keras import ops

from kerasattn.ops import crf_chain, crf_sums
from kerasattn.ops.crf_sums import FORBIDDEN, PADDING
from kerasattn.ops.rows import take_each


def log_potentials(
    emissions, transitions, start_scores=None, end_scores=None, padding_mask=None, normalize=False
):
    """Folds all scores of a chain into one tensor, in float32.

    The tensor also remembers what it was made of, as Keras' softmax does: given to
    `negative_log_likelihood` as it is, the loss is several times as fast. Its gradient then goes
    straight to the scores, past the potentials.

    Args:
        emissions: float (batch, length, num_tags); what is below FORBIDDEN, -inf too, counts as it.
        transitions: float (num_tags, num_tags), from row to column.
        start_scores, end_scores: float (num_tags,), of the first and the last real step; None for
            zeros.
        padding_mask: bool (batch, length), True = real, with holes and empty rows if need be; a
            path goes from one real step to the next. None for all real.
        normalize: bool, whether each row is made a distribution of the next tag (MEMM).

    Shapes:
        -> float32 (batch, length, num_tags, num_tags).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import crf
    >>> emissions = np.array([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]])
    >>> transitions = np.array([[0.5, -0.5], [-0.5, 0.5]])
    >>> potentials = crf.log_potentials(emissions, transitions)
    >>> round(float(crf.log_partition(potentials)[0]), 4)
    4.7877
    """
    scores = ops.maximum(ops.cast(emissions, "float32"), FORBIDDEN)
    if padding_mask is None:
        padding_mask = ops.ones_like(scores[..., 0], dtype="bool")
    padding_mask = ops.cast(padding_mask, "bool")
    count = ops.cumsum(ops.cast(padding_mask, "int32"), axis=1)
    is_first = padding_mask & (count == 1)
    is_last = padding_mask & (count == count[:, -1:])
    for where, bound in ((is_first, start_scores), (is_last, end_scores)):
        if bound is not None:
            scores = scores + ops.where(where[..., None], ops.cast(bound, "float32"), 0.0)
    chain = crf_chain.Chain(scores, ops.cast(transitions, "float32"), padding_mask, is_first)
    if normalize:
        return crf_sums.potentials_of(
            scores, chain.transitions, padding_mask, is_first, normalize=True
        )
    potentials = chain.potentials()
    with contextlib.suppress(AttributeError):  # JAX's tensors have no room for it
        potentials._kerasattn_chain = chain
    return potentials


def real_steps(potentials):
    """Which steps are no padding: (batch, length, from, to) -> bool (batch, length).

    Of a single tag they can't be told apart, nor need they: all count as real.
    """
    if potentials.shape[-1] == 1:
        return ops.ones_like(potentials[..., 0, 0], dtype="bool")
    return potentials[..., 0, 1] > PADDING / 2


def log_partition(potentials):
    """The log of the sum over all paths of e^score: (batch, length, from, to) -> (batch,)."""
    return crf_sums.partition_beyond(potentials, ops.zeros_like(potentials[..., 0, 0]))


def negative_log_likelihood(potentials, tags):
    """-log of the probability of the paths through `tags`, never below 0.

    Path and partition are compared step by step, so that nothing of a small loss is lost in the
    rounding of two long sums. Empty rows have loss 0, and rows with a tag that there is not, NaN.

    Args:
        potentials: float (batch, length, from, to).
        tags: int (batch, length) in [0, num_tags); at padding anything.

    Shapes:
        -> float32 (batch,), in nats.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import crf
    >>> emissions = np.array([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]])
    >>> potentials = crf.log_potentials(emissions, np.array([[0.5, -0.5], [-0.5, 0.5]]))
    >>> round(float(crf.negative_log_likelihood(potentials, np.array([[0, 1, 0]]))[0]), 5)
    1.78768
    """
    num_tags = potentials.shape[-1]
    chain = getattr(potentials, "_kerasattn_chain", None) if num_tags > 1 else None
    real = real_steps(potentials) if chain is None else chain.padding_mask
    given = ops.cast(tags, "int32")
    tags = ops.clip(given, 0, num_tags - 1)
    wrong = ops.any(ops.logical_and(real, ops.not_equal(given, tags)), axis=1)
    if chain is None:
        loss = crf_sums.partition_beyond(potentials, path_scores(potentials, tags))
    else:
        previous, tags = _along(tags, ops.cast(real, "int32"))
        loss = crf_chain.negative_log_likelihood(chain, previous, tags)
    loss = ops.maximum(loss, 0.0)
    # Of a single tag padding is not told apart: anything may stand there.
    return ops.where(wrong, float("nan"), loss) if num_tags > 1 else loss


def path_scores(potentials, tags):
    """What each step adds to the score of the path through `tags`: float32 (batch, length).

    Args:
        potentials: float (batch, length, from, to).
        tags: int (batch, length) in [0, num_tags); at padding anything.
    """
    num_tags = potentials.shape[-1]
    real = ops.cast(real_steps(potentials), "int32")
    # Of a single tag padding is not told apart, but there is one path only.
    previous, tags = _along(tags, real) if num_tags > 1 else [ops.zeros_like(real)] * 2
    shape = ops.shape(tags)
    flat = ops.reshape(ops.cast(potentials, "float32"), (*shape, num_tags * num_tags))
    return ops.take_along_axis(flat, (previous * num_tags + tags)[..., None], axis=-1)[..., 0]


def marginals(potentials):
    """The probability of each tag at each step: float32 (batch, length, num_tags).

    At padding they are those of the last real step before it.
    """
    _, alphas = crf_sums.forward(potentials)
    _, tags = crf_sums.backward(potentials, alphas)
    return ops.transpose(tags, (1, 0, 2))


def viterbi(potentials):
    """The best path and its score.

    Args:
        potentials: float (batch, length, from, to).

    Returns:
        tags int32 (batch, length), 0 at padding, and scores float32 (batch,).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import crf
    >>> emissions = np.array([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]])
    >>> potentials = crf.log_potentials(emissions, np.array([[0.5, -0.5], [-0.5, 0.5]]))
    >>> tags, scores = crf.viterbi(potentials)
    >>> [int(tag) for tag in tags[0]], float(scores[0])
    ([0, 0, 0], 4.0)
    """
    potentials = ops.cast(potentials, "float32")
    steps = ops.transpose(potentials, (1, 0, 2, 3))  # (length, batch, from, to)

    def advance(best, step):  # (batch, from), relative to the best of all, so that none grows
        best = ops.max(best[:, :, None] + step, axis=1)  # (batch, to)
        best = best - ops.max(best, axis=-1, keepdims=True)
        return best, best

    start = crf_sums.start(potentials)
    last, best = ops.scan(advance, start, steps)
    before = ops.concatenate([start[None], best[:-1]], axis=0)
    pointers = ops.argmax(before[..., None] + steps, axis=2)  # (length, batch, to)

    def retreat(tag, pointers):
        return take_each(pointers, tag[:, None])[:, 0], tag

    last = ops.cast(ops.argmax(last, axis=-1), "int32")
    _, tags = ops.scan(retreat, last, ops.cast(pointers, "int32"), reverse=True)
    tags = ops.transpose(tags, (1, 0)) * ops.cast(real_steps(potentials), "int32")
    return tags, ops.sum(path_scores(potentials, tags), axis=1)


def _along(tags, real):
    """The tag of the last real step before each, and each step's own; padding keeps the tag."""
    tags = ops.cast(tags, "int32") * real
    previous = _previous(tags, real)
    return previous, ops.where(real > 0, tags, previous)


def _previous(tags, real):
    """The tag of the last real step before each, 0 before the first: (batch, length)."""
    # Real steps in front, in their order; the number of real steps before t is then where to look.
    place = ops.cumsum(ops.ones_like(real), axis=1)
    order = ops.argsort(place - real * ops.shape(real)[1], axis=1)
    compact = ops.take_along_axis(tags, order, axis=1)
    compact = ops.pad(compact, [[0, 0], [1, 0]])
    return ops.take_along_axis(compact, ops.cumsum(real, axis=1) - real, axis=1)
