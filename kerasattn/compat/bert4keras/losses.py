"""bert4keras' losses over many labels."""

from keras import ops

from kerasattn.training.losses import multilabel_cross_entropy


def multilabel_categorical_crossentropy(y_true, y_pred):
    """`training.losses.multilabel_cross_entropy`: labels of 0 and 1 (..., n) -> (...)."""
    return multilabel_cross_entropy(y_true, y_pred)


def sparse_multilabel_categorical_crossentropy(y_true, y_pred, mask_zero=False):
    """The same loss, of the numbers of those labels that are so.

    Args:
        y_true: int (..., positives), labels in [0, n), each at most once.
        y_pred: float (..., n).
        mask_zero: bool, whether 0 fills rows up and is no label; the score of label 0 is not
            looked at.

    Shapes:
        -> (...) float32, in nats.

    Example:
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import sparse_multilabel_categorical_crossentropy
    >>> loss = sparse_multilabel_categorical_crossentropy([2, 0], np.zeros(4), mask_zero=True)
    >>> round(float(loss), 4)  # log 3 + log 2: labels 1 and 3 are not, 2 is
    1.7918
    """
    y_pred = ops.cast(y_pred, "float32")
    number = y_pred.shape[-1]
    # (..., positives, n) -> (..., n)
    is_so = ops.any(ops.cast(y_true, "int32")[..., None] == ops.arange(number), axis=-2)
    if mask_zero:
        is_so, y_pred = is_so[..., 1:], y_pred[..., 1:]
    return multilabel_cross_entropy(is_so, y_pred)
