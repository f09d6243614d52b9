"""Hidden Markov models in log-space: likelihood, posteriors, best paths, samples.

A chain of N states is `log_initial` (N,) and `log_transitions` (N, N), from row to column; what is
observed comes as `log_emissions` (batch, length, N), the log-probability of each observation in
each state. Everything is float32 and normalized at each step, so that no length is too long. A
zero probability may be given as -inf: inside it is a finite number, so that nothing is ever NaN.
Padding may stand anywhere: a path goes from one real step to the next.

Source: https://doi.org/10.1109/5.18626 (Rabiner 1989).
"""

import math

import keras
import numpy as np
from keras import ops

from kerasattn.ops import hmm_recursions as recursions
from kerasattn.ops.hmm_recursions import NEVER
from kerasattn.ops.rows import take_each

MAX_PATHS = 100_000


def categorical_log_probs(observations, log_symbols):
    """The log-probability of each symbol in each state.

    Args:
        observations: int (batch, length) in [0, num_symbols).
        log_symbols: float (N, num_symbols), log-probabilities of a state's symbols.

    Shapes:
        -> float32 (batch, length, N)
    """
    table = recursions.finite(ops.transpose(ops.convert_to_tensor(log_symbols)))
    return ops.take(table, observations, axis=0)


def gaussian_log_density(observations, means, log_variances):
    """The log-density of each observation in each state, of diagonal normal distributions.

    Args:
        observations: float (batch, length, dim).
        means, log_variances: float (N, dim).

    Shapes:
        -> float32 (batch, length, N)

    Raises:
        ValueError: for observations of another dim than the means.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hmm
    >>> density = hmm.gaussian_log_density(np.zeros((1, 1, 1)), np.zeros((1, 1)), np.zeros((1, 1)))
    >>> round(float(density[0, 0, 0]), 4)
    -0.9189
    """
    x = ops.cast(observations, "float32")[:, :, None, :]  # (batch, length, 1, dim)
    means, log_variances = ops.cast(means, "float32"), ops.cast(log_variances, "float32")
    if x.shape[-1] not in (None, means.shape[-1]):  # a single number would serve for all
        raise ValueError(
            f"Observations of {x.shape[-1]} numbers do not fit means of {means.shape[-1]}."
        )
    squares = ops.square(x - means) * ops.exp(-log_variances)
    return -0.5 * ops.sum(squares + log_variances + math.log(2 * math.pi), axis=-1)


def forward(log_initial, log_transitions, log_emissions, padding_mask=None):
    """What is known of the state at each step from the observations up to it.

    Args:
        log_initial, log_transitions, log_emissions: float (N,), (N, N), (batch, length, N).
        padding_mask: bool (batch, length), True = real; None for all real.

    Returns:
        log p(state at t | observations up to t), (batch, length, N), and
        log p(observation at t | those before), (batch, length), 0 at padding.

    Source: Rabiner 1989, equations 19 to 21, scaled as in section V.A.
    """
    filtered, steps, _ = recursions.forward(
        *recursions.parts(log_initial, log_transitions, log_emissions, padding_mask)
    )
    return recursions.batch_first(filtered), recursions.batch_first(steps)


def backward(log_transitions, log_emissions, padding_mask=None):
    """What the observations after each step say of the state at it.

    Args:
        log_transitions, log_emissions: float (N, N), (batch, length, N).
        padding_mask: bool (batch, length), True = real; None for all real.

    Returns:
        log p(observations after t | state at t), (batch, length, N), less a number for each step
        that makes its probabilities sum to 1.

    Source: Rabiner 1989, equations 24 and 25.
    """
    none = ops.zeros_like(log_transitions[0])
    parts = recursions.parts(none, log_transitions, log_emissions, padding_mask)
    return recursions.batch_first(recursions.backward(*parts[1:]))


