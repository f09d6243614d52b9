"""The recursions of hidden Markov models, with everything finite and the length first.

`parts` makes of a chain and its emissions what all of them take. Here `filtered` is
log p(state | observations up to it), (length, batch, N).
"""

import math

from keras import ops

IMPOSSIBLE = -1e30  # in the place of -inf
NEVER = -1e20  # what is below is the score of something impossible
SAFE = 1e-26  # probabilities below are left to log-space


def finite(x):
    return ops.maximum(ops.cast(x, "float32"), IMPOSSIBLE)


def parts(log_initial, log_transitions, log_emissions, padding_mask):
    """Everything finite; emissions, and which steps are the first and real ones, length first."""
    emissions = ops.transpose(finite(log_emissions), (1, 0, 2))
    if padding_mask is None:
        real = ops.ones_like(emissions[..., :1], dtype="bool")  # (length, batch, 1)
    else:
        real = ops.transpose(ops.cast(padding_mask, "bool"), (1, 0))[..., None]
    first = real & (ops.cumsum(ops.cast(real, "int32"), axis=0) == 1)
    return finite(log_initial), finite(log_transitions), emissions, first, real


def pack(emissions, first, real):
    """One tensor of all that a step reads: `ops.scan` takes no more where the length is unknown."""
    flags = (ops.cast(flag, "float32") for flag in (first, real))
    return ops.concatenate([emissions, *flags], axis=-1)


def unpack(step):
    return step[:, :-2], step[:, -2:-1] > 0, step[:, -1:] > 0


def batch_first(x):
    return ops.swapaxes(x, 0, 1)


def forward(initial, transitions, emissions, first, real):
    """Filtered log-probabilities (length, batch, N), the log of each step's norm (length, batch),
    and which rows are possible (batch,)."""

    def advance(filtered, step):
        emission, first, real = unpack(step)
        arrived = ops.logsumexp(filtered[:, :, None] + transitions, axis=1)
        joint = ops.where(first, initial, arrived) + emission
        joint = ops.where(real, joint, filtered)
        return joint - ops.logsumexp(joint, axis=-1, keepdims=True), joint

    even = ops.zeros_like(emissions[0]) - math.log(emissions.shape[-1])
    _, joint = ops.scan(advance, even, pack(emissions, first, real))
    steps = ops.logsumexp(joint, axis=-1)
    possible = ops.all((steps > NEVER) | ~real[..., 0], axis=0)
    return joint - steps[..., None], ops.where(real[..., 0], steps, 0.0), possible


def scaled(initial, transitions, emissions, first, real, masked=True):
    """log p(observations) (batch,) from probabilities, and whether they were all held exactly.

    Of a whole of 1 each state has at least SAFE after each step. What is lost below float32's least
    number, 1e-38, is then nothing beside it. Where nothing is masked, steps need not ask for it.
    """
    highest = ops.max(emissions, axis=-1, keepdims=True)  # (length, batch, 1)
    steps = ops.concatenate([ops.exp(emissions - highest), highest], axis=-1)
    # A column for each row of the batch: the loop runs along them.
    steps = ops.transpose(pack(steps, first, real) if masked else steps, (0, 2, 1))
    start, columns = ops.exp(initial)[:, None], ops.exp(ops.transpose(transitions))
    states, none = initial.shape[0], ops.zeros_like(steps[0, 0])  # (batch,)

    def advance(index, filtered, total, lost, least):
        step = ops.take(steps, index, axis=0)  # (N + 1 or 3, batch)
        begins = step[-2:-1] > 0 if masked else ops.equal(index, 0)
        joint = ops.where(begins, start, _product(columns, filtered)) * step[:states]
        if masked:
            joint = ops.where(step[-1:] > 0, joint, filtered)  # (N, batch)
        whole = ops.sum(joint, axis=0)
        log = ops.log(whole) + step[states]
        total, lost = add(total, lost, ops.where(step[-1] > 0, log, 0.0) if masked else log)
        return index + 1, joint / whole, total, lost, ops.minimum(least, ops.min(joint, axis=0))

    even = ops.zeros_like(steps[0, :states]) + 1 / states
    carry = ops.convert_to_tensor(0, "int32"), even, none, none, none + 1.0
    length = ops.shape(steps)[0]
    _, _, total, _, least = ops.while_loop(lambda index, *rest: index < length, advance, carry)
    # A sum of 0 has made NaN by now, which is not above anything.
    return ops.where(total > NEVER, total, -math.inf), ops.min(least) > SAFE


def _product(matrix, x):
    """(N, N) by (N, batch). Of few states as one elementwise sum, which XLA makes one loop."""
    if matrix.shape[0] > 16:
        return ops.matmul(matrix, x)
    return sum(matrix[:, i : i + 1] * x[i : i + 1] for i in range(matrix.shape[0]))


def backward(transitions, emissions, first, real):
    """log p(what comes later | state), normalized at each step: (length, batch, N)."""

    def retreat(later, step):
        emission, _, real = unpack(step)
        before = ops.logsumexp(transitions + (emission + later)[:, None, :], axis=-1)
        before = before - ops.logsumexp(before, axis=-1, keepdims=True)
        return ops.where(real, before, later), later

    even = ops.zeros_like(emissions[0]) - math.log(emissions.shape[-1])
    return ops.scan(retreat, even, pack(emissions, first, real), reverse=True)[1]


def posteriors(parts, filtered, possible):
    states = ops.softmax(filtered + backward(*parts[1:]), axis=-1)
    return batch_first(ops.where(parts[-1] & possible[:, None], states, 0.0))


def expected(parts, filtered, possible):
    """Posteriors (batch, length, N) and expected transitions (batch, N, N)."""
    _, transitions, _, first, _ = parts
    states = posteriors(parts, filtered, possible)
    # Where a path came from, given where it is.
    origins = ops.softmax(filtered[:-1, :, :, None] + transitions, axis=2)
    arrivals = ops.where(first[1:], 0.0, batch_first(states)[1:])
    return states, ops.sum(origins * arrivals[:, :, None, :], axis=0)


def long_sum(x, block=256):
    """The sum over the first axis, by blocks and with compensation: float32 would drift."""
    if isinstance(x.shape[0], int) and x.shape[0] <= block:
        return ops.sum(x, axis=0)
    missing = -ops.shape(x)[0] % block
    x = ops.pad(x, [[0, missing], [0, 0]])
    blocks = ops.sum(ops.reshape(x, (-1, block, ops.shape(x)[1])), axis=1)

    def step(sums, more):  # (2, batch): the sum, and what was lost in its rounding
        sums = ops.stack(add(sums[0], sums[1], more))
        return sums, sums

    zero = ops.zeros_like(blocks[0])
    return ops.scan(step, ops.stack([zero, zero]), blocks)[0][0]


def add(total, lost, more):
    """A sum with one more summand, and what its rounding lost of it, which the next one mends.

    Source: https://doi.org/10.1145/363707.363723 (Kahan 1965).
    """
    more = more - lost
    after = total + more
    return after, (after - total) - more
