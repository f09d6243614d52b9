import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class DoublyStochastic(keras.layers.Layer):
    """Adds a loss that makes a caption look at every place of a picture about once in all.

    Weights go through unchanged. The loss is `weight` times the sum over places of (1 - the sum of
    their weights over the words)², mean over the batch.

    Args:
        weight: float >= 0.

    Shapes:
        weights of places (batch, words, places), and a padding_mask, bool (batch, words), True =
        real word, or None -> the weights.

    Raises:
        ValueError: if weight is out of its range.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> regularization = layers.DoublyStochastic(weight=1.0)
    >>> weights = regularization(np.array([[[1.0, 0.0], [1.0, 0.0]]]))  # (1 - 2)² + (1 - 0)²
    >>> float(regularization.losses[0])
    2.0

    Source: https://arxiv.org/abs/1502.03044, equation 14.
    """

    def __init__(self, weight=1.0, **kwargs):
        super().__init__(autocast=False, **kwargs)  # float32 goes through as it is
        if not 0 <= weight < math.inf:
            raise ValueError(f"weight must be finite and not negative, got {weight}.")
        self.weight = float(weight)

    def call(self, weights, padding_mask=None):
        counted = ops.cast(weights, "float32")
        if padding_mask is not None:
            counted = counted * ops.cast(padding_mask, "float32")[..., None]
        missed = ops.sum(ops.square(1.0 - ops.sum(counted, axis=1)), axis=-1)  # (batch,)
        self.add_loss(self.weight * ops.mean(missed))
        return weights

    def compute_output_spec(self, weights, padding_mask=None):
        return keras.KerasTensor(weights.shape, weights.dtype)

    def get_config(self):
        return {**super().get_config(), "weight": self.weight}
