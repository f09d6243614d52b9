import keras

from kerasattn import layers
from kerasattn.compat.bert4keras.masking import first
from kerasattn.compat.bert4keras.rotation import SinusoidRotation

PARTS = {  # our names of parts, and bert4keras'
    "input": "i_dense",
    "query_scale": "q_scaleoffset",
    "key_scale": "k_scaleoffset",
    "query": "uq_dense",
    "key": "k_dense",
    "value": "v_dense",
    "output": "o_dense",
}


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class GatedAttentionUnit(layers.GatedAttentionUnit):
    """`layers.GatedAttentionUnit` with bert4keras' arguments and list of inputs.

    Args:
        units: int, width of the gate and of the values.
        key_size: int, width of queries and keys.
        activation: of all projections but the last.
        use_bias: bool, whether projections have biases and queries and keys are shifted.
        normalization: "squared_relu", "softmax_plus" or "softmax".
        self_attention: bool; False takes query, key and value of their own.
        attention_scale: bool, whether scores are divided by the root of key_size.
        attention_dropout: float, dropout of the attention weights, None for none.
        kernel_initializer: of the projections.

    Call arguments:
        inputs: the tensor (batch, length, dim), or a list of it or of query, key and value, then,
            if so said, the attention's bias and sines and cosines of positions.
        a_bias: whether the inputs hold (batch, query, key), a mask if bool, else added to scores.
        p_bias: "rotary", whether the inputs hold sinusoids (batch or 1, length, key_size).
        mask: Keras' mask, or the list of them. Of cross-attention the key's is taken.

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import GatedAttentionUnit, SinusoidalPositionEmbedding
    >>> x = np.ones((2, 5, 12), "float32")
    >>> places = SinusoidalPositionEmbedding(8, merge_mode="zero")(x)
    >>> tuple(GatedAttentionUnit(24, 8)([x, places], p_bias="rotary").shape)
    (2, 5, 12)
    """

    def __init__(
        self,
        units,
        key_size,
        activation="swish",
        use_bias=True,
        normalization="squared_relu",
        self_attention=True,
        attention_scale=True,
        attention_dropout=None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(
            units,
            key_size,
            activation=activation,
            use_bias=use_bias,
            normalization=normalization,
            self_attention=self_attention,
            scale=None if attention_scale else 1.0,
            dropout=attention_dropout or 0.0,
            rotary=SinusoidRotation(),
            kernel_initializer=kernel_initializer,
            **kwargs,
        )

    def build(self, input_shape):
        shapes = [input_shape] if isinstance(input_shape[-1], int) else input_shape
        super().build(*shapes[: 1 if self.self_attention else 3])
        for ours, theirs in PARTS.items():
            part = getattr(self, f"{ours}_dense", None) or getattr(self, ours, None)
            if isinstance(part, keras.layers.Layer):
                setattr(self, theirs, part)

    def call(self, inputs, mask=None, a_bias=None, p_bias=None, training=False):
        inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        masks = list(mask) if isinstance(mask, list | tuple) else [mask] * len(inputs)
        count = 1 if self.self_attention else 3
        takes = count + bool(a_bias) + (p_bias == "rotary")
        if p_bias not in (None, False, "rotary") or len(inputs) != takes:
            raise ValueError(
                f"With self_attention={self.self_attention}, a_bias={a_bias} and "
                f"p_bias={p_bias!r}, GatedAttentionUnit takes {takes} inputs, got {len(inputs)}; "
                "p_bias is None or 'rotary'."
            )
        query, key, value = [*inputs[:count], None, None][:3]
        rest, options = inputs[count:], {}
        if a_bias:
            bias = rest.pop(0)
            bias = bias[None] if len(bias.shape) == 2 else bias  # the same for all of a batch
            is_mask = keras.backend.standardize_dtype(bias.dtype) == "bool"
            heads = bias[:, None] if len(bias.shape) == 3 else bias
            options = {"attention_mask": heads} if is_mask else {"bias": heads}
        if p_bias == "rotary":
            options |= {"query_positions": rest[0], "key_positions": rest[0]}
        real = masks[0] if self.self_attention else masks[1]
        name = "mask" if self.self_attention else "key_mask"
        return super().call(query, key, value, training=training, **{name: real}, **options)

    def compute_mask(self, inputs, mask=None):
        return first(mask)

    def _part_name(self, name):
        return PARTS[name]

    def get_config(self):
        return {
            **keras.layers.Layer.get_config(self),
            "units": self.intermediate_dim,
            "key_size": self.key_dim,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "normalization": self.normalization,
            "self_attention": self.self_attention,
            "attention_scale": self.scale is None,
            "attention_dropout": self.dropout or None,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config)
