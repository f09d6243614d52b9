"""bert4keras' way to hide padding: -inf, or any number, along one axis."""

from keras import ops

INFINITY = 1e12  # what "inf" is where it must be finite


def sequence_masking(x, mask=None, value=0, axis=None, bias=None, return_mask=False):
    """Puts a value where a mask is not true.

    Args:
        x: float tensor.
        mask: (batch, length), or x's leading axes; None for none. Numbers count as true but 0.
        value: float, or "inf", "-inf".
        axis: int, x's axis that the mask's last one is; 1 by default.
        bias: number added where the mask is true, None for 0.
        return_mask: bool, whether the mask in x's rank is returned too.

    Example:
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras.masking import sequence_masking
    >>> print(np.array(sequence_masking(np.ones((1, 2)), np.array([[1, 0]]), "-inf")))
    [[  1. -inf]]
    """
    if mask is not None:
        mask = ops.cast(mask, "bool")
        axis = 1 if axis is None else axis
        axis = len(x.shape) + axis if axis < 0 else axis
        while len(mask.shape) <= axis:
            mask = ops.expand_dims(mask, 1)
        while len(mask.shape) < len(x.shape):
            mask = ops.expand_dims(mask, -1)
        x = ops.convert_to_tensor(x) if bias is None else x + bias
        x = ops.where(mask, x, ops.cast(float(value), x.dtype))
    return (x, mask) if return_mask else x


def real_steps(y_pred):
    """Which steps of scores (batch, length, n) are not the -inf of padding: bool."""
    return ops.all(y_pred > -1e6, axis=2)


def first(mask):
    """The mask of the first of a list of inputs."""
    return mask[0] if isinstance(mask, list | tuple) else mask
