"""bert4keras' layers of Keras that it made honour masks."""

import keras
from keras import ops

from kerasattn.compat.bert4keras.masking import sequence_masking

register = keras.saving.register_keras_serializable(package="kerasattn.bert4keras")


@register
class GlobalMaxPooling1D(keras.layers.GlobalMaxPooling1D):
    """The highest value of each feature of the real steps: (batch, length, dim) -> (batch, dim)."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        axis = 2 if self.data_format == "channels_first" else 1
        return super().call(sequence_masking(inputs, mask, "-inf", axis))

    def compute_mask(self, inputs, previous_mask=None):
        return None


@register
class Concatenate1D(keras.layers.Layer):
    """Sequences (batch, length, dim) behind each other; one without a mask is all real."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        return ops.concatenate(inputs, axis=1)

    def compute_mask(self, inputs, previous_mask=None):
        if previous_mask is None or all(mask is None for mask in previous_mask):
            return None
        real = lambda x: ops.ones_like(x[..., 0], dtype="bool")
        masks = [real(x) if mask is None else mask for x, mask in zip(inputs, previous_mask)]
        return ops.concatenate(masks, axis=1)
