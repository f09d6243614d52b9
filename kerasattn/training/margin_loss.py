import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class MarginLoss(keras.losses.Loss):
    """Asks for long capsules of what is there and short ones of all else, several at once too.

    The sum over the classes of T max(0, m_plus - n)² + downweight (1 - T) max(0, n - m_minus)²,
    where n is the length and T is 1 for what is there.

    Args:
        m_plus, m_minus: floats in [0, 1], m_minus < m_plus: lengths beyond which nothing is gained.
        downweight: float >= 0, the weight of classes that are not there.
        reduction, name: of `keras.losses.Loss`; by default the mean over the batch.

    Call arguments:
        y_true: int (batch,) or (batch, number), the classes that are there, or 0 and 1 of any dtype
            in (batch, num_classes).
        y_pred: float (batch, num_classes), lengths of the capsules.

    Raises:
        ValueError: for margins out of order, or inputs of other ranks.

    Example:

    >>> import numpy as np
    >>> from kerasattn.training import MarginLoss
    >>> round(float(MarginLoss()(np.array([0]), np.array([[0.5, 0.3]]))), 4)  # 0.4² + 0.5 * 0.2²
    0.18

    Source: https://arxiv.org/abs/1710.09829, equation 4.
    """

    def __init__(
        self,
        m_plus=0.9,
        m_minus=0.1,
        downweight=0.5,
        reduction="sum_over_batch_size",
        name="margin_loss",
        **kwargs,
    ):
        # Lengths are compared with margins in float32, whatever the policy.
        super().__init__(reduction=reduction, name=name, **{**kwargs, "dtype": "float32"})
        if not 0 <= m_minus < m_plus <= 1 or downweight < 0:
            raise ValueError(
                "MarginLoss needs 0 <= m_minus < m_plus <= 1 and downweight >= 0, got "
                f"m_plus={m_plus}, m_minus={m_minus}, downweight={downweight}."
            )
        self.m_plus, self.m_minus, self.downweight = m_plus, m_minus, downweight

    def __call__(self, y_true, y_pred, sample_weight=None):
        # Here, because `keras.losses.Loss` makes floats of labels.
        return super().__call__(_present(y_true, y_pred), y_pred, sample_weight)

    def call(self, y_true, y_pred):
        short = ops.square(ops.relu(self.m_plus - y_pred))
        long = ops.square(ops.relu(y_pred - self.m_minus))
        return ops.sum(y_true * short + self.downweight * (1 - y_true) * long, axis=-1)

    def get_config(self):
        config = {
            **super().get_config(),
            "m_plus": self.m_plus,
            "m_minus": self.m_minus,
            "downweight": self.downweight,
        }
        config.pop("dtype", None)
        return config


def _present(y_true, y_pred):
    """float32 (batch, num_classes): 1 for the classes that are there."""
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    rank, classes = len(y_true.shape), y_pred.shape[-1]
    if rank == 2 and y_true.shape[-1] == classes:
        return ops.cast(y_true, "float32")
    dtype = keras.backend.standardize_dtype(y_true.dtype)
    if len(y_pred.shape) != 2 or rank not in (1, 2) or "int" not in dtype:
        raise ValueError(
            "MarginLoss takes lengths (batch, num_classes), and classes as integers (batch,) or "
            "(batch, number) or as 0 and 1 (batch, num_classes); got "
            f"{tuple(y_pred.shape)} and {dtype} {tuple(y_true.shape)}."
        )
    present = ops.one_hot(y_true, classes, dtype="float32")
    return present if rank == 1 else ops.max(present, axis=1)
