import keras
from keras import ops

from kerasattn.ops import masks

POOLINGS = ("mean", "cls", "last")


@keras.saving.register_keras_serializable(package="kerasattn")
class SentenceEmbedding(keras.layers.Layer):
    """One vector for a text, from the hidden vectors of any encoder.

    Args:
        pooling: "mean" of the real tokens, or "cls" or "last" for the first or last one of them.
        normalize: bool, whether the vector has length 1, so that products are cosines.

    Call arguments:
        hidden: (batch, length, dim).
        padding_mask: bool (batch, length), True = real token, by default all True. Keras' own mask
            of the hidden vectors is read where none is given.

    Returns:
        (batch, dim), float32 in every policy; zeros for a text without a real token.

    Raises:
        ValueError: for another pooling.

    Example:
    >>> import numpy as np
    >>> from kerasattn import heads
    >>> hidden = np.array([[[3.0, 4.0], [9.0, 12.0], [5.0, 5.0]]], "float32")
    >>> real = np.array([[True, True, False]])
    >>> print(np.array(heads.SentenceEmbedding()(hidden, real)))
    [[0.6 0.8]]

    Source: https://arxiv.org/abs/1908.10084, section 3.
    """

    def __init__(self, pooling="mean", normalize=True, **kwargs):
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {POOLINGS}, got {pooling!r}.")
        self.pooling = pooling
        self.normalize = normalize
        self.supports_masking = True

    def call(self, hidden, padding_mask=None, mask=None):
        hidden = ops.cast(hidden, "float32")
        real = mask if padding_mask is None else padding_mask
        if real is None:
            real = ops.ones_like(hidden[..., 0])
        weights = ops.cast(real, "float32")  # (batch, length)
        if self.pooling != "mean":
            # Of the places of real tokens, counted from 1 from that end on, the lowest.
            place = masks.positions(weights) + 1
            if self.pooling == "last":
                place = ops.shape(place)[1] + 1 - place
            beyond = ops.shape(place)[1] + 1
            place = ops.where(weights > 0, place, beyond)
            lowest = ops.min(place, axis=1, keepdims=True, initial=2**30)  # of no token too
            chosen = ops.minimum(lowest, beyond - 1)
            weights = ops.cast(ops.equal(place, chosen), "float32")
        total = ops.maximum(ops.sum(weights, axis=1, keepdims=True), 1.0)
        vector = ops.sum(hidden * (weights / total)[..., None], axis=1)
        if not self.normalize:
            return vector
        square = ops.sum(ops.square(vector), axis=-1, keepdims=True)
        return vector * ops.rsqrt(ops.maximum(square, 1e-24))

    def compute_output_spec(self, hidden, padding_mask=None, mask=None):
        return keras.KerasTensor((hidden.shape[0], hidden.shape[2]), "float32")

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def get_config(self):
        return {**super().get_config(), "pooling": self.pooling, "normalize": self.normalize}
