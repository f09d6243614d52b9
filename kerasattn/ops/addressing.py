"""How a neural Turing machine's heads find their place in the memory, read it and write to it.

Weights are (batch, heads, slots), float32, and sum to 1 over the slots.
"""

from keras import ops

TINY = 1e-30  # of float32: a weight of 0 has a logarithm, and a row of zeros a direction


def by_content(memory, keys, strengths):
    """Weights by how alike keys and slots are: softmax(strength * cosine).

    A slot or key of zeros is like nothing: its cosine is 0.

    Args:
        memory: (batch, slots, width).
        keys: (batch, heads, width).
        strengths: (batch, heads), at least 0.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import addressing
    >>> memory = np.array([[[0.0, 0.0], [1.0, 0.0]]])
    >>> weights = addressing.by_content(memory, np.array([[[1.0, 0.0]]]), np.array([[2.0]]))
    >>> [round(float(weight), 4) for weight in weights[0, 0]]
    [0.1192, 0.8808]

    Source: https://arxiv.org/abs/1410.5401 (Graves et al. 2014), equations 5 and 6.
    """
    memory, keys = _direction(memory), _direction(keys)
    cosines = ops.matmul(keys, ops.swapaxes(memory, 1, 2))  # (batch, heads, slots)
    return ops.softmax(ops.cast(strengths, "float32")[..., None] * cosines, axis=-1)


def _direction(x):
    """Vectors of norm 1; near 0 they fade, and have finite gradients."""
    x = ops.cast(x, "float32")
    return x * ops.rsqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + 1e-16)


def interpolate(found, previous, gates):
    """gate * found + (1 - gate) * previous: a head goes where it looked, or stays.

    Args:
        found, previous: (batch, heads, slots).
        gates: (batch, heads) in [0, 1].

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import addressing
    >>> found, previous = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])
    >>> np.array(addressing.interpolate(found, previous, np.array([[0.25]]))).tolist()
    [[[0.25, 0.75]]]

    Source: https://arxiv.org/abs/1410.5401, equation 7.
    """
    gates = ops.cast(gates, "float32")[..., None]
    return gates * ops.cast(found, "float32") + (1.0 - gates) * ops.cast(previous, "float32")


def shift(weights, shifts):
    """Weights moved along the slots, round the ends: a circular convolution.

    Args:
        weights: (batch, heads, slots).
        shifts: (batch, heads, 2 * range + 1), how likely each move is, from -range to range.

    Example: one forward, from the last slot to the first.

    >>> import numpy as np
    >>> from kerasattn.ops import addressing
    >>> weights, forward = np.array([[[0.0, 0.2, 0.8]]]), np.array([[[0.0, 0.0, 1.0]]])
    >>> [round(float(weight), 2) for weight in addressing.shift(weights, forward)[0, 0]]
    [0.8, 0.0, 0.2]

    Source: https://arxiv.org/abs/1410.5401, equation 8.
    """
    weights, shifts = ops.cast(weights, "float32"), ops.cast(shifts, "float32")
    reach, slots = shifts.shape[-1] // 2, weights.shape[-1]
    if reach == 0:
        return weights * shifts
    round_the_ends = [weights[..., -reach:], weights, weights[..., :reach]]
    ring = ops.concatenate(round_the_ends, axis=-1)  # (batch, heads, slots + 2 * reach)
    moved = [
        shifts[..., reach + move, None] * ring[..., reach - move : reach - move + slots]
        for move in range(-reach, reach + 1)
    ]
    return sum(moved)


def sharpen(weights, powers):
    """weights ** power over their sum, in log space: no power is too large.

    Args:
        weights: (batch, heads, slots).
        powers: (batch, heads), at least 1.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import addressing
    >>> weights = addressing.sharpen(np.array([[[0.001, 0.001]]]), np.array([[20.0]]))
    >>> np.array(weights).tolist()
    [[[0.5, 0.5]]]

    Source: https://arxiv.org/abs/1410.5401, equation 9.
    """
    logs = ops.log(ops.maximum(ops.cast(weights, "float32"), TINY))
    return ops.softmax(ops.cast(powers, "float32")[..., None] * logs, axis=-1)


def read(memory, weights):
    """The mean of the slots by weights: (batch, heads, width), in the memory's dtype.

    Args:
        memory: (batch, slots, width).
        weights: (batch, heads, slots).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import addressing
    >>> memory = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    >>> np.array(addressing.read(memory, np.array([[[0.5, 0.5]]]))).tolist()
    [[[2.0, 3.0]]]

    Source: https://arxiv.org/abs/1410.5401, equation 2.
    """
    return ops.matmul(ops.cast(weights, memory.dtype), memory)


def write(memory, weights, erase, add):
    """Each head erases its share of what stands there, then each adds its own.

    Args:
        memory: (batch, slots, width).
        weights: (batch, heads, slots).
        erase: (batch, heads, width) in [0, 1].
        add: (batch, heads, width).

    Returns:
        (batch, slots, width).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import addressing
    >>> memory, weights = np.array([[[1.0], [1.0]]]), np.array([[[1.0, 0.5]]])
    >>> erase, add = np.array([[[1.0]]]), np.array([[[4.0]]])
    >>> np.array(addressing.write(memory, weights, erase, add)).tolist()
    [[[4.0], [2.5]]]

    Source: https://arxiv.org/abs/1410.5401, equations 3 and 4.
    """
    weights = ops.cast(weights, memory.dtype)
    added = ops.matmul(ops.swapaxes(weights, 1, 2), add)
    # One after another: the gradient of a product over an axis takes many more steps.
    for head in range(weights.shape[1]):
        memory = memory * (1.0 - weights[:, head, :, None] * erase[:, head, None])
    return memory + added
