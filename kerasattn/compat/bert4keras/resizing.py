"""Tensors of another size made to fit, so that what a layer computes keeps its scale."""

import math

import numpy as np

from kerasattn.compat.bert4keras.attention import MultiHeadAttention
from kerasattn.compat.bert4keras.transformer_layers import FeedForward


def orthogonally_resize(array, shape, window=2):
    """Cuts or repeats an array to a shape, and keeps its norm.

    A longer axis is made of repeated runs of `window` entries, so that orthogonal rows and columns
    stay orthogonal.

    Args:
        array: numpy array.
        shape: of the same rank.
        window: int, entries of a run; divides the axes that grow.

    Raises:
        ValueError: for another rank, or an axis that the window does not divide.

    Example:
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras.resizing import orthogonally_resize
    >>> orthogonally_resize(np.array([3.0, 4.0]), (4,)).round(3).tolist()
    [2.121, 2.828, 2.121, 2.828]

    Source: https://kexue.fm/archives/8444.
    """
    if array.ndim != len(shape):
        raise ValueError(f"An array of the shape {array.shape} can't be resized to {shape}.")
    norm = np.linalg.norm(array)
    for axis, (old, new) in enumerate(zip(array.shape, shape)):
        times = -(-new // old)
        if times > 1:
            if old % window:
                raise ValueError(
                    f"Axes that grow must be multiples of {window}, got axis {axis} of "
                    f"{array.shape}."
                )
            runs = np.split(array, old // window, axis=axis)
            array = np.concatenate([run for run in runs for _ in range(times)], axis=axis)
    array = array[tuple(slice(size) for size in shape)]
    cut = np.linalg.norm(array)
    return array * (norm / cut) if cut else array


def resize_for(layer, variable, index):
    """A function that makes an array fit a layer's variable, the one of number `index`."""
    shape = tuple(variable.shape)

    def load(array):
        old = array.shape
        if old == shape:
            return array
        return orthogonally_resize(array, shape) * _gain(layer, index, old, shape)

    return load


def _gain(layer, index, old, new):
    """What a layer's tensor is multiplied by, so that scores and inner units keep their scale."""
    if isinstance(layer, MultiHeadAttention):
        queries_and_keys = 4 if layer.use_bias else 2
        scaled = layer.scale is None and index < queries_and_keys
        return (new[-1] / old[-1]) ** 0.25 if scaled else 1.0
    if isinstance(layer, FeedForward):
        inner = 2 if layer.use_bias else 1
        names = [activation.__name__ for activation in layer.activation]
        if names in (["relu"], ["leaky_relu"]):
            inner = 0
        return math.sqrt(new[-1] / old[-1] if index < inner else old[0] / new[0])
    return 1.0
