import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class SegmentIds(keras.layers.Layer):
    """The segment ids that were given, or else 0 for every token.

    Shapes:
        token ids (batch, length) and optionally segment ids (batch, length)
        -> int32 (batch, length).

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> print(np.array(layers.SegmentIds()(np.array([[7, 8, 0]]))))
    [[0 0 0]]
    """

    def call(self, token_ids, segment_ids=None):
        if segment_ids is None:
            return ops.zeros_like(token_ids, dtype="int32")
        return ops.cast(segment_ids, "int32")

    def compute_output_spec(self, token_ids, segment_ids=None):
        return keras.KerasTensor(token_ids.shape, "int32")
