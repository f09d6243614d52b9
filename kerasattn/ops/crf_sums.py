"""The sums over all paths of a CRF, in log space, on log-potentials; see `ops.crf`."""

from keras import ops

FORBIDDEN = -1e9  # the score of what must not be
PADDING = -1e30  # off the diagonal of a step of padding, which nothing else reaches


def matrices(x):
    """(batch, length) to broadcast with (batch, length, from, to)."""
    return x[:, :, None, None]


def potentials_of(scores, transitions, padding_mask, is_first, normalize=False):
    """The log-potentials of a chain, float32 (batch, length, num_tags, num_tags).

    Args:
        scores: float32 (batch, length, num_tags), of the tag of each step alone.
        transitions: float32 (num_tags, num_tags).
        padding_mask: bool (batch, length), True = real.
        is_first: bool (batch, length), the first real step, which all paths reach from tag 0.
        normalize: bool, whether each row is made a distribution of the next tag.
    """
    num_tags = scores.shape[-1]
    starts = ops.where(ops.eye(num_tags, 1, dtype="float32") > 0, 0.0, FORBIDDEN)  # (from, 1)
    steps = ops.where(matrices(is_first), starts, transitions)
    potentials = steps + scores[:, :, None, :]
    if normalize:
        possible = potentials > FORBIDDEN / 2
        potentials = ops.where(possible, ops.log_softmax(potentials, axis=-1), FORBIDDEN)
    identity = ops.where(ops.eye(num_tags, dtype="float32") > 0, 0.0, PADDING)
    return ops.where(matrices(padding_mask), potentials, identity)


def start(potentials):
    """Log-probabilities before the first step: tag 0 is certain. (batch, num_tags)."""
    row = ops.zeros_like(ops.sum(potentials[:, :1, 0], axis=1))
    return row + ops.where(ops.arange(potentials.shape[-1]) == 0, 0.0, PADDING)


def forward(potentials):
    """Filtered log-probabilities of each tag, before and after they are normalized.

    Returns:
        raw (length, batch, num_tags), whose log-sum-exp is the growth of the partition function,
        and what was there before each step, (length + 1, batch, num_tags).
    """
    steps = ops.transpose(ops.cast(potentials, "float32"), (1, 0, 2, 3))

    def advance(alpha, step):
        raw = ops.logsumexp(alpha[:, :, None] + step, axis=1)  # (batch, to)
        return raw - ops.logsumexp(raw, axis=-1, keepdims=True), raw

    first = start(potentials)
    _, raw = ops.scan(advance, first, steps)
    alphas = raw - ops.logsumexp(raw, axis=-1, keepdims=True)
    return raw, ops.concatenate([first[None], alphas], axis=0)


def backward(potentials, alphas):
    """Probabilities of each pair of tags (length, batch, from, to), and of each tag."""
    steps = ops.transpose(ops.cast(potentials, "float32"), (1, 0, 2, 3))
    # Where a path came from, given where it is: rows that sum to 1 whatever is impossible.
    origins = ops.softmax(alphas[:-1, :, :, None] + steps, axis=2)

    def retreat(tags, origin):  # (batch, to), (batch, from, to)
        return ops.matmul(origin, tags[..., None])[..., 0], tags

    _, tags = ops.scan(retreat, ops.softmax(alphas[-1], axis=-1), origins, reverse=True)
    return origins * tags[:, :, None, :], tags


def growth_beyond(potentials, scores):
    """The value of `partition_beyond`, and the alphas of `forward`."""
    # Off a forbidden step nothing is taken before the sum: the others would be lost in rounding.
    taken = ops.where(scores > FORBIDDEN / 2, scores, 0.0)
    raw, alphas = forward(potentials - matrices(taken))
    growth = ops.sum(ops.logsumexp(raw, axis=-1), axis=0)  # of (length, batch)
    return growth + ops.sum(taken - scores, axis=1), alphas


def partition_beyond(potentials, scores):
    """The log of the sum over all paths, minus the sum of `scores` (batch, length).

    The scores are taken off step by step. Its gradient is written out: forward and backward
    probabilities are normalized at each step, and the loops need not be differentiated.
    """

    @ops.custom_gradient
    def beyond(potentials, scores):
        value, alphas = growth_beyond(potentials, scores)

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            pairs, _ = backward(potentials, alphas)
            pairs = ops.transpose(pairs, (1, 0, 2, 3))
            by_score = -upstream[:, None] * ops.ones_like(scores)
            return matrices(upstream[:, None]) * pairs, by_score

        return value, gradient

    return beyond(ops.cast(potentials, "float32"), scores)