def log_likelihood(log_initial, log_transitions, log_emissions, padding_mask=None):
    """log p(observations), in nats: -inf where they are impossible, 0 for empty rows.

    Its gradient is written out, by expected counts: the loop need not be differentiated.

    Args:
        log_initial, log_transitions, log_emissions: float (N,), (N, N), (batch, length, N).
        padding_mask: bool (batch, length), True = real; None for all real.

    Shapes:
        -> float32 (batch,)

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hmm
    >>> symbols = np.log([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    >>> emissions = hmm.categorical_log_probs(np.array([[0, 1, 2]]), symbols)
    >>> chain = np.log([0.6, 0.4]), np.log([[0.7, 0.3], [0.4, 0.6]])
    >>> round(float(hmm.log_likelihood(*chain, emissions)[0]), 5)
    -3.31649
    """

    @ops.custom_gradient
    def likelihood(log_initial, log_transitions, log_emissions):
        parts = recursions.parts(log_initial, log_transitions, log_emissions, padding_mask)

        def in_log_space():
            _, steps, possible = recursions.forward(*parts)
            return ops.where(possible, recursions.long_sum(steps), -math.inf)

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            filtered, _, possible = recursions.forward(*parts)
            states, pairs = recursions.expected(parts, filtered, possible)
            weighted = upstream[:, None, None] * states  # (batch, length, N)
            first = recursions.batch_first(parts[3])  # (batch, length, 1)
            initial = ops.sum(ops.where(first, weighted, 0.0), axis=(0, 1))
            return initial, ops.sum(upstream[:, None, None] * pairs, axis=0), weighted

        # Products of probabilities take less time, where float32 can hold them all.
        scaled, exact = recursions.scaled(*parts, masked=padding_mask is not None)
        return ops.cond(exact, lambda: scaled, in_log_space), gradient

    float32 = (ops.cast(x, "float32") for x in (log_initial, log_transitions, log_emissions))
    return likelihood(*float32)


def posteriors(log_initial, log_transitions, log_emissions, padding_mask=None):
    """The probability of each state at each step, given all observations of its row.

    Args:
        log_initial, log_transitions, log_emissions: float (N,), (N, N), (batch, length, N).
        padding_mask: bool (batch, length), True = real; None for all real.

    Shapes:
        -> float32 (batch, length, N), 0 at padding and where the row is impossible.

    Source: Rabiner 1989, equation 27.
    """
    parts = recursions.parts(log_initial, log_transitions, log_emissions, padding_mask)
    filtered, _, possible = recursions.forward(*parts)
    return recursions.posteriors(parts, filtered, possible)


def expected_counts(log_initial, log_transitions, log_emissions, padding_mask=None):
    """What Baum-Welch counts: the posteriors, and how often each transition is expected.

    Its memory is batch * length * N² numbers: give long corpora in several batches.

    Args:
        log_initial, log_transitions, log_emissions: float (N,), (N, N), (batch, length, N).
        padding_mask: bool (batch, length), True = real; None for all real.

    Returns:
        log-likelihoods (batch,), posteriors (batch, length, N) and expected transitions
        (batch, N, N), from row to column. Those of impossible rows are 0.

    Source: Rabiner 1989, equations 37 and 38.
    """
    parts = recursions.parts(log_initial, log_transitions, log_emissions, padding_mask)
    filtered, steps, possible = recursions.forward(*parts)
    likelihoods = ops.where(possible, recursions.long_sum(steps), -math.inf)
    return likelihoods, *recursions.expected(parts, filtered, possible)


