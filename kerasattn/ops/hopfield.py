"""Memories that are found again by what is like them: Hopfield networks, old and new.

States of the binary networks are -1 and 1; a 0 stands for a unit that nothing is known of.
"""

import keras
from keras import ops

from kerasattn.ops.attention import attend
from kerasattn.ops.scores import dot


def hebbian(patterns, others=None):
    """Weights that store patterns: the mean over the units of products of what goes together.

    Args:
        patterns: (number, units) of -1 and 1.
        others: (number, other units) of -1 and 1, what each pattern is to bring to mind; None for
            the pattern itself, where no unit has a weight to itself.

    Returns:
        float32 (units, units), symmetric with a zero diagonal, or (units, other units).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> np.array(hopfield.hebbian(np.array([[1, -1], [1, -1]]))).tolist()
    [[0.0, -1.0], [-1.0, 0.0]]

    Source: https://doi.org/10.1073/pnas.79.8.2554 (Hopfield 1982), equation 2, over the number of
    units; https://doi.org/10.1109/21.87054 (Kosko 1988), equation 5.
    """
    patterns = ops.cast(patterns, "float32")
    others_ = patterns if others is None else ops.cast(others, "float32")
    weights = ops.matmul(ops.transpose(patterns), others_) / patterns.shape[1]
    if others is not None:
        return weights
    return weights * (1.0 - ops.eye(patterns.shape[1]))


def energy(states, weights, biases=None):
    """-1/2 sᵀWs - bᵀs, which an asynchronous update by symmetric weights never raises.

    Args:
        states: (batch, units).
        weights: (units, units).
        biases: (units,) or None for zeros.

    Returns:
        float32 (batch,).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> weights = np.array([[0.0, 1.0], [1.0, 0.0]], "float32")
    >>> np.array(hopfield.energy(np.array([[1, 1], [1, -1]]), weights)).tolist()
    [-1.0, 1.0]

    Source: https://doi.org/10.1073/pnas.79.8.2554, equation 7.
    """
    states = ops.cast(states, "float32")
    found = -0.5 * ops.sum(ops.matmul(states, ops.cast(weights, "float32")) * states, axis=-1)
    return found if biases is None else found - ops.matmul(states, ops.cast(biases, "float32"))


def turn(states, fields):
    """Each state by the sign of its field; one without a field stays as it is.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> np.array(hopfield.turn(np.array([1.0, 1.0, -1.0]), np.array([-0.5, 2.0, 0.0]))).tolist()
    [-1.0, 1.0, -1.0]
    """
    # Sums that are 0 but for rounding are no field: two patterns that disagree cancel out.
    return ops.where(ops.abs(fields) < 1e-6, states, ops.sign(fields))


def synchronous(states, weights, biases=None):
    """All units at once by what all others were, after which the energy may be higher.

    With symmetric weights, repeated, it ends in a state or goes round between two.

    Args:
        states: (batch, units).
        weights: (units, units); unit i sees the others through row i.
        biases: (units,) or None for zeros.

    Returns:
        float32 (batch, units).

    Example: two units that want to be like each other change places for ever.

    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> weights = np.array([[0.0, 1.0], [1.0, 0.0]], "float32")
    >>> once = hopfield.synchronous(np.array([[1, -1]]), weights)
    >>> np.array(once).tolist(), np.array(hopfield.synchronous(once, weights)).tolist()
    ([[-1.0, 1.0]], [[1.0, -1.0]])
    """
    states = ops.cast(states, "float32")
    fields = ops.matmul(states, ops.transpose(ops.cast(weights, "float32")))
    return turn(states, fields if biases is None else fields + ops.cast(biases, "float32"))


def asynchronous(states, weights, order, biases=None):
    """Units one after another, each by what the others are at that time.

    Eager, each of its steps runs in Python: wrap it by `ops.compiled.compiled`.

    Args:
        states: (batch, units).
        weights: (units, units); unit i sees the others through row i.
        order: int (steps,), which unit takes its turn at each step.
        biases: (units,) or None for zeros.

    Returns:
        float32 (batch, units).

    Example: as above, but they agree.

    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> weights = np.array([[0.0, 1.0], [1.0, 0.0]], "float32")
    >>> np.array(hopfield.asynchronous(np.array([[1, -1]]), weights, np.array([0, 1]))).tolist()
    [[-1.0, -1.0]]

    Source: https://doi.org/10.1073/pnas.79.8.2554, equation 1.
    """
    order, weights = ops.cast(order, "int32"), ops.cast(weights, "float32")
    biases = ops.zeros(weights.shape[:1]) if biases is None else ops.cast(biases, "float32")
    units = ops.transpose(ops.cast(states, "float32"))  # (units, batch): a turn changes a row

    def one(step, units):
        unit = order[step]
        field = ops.matmul(ops.take(weights, unit, axis=0)[None], units)
        field = field + ops.take(biases, unit)  # (1, batch)
        now = ops.take(units, unit, axis=0)[None]
        return ops.slice_update(units, (unit, 0), turn(now, field))

    return ops.transpose(ops.fori_loop(0, ops.shape(order)[0], one, units))


