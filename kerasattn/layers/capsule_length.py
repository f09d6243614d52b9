import keras
from keras import ops

from kerasattn.ops import routing


@keras.saving.register_keras_serializable(package="kerasattn")
class CapsuleLength(keras.layers.Layer):
    """The length of each capsule: how sure it is that what it stands for is there.

    Its gradient at a capsule of zeros is 0.

    Shapes:
        (..., dim) -> (...), float32 in every policy.

    Raises:
        ValueError: for inputs without a last axis.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> [float(n) for n in layers.CapsuleLength()(np.array([[0.0, 0.0], [0.6, 0.8]], "float32"))]
    [0.0, 1.0]

    Source: https://arxiv.org/abs/1710.09829, section 3.
    """

    def call(self, capsules):
        return routing.lengths(ops.cast(capsules, "float32"))

    def build(self, input_shape):
        if len(input_shape) < 2:
            raise ValueError(f"Capsules must be (batch, ..., dim), got {tuple(input_shape)}.")

    def compute_output_spec(self, capsules):
        return keras.KerasTensor(capsules.shape[:-1], "float32")
