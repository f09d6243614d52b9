import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class PlainRMSNormalization(keras.layers.Layer):
    """Divides vectors by the root of their mean square, and has no weights.

    Args:
        epsilon: float > 0, added to the mean square.

    Shapes:
        (..., dim) -> (..., dim), computed in float32. A Keras mask of the input is kept.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> print(np.array(layers.PlainRMSNormalization()(np.array([[3.0, -3.0]]))).round(3))
    [[ 1. -1.]]

    Source: https://arxiv.org/abs/1910.07467, equation 4, without its gain.
    """

    def __init__(self, epsilon=1e-7, **kwargs):
        super().__init__(**kwargs)
        if not epsilon > 0:
            raise ValueError(f"epsilon must be positive, got {epsilon}.")
        self.epsilon = epsilon
        self.supports_masking = True

    def call(self, x):
        exact = ops.cast(x, "float32")
        square = ops.mean(ops.square(exact), axis=-1, keepdims=True)
        return ops.cast(exact * ops.rsqrt(square + self.epsilon), self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