def viterbi(log_initial, log_transitions, log_emissions, padding_mask=None):
    """The most likely path through the states, and log p(path, observations).

    Of paths that are as likely, the one through states with lower numbers.

    Args:
        log_initial, log_transitions, log_emissions: float (N,), (N, N), (batch, length, N).
        padding_mask: bool (batch, length), True = real; None for all real.

    Returns:
        states int32 (batch, length), 0 at padding, and log-probabilities float32 (batch,), -inf
        where the observations are impossible, whose states mean nothing.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hmm
    >>> symbols = np.log([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    >>> emissions = hmm.categorical_log_probs(np.array([[0, 1, 2]]), symbols)
    >>> chain = np.log([0.6, 0.4]), np.log([[0.7, 0.3], [0.4, 0.6]])
    >>> states, log_probs = hmm.viterbi(*chain, emissions)
    >>> [int(state) for state in states[0]], round(float(log_probs[0]), 5)
    ([0, 0, 1], -4.19174)

    Source: Rabiner 1989, equations 32 to 35.
    """
    parts = recursions.parts(log_initial, log_transitions, log_emissions, padding_mask)
    initial, transitions, emissions, first, real = parts

    def advance(best, step):  # (batch, N): of the best path that ends in each state
        emission, first, real = recursions.unpack(step)
        arrived = ops.max(best[:, :, None] + transitions, axis=1)
        arrived = ops.where(first, initial, arrived) + emission
        # Relative to the best of all, so that none grows; what is impossible stays so.
        highest = ops.max(arrived, axis=-1, keepdims=True)
        arrived = arrived - ops.where(highest > NEVER, highest, 0.0)
        return ops.where(real, arrived, best), best

    start = ops.zeros_like(emissions[0])
    last, before = ops.scan(advance, start, recursions.pack(emissions, first, real))
    arrivals = before[..., None] + transitions  # (length, batch, from, to)
    # Where a state is impossible, all ways that lead to it are as likely.
    nothing = (emissions[:, :, None, :] < NEVER) & (arrivals > NEVER)
    pointers = ops.argmax(ops.where(nothing, 0.0, arrivals), axis=2)  # (length, batch, to)
    stay = ops.arange(transitions.shape[0], dtype="int32")  # at padding
    pointers = ops.where(real, ops.cast(pointers, "int32"), stay)

    def retreat(state, pointers):
        return take_each(pointers, state[:, None])[:, 0], state

    last = ops.cast(ops.argmax(last, axis=-1), "int32")
    _, states = ops.scan(retreat, last, pointers, reverse=True)

    previous = ops.concatenate([states[:1], states[:-1]], axis=0)
    num_states = transitions.shape[0]
    scores = ops.take(ops.reshape(transitions, (-1,)), previous * num_states + states)
    scores = ops.where(first[..., 0], ops.take(initial, states), scores)
    scores = scores + ops.take_along_axis(emissions, states[..., None], axis=-1)[..., 0]
    total = recursions.long_sum(ops.where(real[..., 0], scores, 0.0))
    states = ops.where(real[..., 0], states, 0)
    return recursions.batch_first(states), ops.where(total > NEVER, total, -math.inf)


def enumerate_paths(log_initial, log_transitions, log_emissions):
    """Every path there is and its log-probability with the observations: for tests of small cases.

    Args:
        log_initial, log_transitions, log_emissions: float (N,), (N, N), (batch, length, N).

    Returns:
        paths int (N^length, length), and log-probabilities float64 (batch, N^length), both numpy.

    Raises:
        ValueError: if there are more than 100,000 paths.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hmm
    >>> even = np.log([0.5, 0.5])
    >>> paths, log_probs = hmm.enumerate_paths(even, np.stack([even, even]), np.zeros((1, 3, 2)))
    >>> paths.shape, round(float(np.exp(log_probs).sum()), 6)
    ((8, 3), 1.0)
    """
    initial, transitions, emissions = (
        np.asarray(keras.ops.convert_to_numpy(x), "float64")
        for x in (log_initial, log_transitions, log_emissions)
    )
    length, num_states = emissions.shape[1:]
    count = num_states**length
    if count > MAX_PATHS:
        raise ValueError(
            f"{num_states} states and {length} steps have {count} paths, more than {MAX_PATHS:,}: "
            "log_likelihood, posteriors and viterbi do without them."
        )
    paths = np.stack(np.unravel_index(np.arange(count), (num_states,) * length), axis=1)
    scores = initial[paths[:, 0]] + transitions[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    return paths, scores + emissions[:, np.arange(length), paths].sum(axis=-1)


def sample(log_initial, log_transitions, number, length, seed=None):
    """Draws paths through the states.

    Args:
        log_initial, log_transitions: float (N,), (N, N).
        number, length: ints >= 1.
        seed: int, `keras.random.SeedGenerator`, or None.

    Shapes:
        -> int32 (number, length)
    """
    draws = keras.random.uniform((length, number), dtype="float32", seed=seed)
    initial, transitions = _cumulative(log_initial), _cumulative(log_transitions)
    first = pick(ops.broadcast_to(initial, (number, initial.shape[0])), draws[0])

    def advance(state, draw):
        return pick(ops.take(transitions, state, axis=0), draw), state

    # The state that follows the last is drawn as well, and dropped.
    following = ops.concatenate([draws[1:], draws[:1]], axis=0)
    _, states = ops.scan(advance, first, following)
    return ops.transpose(states, (1, 0))


def pick(cumulative, draws):
    """Which share each uniform draw (...) falls into; they add up to `cumulative` (..., N)."""
    return ops.sum(ops.cast(draws[..., None] >= cumulative, "int32"), axis=-1)


def _cumulative(log_probs):
    sums = ops.cumsum(ops.softmax(recursions.finite(log_probs)), axis=-1)
    return sums / sums[..., -1:]  # exactly 1 at the end: no draw lies beyond
