"""One loop over time for any step, compiled whole and differentiable on every backend."""

import keras
import numpy as np
from keras import ops


def over_time(step, sequences, states):
    """Calls a step for each position from left to right, and stacks what it tells.

    The loop is that of `keras.layers.RNN`, for steps that are no Keras cells: they may take several
    sequences, return several, and read any tensors from around them.

    Args:
        step: function (list of (batch, dim), list of states) -> (list of (batch, dim), list of
            states of the same shapes and dtypes). It draws nothing at random.
        sequences: list of (batch, length, dim), of one dtype.
        states: list of (batch, dim), those before the first step.

    Returns:
        What the steps told, a list of (batch, length, dim), and the list of the last states.

    Raises:
        ValueError: for sequences without a step.

    Example: the sum so far.

    >>> import numpy as np
    >>> from kerasattn.ops.recurrence import over_time
    >>> step = lambda x, states: ([states[0] + x[0]], [states[0] + x[0]])
    >>> sums, last = over_time(step, [np.ones((1, 3, 1), "float32")], [np.zeros((1, 1), "float32")])
    >>> np.array(sums[0]).ravel().tolist(), np.array(last[0]).ravel().tolist()
    ([1.0, 2.0, 3.0], [3.0])
    """
    widths = np.cumsum([x.shape[-1] for x in sequences])[:-1].tolist()
    joined = ops.concatenate([ops.convert_to_tensor(x) for x in sequences], axis=-1)
    if joined.shape[1] == 0:
        raise ValueError(f"There is no step in sequences of the shape {tuple(joined.shape)}.")
    states = [ops.convert_to_tensor(state) for state in states]

    def cell(inputs, states):
        now = ops.split(inputs, widths, axis=-1) if widths else [inputs]
        told, states = step(now, list(states))
        return list(told), list(states)

    loop = keras.layers.RNN(_Cell(cell, [state.shape[-1] for state in states]))
    loop.return_sequences = True
    _, told, states = loop.inner_loop(joined, states, mask=None)
    return list(told), list(states)


class _Cell:
    """A function as `keras.layers.RNN` takes it."""

    def __init__(self, call, state_size):
        self.call, self.state_size = call, state_size

    def __call__(self, inputs, states):
        return self.call(inputs, states)
