import keras
from keras import ops

from kerasattn.ops import crf


@keras.saving.register_keras_serializable(package="kerasattn")
class CRFLoss(keras.losses.Loss):
    """-log of the probability of the true path, in nats, one number a row.

    It takes log-potentials as `layers.CRF` and `layers.MaximumEntropyMarkovModel` return them,
    which say themselves what is padding. It is never negative, 0 for empty rows, and what is
    forbidden gives large numbers but finite gradients.

    Args:
        reduction, name: of `keras.losses.Loss`; by default the mean over the batch.

    Call arguments:
        y_true: int (batch, length) tags in [0, num_tags), at padding anything. The loss of a row
            with another tag is NaN.
        y_pred: float (batch, length, num_tags, num_tags) log-potentials.
        sample_weight: (batch,), weights of rows.

    Raises:
        ValueError: for tags or potentials of another rank or length.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import crf
    >>> from kerasattn.training import CRFLoss
    >>> emissions = np.array([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]])
    >>> potentials = crf.log_potentials(emissions, np.array([[0.5, -0.5], [-0.5, 0.5]]))
    >>> round(float(CRFLoss()(np.array([[0, 1, 0]]), potentials)), 5)
    1.78768

    Source: https://repository.upenn.edu/cis_papers/159, equation 1.
    """

    def __init__(self, reduction="sum_over_batch_size", name="crf_loss", **kwargs):
        # Tags are whole numbers and potentials float32, whatever the policy.
        super().__init__(reduction=reduction, name=name, **{**kwargs, "dtype": "float32"})

    def call(self, y_true, y_pred):
        y_true = ops.convert_to_tensor(y_true)
        pairs = zip(y_true.shape, y_pred.shape)  # one tag a row would be taken for each step's
        same = all(None in pair or pair[0] == pair[1] for pair in pairs)
        if len(y_pred.shape) != 4 or len(y_true.shape) != 2 or not same:
            raise ValueError(
                "CRFLoss takes tags (batch, length) and log-potentials (batch, length, num_tags, "
                f"num_tags), got shapes {tuple(y_true.shape)} and {tuple(y_pred.shape)}."
            )
        return crf.negative_log_likelihood(y_pred, y_true)

    def get_config(self):
        config = super().get_config()
        config.pop("dtype", None)
        return config
