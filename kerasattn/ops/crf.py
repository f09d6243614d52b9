"""Linear-chain CRFs on tensors of log-potentials: partition function, marginals, best path.

The log-potentials (batch, length, from, to) hold everything: entry (i, j) of step t is what it adds
to a path's score to go from tag i to tag j there, with the emission of j, the start scores (row 0
of the first real step, all paths come from state 0) and the end scores. A step of padding is the
identity: it keeps the tag at no cost, so that masks of any shape need no further care. Every score
is finite; what is forbidden costs so much that its probability is 0 in float32.

Source: https://repository.upenn.edu/cis_papers/159 (Lafferty, McCallum, Pereira 2001), section 3.
"""

from keras import ops

FORBIDDEN = -1e9  # the score of what must not be
PADDING = -1e30  # off the diagonal of a step of padding, which nothing else reaches


def log_potentials(
    emissions, transitions, start_scores=None, end_scores=None, padding_mask=None, normalize=False
):
    """Folds all scores of a chain into one tensor, in float32.

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
    emissions = ops.maximum(ops.cast(emissions, "float32"), FORBIDDEN)
    num_tags = emissions.shape[-1]
    from_start = ops.eye(num_tags, 1, dtype="float32") > 0  # (from, 1): state 0 alone
    starts = 0.0 if start_scores is None else ops.cast(start_scores, "float32")
    starts = ops.where(from_start, starts, FORBIDDEN)  # (from, to)

    if padding_mask is None:
        padding_mask = ops.ones_like(emissions[..., 0], dtype="bool")
    real = ops.cast(padding_mask, "int32")
    count = ops.cumsum(real, axis=1)
    is_first = padding_mask & (count == 1)
    is_last = padding_mask & (count == count[:, -1:])

    steps = ops.where(_matrices(is_first), starts, ops.cast(transitions, "float32"))
    potentials = steps + emissions[:, :, None, :]
    if end_scores is not None:
        ends = ops.cast(end_scores, "float32")
        potentials = potentials + ops.where(_matrices(is_last), ends, 0.0)
    if normalize:
        possible = potentials > FORBIDDEN / 2
        potentials = ops.where(possible, ops.log_softmax(potentials, axis=-1), FORBIDDEN)
    identity = ops.where(ops.eye(num_tags, dtype="float32") > 0, 0.0, PADDING)
    return ops.where(_matrices(padding_mask), potentials, identity)


def real_steps(potentials):
    """Which steps are no padding: (batch, length, from, to) -> bool (batch, length).

    Of a single tag they can't be told apart, nor need they: all count as real.
    """
    if potentials.shape[-1] == 1:
        return ops.ones_like(potentials[..., 0, 0], dtype="bool")
    return potentials[..., 0, 1] > PADDING / 2


def log_partition(potentials):
    """The log of the sum over all paths of e^score: (batch, length, from, to) -> (batch,)."""
    return _partition_beyond(potentials, ops.zeros_like(potentials[..., 0, 0]))


def negative_log_likelihood(potentials, tags):
    """-log of the probability of the paths through `tags`, never below 0.

    Path and partition are compared step by step, so that nothing of a small loss is lost in the
    rounding of two long sums. Empty rows have loss 0.

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
    loss = _partition_beyond(potentials, path_scores(potentials, tags))
    return ops.maximum(loss, 0.0)


def path_scores(potentials, tags):
    """What each step adds to the score of the path through `tags`: float32 (batch, length).

    Args:
        potentials: float (batch, length, from, to).
        tags: int (batch, length) in [0, num_tags); at padding anything.
    """
    num_tags = potentials.shape[-1]
    real = ops.cast(real_steps(potentials), "int32")
    # Of a single tag padding is not told apart, but there is one path only.
    tags = ops.cast(tags, "int32") * (real if num_tags > 1 else 0)
    previous = _previous(tags, real)
    tags = ops.where(real > 0, tags, previous)  # padding keeps the tag
    shape = ops.shape(tags)
    flat = ops.reshape(ops.cast(potentials, "float32"), (*shape, num_tags * num_tags))
    return ops.take_along_axis(flat, (previous * num_tags + tags)[..., None], axis=-1)[..., 0]


