"""Gather and repeat by rows, in few operations: what stands in a loop is traced and run often."""

from keras import ops


def row_numbers(x):
    """0, 1, 2, ... for the rows of x (rows, n): int32 (rows, 1), also where rows is not known."""
    return ops.cumsum(ops.cast(ops.ones_like(x[:, :1]), "int32"), axis=0) - 1


def take_each(x, index, rows=None):
    """What each row has at its own places, along axis 1.

    `keras.ops.take_along_axis` does that too, by repeating the index along all further axes.

    Args:
        x: tensor (rows, n, ...).
        index: int32 tensor (rows, k), from 0 to n - 1.
        rows: `row_numbers` of x, where they are known already.

    Shapes:
        -> (rows, k, ...), of the dtype of x.

    Example:
        >>> import numpy as np
        >>> from kerasattn.ops.rows import take_each
        >>> x = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
        >>> np.asarray(take_each(x, np.array([[1], [0]], "int32"))).tolist()
        [[[3, 4]], [[5, 6]]]
    """
    x, index = ops.convert_to_tensor(x), ops.convert_to_tensor(index)
    rows = row_numbers(index) if rows is None else rows
    _, count, *rest = ops.shape(x)
    return ops.take(ops.reshape(x, (-1, *rest)), rows * count + index, axis=0)


def repeat_each(x, times):
    """Each row `times`, one after the other: (rows, ...) -> (rows * times, ...)."""
    if times == 1:
        return x
    x = ops.convert_to_tensor(x)
    tiled = ops.tile(ops.expand_dims(x, 1), (1, times, *[1] * (len(x.shape) - 1)))
    return ops.reshape(tiled, (-1, *ops.shape(x)[1:]))
