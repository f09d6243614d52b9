import keras
from keras import ops

from kerasattn.layers.global_pointer import GlobalPointer


@keras.saving.register_keras_serializable(package="kerasattn")
class EfficientGlobalPointer(GlobalPointer):
    """GlobalPointer with one score for whether a span is one, to which each kind adds its own.

    A kind costs 4 head_dim weights instead of 2 dim head_dim: its part is a sum of a score of the
    first and one of the last token.

    Args, call arguments, shapes and errors are those of `GlobalPointer`.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> layer = layers.EfficientGlobalPointer(num_kinds=3, head_dim=16)
    >>> tuple(layer(np.ones((2, 5, 8), "float32")).shape)
    (2, 3, 5, 5)

    Source: https://kexue.fm/archives/8877.
    """

    def build(self, input_shape):
        self._check(input_shape)
        self.span_dense = self._dense(2 * self.head_dim, "span", input_shape)
        # Of each kind the score of a last, then that of a first token.
        inner_shape = (*input_shape[:-1], 2 * self.head_dim)
        self.kind_dense = self._dense(2 * self.num_kinds, "kind", inner_shape)

    def call(self, x, padding_mask=None, mask=None):
        inner = self.span_dense(x)  # (batch, length, 2 head_dim), query and key side by side
        scores = self._products(inner[..., None, ::2], inner[..., None, 1::2])
        kinds = ops.transpose(ops.cast(self.kind_dense(inner), "float32"), (0, 2, 1)) / 2
        scores = scores + kinds[:, ::2, None, :] + kinds[:, 1::2, :, None]
        return self._hide(scores, padding_mask, mask)