def marginals(potentials):
    """The probability of each tag at each step: float32 (batch, length, num_tags).

    At padding they are those of the last real step before it.
    """
    _, alphas = _forward(potentials)
    _, tags = _backward(potentials, alphas)
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

    start = _start(potentials)
    last, best = ops.scan(advance, start, steps)
    before = ops.concatenate([start[None], best[:-1]], axis=0)
    pointers = ops.argmax(before[..., None] + steps, axis=2)  # (length, batch, to)

    def retreat(tag, pointers):
        return ops.take_along_axis(pointers, tag[:, None], axis=1)[:, 0], tag

    last = ops.cast(ops.argmax(last, axis=-1), "int32")
    _, tags = ops.scan(retreat, last, ops.cast(pointers, "int32"), reverse=True)
    tags = ops.transpose(tags, (1, 0)) * ops.cast(real_steps(potentials), "int32")
    return tags, ops.sum(path_scores(potentials, tags), axis=1)


def _matrices(x):
    """(batch, length) to broadcast with (batch, length, from, to)."""
    return x[:, :, None, None]


def _start(potentials):
    """Log-probabilities before the first step: state 0 is certain. (batch, num_tags)."""
    row = ops.zeros_like(ops.sum(potentials[:, :1, 0], axis=1))  # of no step too
    return row + ops.where(ops.arange(potentials.shape[-1]) == 0, 0.0, PADDING)


def _previous(tags, real):
    """The tag of the last real step before each, 0 before the first: (batch, length)."""
    # Real steps in front, in their order; the number of real steps before t is then where to look.
    place = ops.cumsum(ops.ones_like(real), axis=1)
    order = ops.argsort(place - real * ops.shape(real)[1], axis=1)
    compact = ops.take_along_axis(tags, order, axis=1)
    compact = ops.pad(compact, [[0, 0], [1, 0]])
    return ops.take_along_axis(compact, ops.cumsum(real, axis=1) - real, axis=1)


def _partition_beyond(potentials, scores):
    """log_partition minus the sum of `scores` (batch, length), which are taken off step by step.

    Its gradient is written out: forward and backward probabilities are normalized at each step,
    and the loops need not be differentiated.
    """

    @ops.custom_gradient
    def beyond(potentials, scores):
        raw, alphas = _forward(potentials - _matrices(scores))
        # (length, batch): the growth of the sum over all paths, beyond the scores
        value = ops.sum(ops.logsumexp(raw, axis=-1), axis=0)

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            pairs, _ = _backward(potentials, alphas)
            pairs = ops.transpose(pairs, (1, 0, 2, 3))
            by_score = -upstream[:, None] * ops.ones_like(scores)
            return _matrices(upstream[:, None]) * pairs, by_score

        return value, gradient

    return beyond(ops.cast(potentials, "float32"), scores)


def _forward(potentials):
    """Filtered log-probabilities of each tag, before and after they are normalized.

    Returns:
        raw (length, batch, num_tags), whose log-sum-exp is the growth of the partition function,
        and what was there before each step, (length + 1, batch, num_tags).
    """
    steps = ops.transpose(ops.cast(potentials, "float32"), (1, 0, 2, 3))

    def advance(alpha, step):
        raw = ops.logsumexp(alpha[:, :, None] + step, axis=1)  # (batch, to)
        return raw - ops.logsumexp(raw, axis=-1, keepdims=True), raw

    start = _start(potentials)
    _, raw = ops.scan(advance, start, steps)
    alphas = raw - ops.logsumexp(raw, axis=-1, keepdims=True)
    return raw, ops.concatenate([start[None], alphas], axis=0)


def _backward(potentials, alphas):
    """Probabilities of each pair of tags (length, batch, from, to), and of each tag."""
    steps = ops.transpose(ops.cast(potentials, "float32"), (1, 0, 2, 3))
    # Where a path came from, given where it is: rows that sum to 1 whatever is impossible.
    origins = ops.softmax(alphas[:-1, :, :, None] + steps, axis=2)

    def retreat(tags, origin):  # (batch, to), (batch, from, to)
        return ops.matmul(origin, tags[..., None])[..., 0], tags

    _, tags = ops.scan(retreat, ops.softmax(alphas[-1], axis=-1), origins, reverse=True)
    return origins * tags[:, :, None, :], tags