def settle(states, weights, orders, biases=None):
    """Sweeps of asynchronous updates until none changes anything, or there are no more.

    Args:
        states: (batch, units).
        weights: (units, units).
        orders: int (sweeps, steps), the order of the units in each sweep.
        biases: (units,) or None for zeros.

    Returns:
        The states float32 (batch, units), and how many sweeps it took, int32.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> weights = hopfield.hebbian(np.array([[1, -1, 1, -1]]))
    >>> orders = np.array([range(4)] * 9)
    >>> found, sweeps = hopfield.settle(np.array([[1, -1, 0, 0]]), weights, orders)
    >>> np.array(found).tolist(), int(sweeps)
    ([[1.0, -1.0, 1.0, -1.0]], 2)
    """
    orders = ops.cast(orders, "int32")
    most = ops.shape(orders)[0]

    def goes_on(sweep, states, changed):
        return (sweep < most) & changed

    def sweep_once(sweep, states, changed):
        after = asynchronous(states, weights, orders[sweep], biases)
        return sweep + 1, after, ops.any(after != states)

    start = (ops.zeros((), "int32"), ops.cast(states, "float32"), ops.ones((), "bool"))
    sweeps, states, _ = ops.while_loop(goes_on, sweep_once, start)
    return states, sweeps


def associate(states, others, weights):
    """One round of a bidirectional memory: there by the weights, and back again.

    The energy -sᵀWt of a state s and what goes with it, t, does not rise.

    Args:
        states: (batch, units) of -1, 1, and 0 for what is not known.
        others: (batch, other units), likewise.
        weights: (units, other units), of `hebbian`.

    Returns:
        Both, float32.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> weights = hopfield.hebbian(np.array([[1, -1, 1]]), np.array([[-1, 1]]))
    >>> found = hopfield.associate(np.array([[1, 0, 0]]), np.zeros((1, 2)), weights)
    >>> [np.array(x).tolist() for x in found]
    [[[1.0, -1.0, 1.0]], [[-1.0, 1.0]]]

    Source: https://doi.org/10.1109/21.87054 (Kosko 1988), section 3.
    """
    states, others = ops.cast(states, "float32"), ops.cast(others, "float32")
    others = turn(others, ops.matmul(states, weights))
    return turn(states, ops.matmul(others, ops.transpose(weights))), others


def retrieve(queries, patterns, beta, num_steps=1, attention_mask=None):
    """The modern network of continuous states: each becomes softmax(beta state Xᵀ) X.

    One step is attention whose keys are its values; more of them come to rest, at one pattern where
    beta is large, and between several where it is small.

    Args:
        queries: (batch, query, dim), the states to begin with.
        patterns: (batch, number, dim), what is stored.
        beta: float > 0 or a scalar tensor, how sharply patterns are told apart.
        num_steps: int >= 1.
        attention_mask: bool, as `ops.attention.attend` takes it, True = may be found.

    Returns:
        (batch, query, dim), and the last step's weights float32 (batch, query, number).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> patterns = np.array([[[1.0, 1.0], [-1.0, 1.0]]])
    >>> found, weights = hopfield.retrieve(np.array([[[0.2, 0.0]]]), patterns, beta=50.0)
    >>> np.array(found).round(3).tolist(), np.array(weights).round(3).tolist()
    ([[[1.0, 1.0]]], [[[1.0, 0.0]]])

    Source: https://arxiv.org/abs/2008.02217 (Ramsauer et al. 2020), equation 3.
    """
    states, weights = queries, None
    for _ in range(num_steps):
        states, weights = attend(dot(states, patterns, beta), patterns, attention_mask)
    return states, weights


def continuous_energy(states, patterns, beta):
    """-logsumexp(beta X s)/beta + sᵀs/2 + log(number)/beta + M²/2, which no step raises.

    Args:
        states: (batch, query, dim).
        patterns: (batch, number, dim); M is the largest norm among them.
        beta: float > 0.

    Returns:
        float32 (batch, query), at least 0.

    Example: at rest on a pattern that is far from all others there is next to none.

    >>> import numpy as np
    >>> from kerasattn.ops import hopfield
    >>> patterns = np.array([[[3.0, 0.0], [-3.0, 0.0]]])
    >>> states = np.array([[[3.0, 0.0], [0.0, 0.0]]])
    >>> low, high = np.array(hopfield.continuous_energy(states, patterns, 9.0))[0]
    >>> round(float(low), 2), float(high)
    (0.08, 4.5)

    Source: https://arxiv.org/abs/2008.02217, equation 2.
    """
    states, patterns = ops.cast(states, "float32"), ops.cast(patterns, "float32")
    number = ops.cast(ops.shape(patterns)[1], "float32")
    near = ops.logsumexp(dot(states, patterns, beta), axis=-1) - ops.log(number)
    largest = ops.max(ops.sum(ops.square(patterns), axis=-1), axis=-1)[:, None]
    return 0.5 * (ops.sum(ops.square(states), axis=-1) + largest) - near / beta


def check_patterns(name, patterns, num_units):
    """Patterns as a numpy float32 array.

    Raises:
        ValueError: if they are not (number, num_units) of -1 and 1, at least one; where num_units
            is None, of any number of units.

    Example:
    >>> from kerasattn.ops.hopfield import check_patterns
    >>> check_patterns("patterns", [[0, 1]], 2)
    Traceback (most recent call last):
    ValueError: patterns take -1 and 1, got also 0.0.
    """
    patterns = keras.ops.convert_to_numpy(patterns).astype("float32")
    fits = patterns.ndim == 2 and num_units in (None, patterns.shape[1])
    if not (fits and patterns.size):
        units = "units" if num_units is None else num_units
        raise ValueError(f"{name} take the shape (number, {units}), got {patterns.shape}.")
    for value in set(patterns.ravel().tolist()) - {-1.0, 1.0}:
        raise ValueError(f"{name} take -1 and 1, got also {value}.")
    return patterns
