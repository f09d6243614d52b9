"""Rotary positions: pairs of features turned by an angle that grows with the position.

Source: https://arxiv.org/abs/2104.09864, equation 34.
"""

from keras import ops

from kerasattn.ops import positions


def rotate(x, position_ids, base=10000.0, interleaved=True, scaling=None):
    """Rotates pairs of features of x by position times base^(-2i/dim).

    Angles and products are float32, whatever the dtype of x: neighbouring positions are not told
    apart in half precision.

    Args:
        x: float tensor (..., length, heads, dim), dim even.
        position_ids: integer or float tensor (..., length) that broadcasts with x's.
        base: float > 0, about the longest wavelength over 2 pi.
        interleaved: pair i is features (2i, 2i+1) as in RoFormer, else (i, i + dim/2) as in Llama.
        scaling: dict of the arguments of `positions.llama3_frequencies`, or None.

    Shapes:
        as x, in x's dtype.

    Example: the convention decides what happens to [1, 2, 3, 4] at position 1.

    >>> import numpy as np
    >>> from keras import ops
    >>> from kerasattn.ops import rotary
    >>> x = np.array([[[1.0, 2.0, 3.0, 4.0]]], dtype="float32")
    >>> [round(float(v), 3) for v in rotary.rotate(x, np.array([1]))[0, 0]]
    [-1.143, 1.922, 2.96, 4.03]
    >>> [round(float(v), 3) for v in rotary.rotate(x, np.array([1]), interleaved=False)[0, 0]]
    [-1.984, 1.96, 2.462, 4.02]
    """
    x = ops.convert_to_tensor(x)
    dim = x.shape[-1]
    frequencies = positions.frequencies(dim // 2, dim, base)
    if scaling is not None:
        frequencies = positions.llama3_frequencies(frequencies, **scaling)
    angles = positions.angles(position_ids, frequencies)
    return turn(x, ops.cos(angles), ops.sin(angles), interleaved)


def turn(x, cosines, sines, interleaved=True):
    """Rotates pairs of features of x by angles whose cosines and sines are given.

    Args:
        x: float tensor (..., length, heads, dim), dim even.
        cosines, sines: float tensors (..., length, dim/2) that broadcast with x's.
        interleaved: as `rotate`.

    Shapes:
        as x, in x's dtype.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import rotary
    >>> x = np.array([[[1.0, 2.0]]], dtype="float32")
    >>> [float(v) for v in rotary.turn(x, np.array([[0.0]]), np.array([[1.0]]))[0, 0]]
    [-2.0, 1.0]
    """
    x = ops.convert_to_tensor(x)
    dim = x.shape[-1]
    # (..., length, 1, dim/2): the same for all heads
    cosines, sines = (ops.cast(part, "float32")[..., None, :] for part in (cosines, sines))
    axis, pair_shape = (-1, (dim // 2, 2)) if interleaved else (-2, (2, dim // 2))
    shape = ops.shape(x)
    pairs = ops.reshape(ops.cast(x, "float32"), (*shape[:-1], *pair_shape))
    first, second = ops.unstack(pairs, num=2, axis=axis)  # (..., length, heads, dim/2) each
    pairs = ops.stack(
        [first * cosines - second * sines, first * sines + second * cosines], axis=axis
    )
    return ops.cast(ops.reshape(pairs, shape), x.dtype)
