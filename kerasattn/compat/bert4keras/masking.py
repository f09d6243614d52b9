"""bert4keras' way to hide padding: -inf, or any number, along one axis."""

import keras
from keras import ops


def sequence_masking(x, mask=None, value=0, axis=None, bias=None, return_mask=False):
    """Puts a value where a mask is not true.

    Args:
        x: float tensor.
        mask: (batch, length), or x's leading axes; None for none. Numbers count as true but 0.
        value: float, or "inf", "-inf".
        axis: int, x's axis that the mask's last one is; 1 by default. A list for several axes.
        bias: added to x before; or bool, a mask in x's rank of its own.
        return_mask: bool, whether the mask in x's rank is returned too.

    Example:
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras.masking import sequence_masking
    >>> print(np.array(sequence_masking(np.ones((1, 2)), np.array([[1, 0]]), "-inf")))
    [[  1. -inf]]
    """
    x = ops.convert_to_tensor(x)
    if mask is not None:
        axes = axis if isinstance(axis, list | tuple) else [1 if axis is None else axis]
        given, mask = ops.cast(mask, "bool"), True
        for axis in axes:
            mask = mask & _along(given, axis % len(x.shape), len(x.shape))
    if hasattr(bias, "dtype") and keras.backend.standardize_dtype(bias.dtype) == "bool":
        mask, bias = bias if mask is None else mask & bias, None
    if bias is not None:
        x = x + bias
    if mask is not None:
        x = ops.where(mask, x, ops.cast(float(value), x.dtype))
    return (x, mask) if return_mask else x


def _along(mask, axis, rank):
    """A mask (batch, ..., length) with its last axis at another place."""
    while len(mask.shape) <= axis:
        mask = ops.expand_dims(mask, 1)
    while len(mask.shape) < rank:
        mask = ops.expand_dims(mask, -1)
    return mask


def real_steps(y_pred):
    """Which steps of scores (batch, length, n) are not the -inf of padding: bool."""
    return ops.all(y_pred > -1e6, axis=2)


def first(mask):
    """The mask of the first of a list of inputs."""
    return mask[0] if isinstance(mask, list | tuple) else mask
