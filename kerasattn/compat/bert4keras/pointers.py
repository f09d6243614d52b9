"""bert4keras' layers for spans that may be nested: -inf where there can be none."""

import keras

from kerasattn import layers


class _Pointer:
    """bert4keras' arguments for the layers of `kerasattn.layers`, before which it stands."""

    HIDDEN = -float("inf")

    def __init__(
        self,
        heads,
        head_size,
        RoPE=True,
        use_bias=True,
        tril_mask=True,
        kernel_initializer="lecun_normal",
        **kwargs,
    ):
        super().__init__(
            num_kinds=heads,
            head_dim=head_size,
            use_rotary=RoPE,
            use_bias=use_bias,
            forward_only=tril_mask,
            kernel_initializer=kernel_initializer,
            **kwargs,
        )

    def call(self, inputs, mask=None):
        return super().call(inputs, mask=mask)

    def get_config(self):
        return {
            **keras.layers.Layer.get_config(self),
            "heads": self.num_kinds,
            "head_size": self.head_dim,
            "RoPE": self.use_rotary,
            "use_bias": self.use_bias,
            "tril_mask": self.forward_only,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class GlobalPointer(_Pointer, layers.GlobalPointer):
    """`layers.GlobalPointer` with bert4keras' arguments.

    Args:
        heads: int, kinds of spans.
        head_size: int, width of a kind's queries and keys.
        RoPE: bool, whether both are rotated.
        use_bias: bool, whether the dense layer has a bias.
        tril_mask: bool, whether spans that end before they begin are hidden.
        kernel_initializer: of the dense layer.

    Shapes:
        (batch, length, dim) -> (batch, heads, length, length), -inf where hidden or padding (of
        Keras' mask).

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import GlobalPointer
    >>> scores = GlobalPointer(heads=3, head_size=8)(np.ones((2, 5, 8), "float32"))
    >>> tuple(scores.shape), float(scores[0, 0, 1, 0])
    ((2, 3, 5, 5), -inf)
    """


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class EfficientGlobalPointer(_Pointer, layers.EfficientGlobalPointer):
    """`layers.EfficientGlobalPointer` with bert4keras' arguments, those of `GlobalPointer`.

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import EfficientGlobalPointer
    >>> layer = EfficientGlobalPointer(heads=3, head_size=8)
    >>> tuple(layer(np.ones((2, 5, 8), "float32")).shape)
    (2, 3, 5, 5)
    """

    def _part_name(self, name):
        return {"span": "p_dense", "kind": "q_dense"}[name]

    @property
    def p_dense(self):
        """The dense layer of queries and keys."""
        return self.span_dense

    @property
    def q_dense(self):
        """The dense layer of the kinds' scores."""
        return self.kind_dense
