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
    y_pred = ops.cast(ops.convert_to_tensor(y_pred), "float32")
    y_true = ops.cast(ops.convert_to_tensor(y_true), "int32")
    *leading, count = ops.shape(y_pred)
    rows = ops.reshape(y_pred, (-1, count))
    labels = ops.reshape(y_true, (-1, ops.shape(y_true)[-1]))  # (rows, positives)
    # One number each, not a row of them for each positive: there may be thousands of labels.
    places = labels + ops.arange(ops.shape(rows)[0], dtype="int32")[:, None] * count
    places = ops.reshape(places, (-1, 1))
    hits = ops.scatter(places, ops.ones_like(places[:, 0]), (ops.size(rows),))
    is_so = ops.reshape(hits, (-1, count)) > 0
    if mask_zero:
        is_so, rows = is_so[:, 1:], rows[:, 1:]
    return ops.reshape(multilabel_cross_entropy(is_so, rows), leading)
