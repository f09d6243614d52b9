import keras
from keras import ops

from kerasattn.ops import activations, masks
from kerasattn.ops.attention import as_mask, check_normalization, dot_product_attention


@keras.saving.register_keras_serializable(package="kerasattn")
class GatedAttentionUnit(keras.layers.Layer):
    """Attention and feed-forward network in one: one head mixes wide values, a gate multiplies.

    output(gate(x) * attention(query, key, value)). In self-attention queries and keys are one
    narrow projection, scaled and shifted in two ways; in cross-attention each has its own.

    Args:
        intermediate_dim: int >= 1, width of the gate and of the values.
        key_dim: int >= 1, width of queries and keys.
        activation: of all projections but the last, a name or callable.
        use_bias: bool, whether projections have biases and queries and keys are shifted.
        normalization: "squared_relu", "softmax_plus" or "softmax"; see
            `ops.attention.dot_product_attention`.
        self_attention: bool; False takes query, key and value of their own.
        scale: float, of the scores; by default key_dim ** -0.5.
        dropout: float in [0, 1), dropout of the attention weights.
        rotary: a layer called as `rotary(x, position_ids)` on queries and keys of shape
            (batch, length, 1, key_dim), such as `RotaryEmbedding`; None for none.
        kernel_initializer: of the projections.
        seed: int or None, of the dropout.

    Call arguments:
        query: (batch, query, dim).
        key, value: (batch, key, dim) of cross-attention; the value is the key by default.
        attention_mask: bool, True = may attend, (query, key), (batch, query, key) or of rank 4.
            Keras' mask of the keys counts too.
        bias: float, broadcastable to (batch, 1, query, key), added to the scores.
        query_positions, key_positions: int (batch or 1, length), for `rotary`.

    Shapes:
        -> (batch, query, dim). A query that sees no key gives the last projection's bias.

    Raises:
        ValueError: for widths below 1, an unknown normalization, a dropout out of range, or a key
            that is missing or too many.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> layer = layers.GatedAttentionUnit(24, key_dim=8, rotary=layers.RotaryEmbedding())
    >>> tuple(layer(np.ones((2, 5, 12), "float32")).shape)
    (2, 5, 12)

    Source: https://arxiv.org/abs/2202.10447, section 3.2.
    """

    def __init__(
        self,
        intermediate_dim,
        key_dim,
        activation="silu",
        use_bias=True,
        normalization="squared_relu",
        self_attention=True,
        scale=None,
        dropout=0.0,
        rotary=None,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if intermediate_dim < 1 or key_dim < 1:
            raise ValueError(
                "intermediate_dim and key_dim must be at least 1, got "
                f"intermediate_dim={intermediate_dim}, key_dim={key_dim}."
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        check_normalization(normalization)
        self.intermediate_dim = intermediate_dim
        self.key_dim = key_dim
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.normalization = normalization
        self.self_attention = self_attention
        self.scale = scale
        self.dropout = dropout
        self.rotary = rotary
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, query_shape, key_shape=None, value_shape=None):
        width = self.intermediate_dim
        if self.self_attention:
            self.input_dense = self._dense(2 * width + self.key_dim, "input", query_shape)
            self.query_scale = self._scale_offset("query_scale")
            self.key_scale = self._scale_offset("key_scale")
        else:
            key_shape = key_shape or query_shape
            self.query_dense = self._dense(width + self.key_dim, "query", query_shape)
            self.key_dense = self._dense(self.key_dim, "key", key_shape)
            self.value_dense = self._dense(width, "value", value_shape or key_shape)
        shape = (None, None, width)
        self.output_dense = self._dense(query_shape[-1], "output", shape, activation=None)
        if self.rotary is not None and not self.rotary.built:
            self.rotary.build((None, None, 1, self.key_dim))

    def call(
        self,
        query,
        key=None,
        value=None,
        attention_mask=None,
        bias=None,
        query_positions=None,
        key_positions=None,
        training=False,
        mask=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
    ):
        if (key is None) != self.self_attention:
            raise ValueError(
                f"With self_attention={self.self_attention}, GatedAttentionUnit takes "
                f"{'a query alone' if self.self_attention else 'a query and a key'}."
            )
        real = key_mask
        if self.self_attention:
            gate, values, shared = ops.split(
                self.input_dense(query), [self.intermediate_dim, 2 * self.intermediate_dim], axis=-1
            )
            queries, keys = self.query_scale(shared), self.key_scale(shared)
            real = mask if mask is not None else query_mask
        else:
            gate, queries = ops.split(self.query_dense(query), [self.intermediate_dim], axis=-1)
            keys = self.key_dense(key)
            values = self.value_dense(key if value is None else value)
        queries, keys, values = (x[:, :, None] for x in (queries, keys, values))  # one head
        if self.rotary is not None:
            queries = self.rotary(queries, query_positions)
            keys = self.rotary(keys, key_positions)
        if real is not None:
            shape = (queries.shape[0], 1, queries.shape[1], keys.shape[1])
            seen = masks.keys(real)
            attention_mask = (
                seen if attention_mask is None else as_mask(attention_mask, shape) & seen
            )
        mixed, _, _ = dot_product_attention(
            queries,
            keys,
            values,
            attention_mask=attention_mask,
            bias=bias,
            scale=self.scale,
            dropout=self.dropout if training else 0.0,
            seed=self.seed_generator,
            normalization=self.normalization,
        )  # (b, q, 1, intermediate)
        return self.output_dense(gate * mixed[:, :, 0])

    def _part_name(self, name):
        return name

    def _dense(self, units, name, input_shape, **options):
        layer = keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=self._part_name(name),
            **{"activation": self.activation, **options},
        )
        layer.build(input_shape)
        return layer

    def _scale_offset(self, name):
        layer = ScaleOffset(self.use_bias, dtype=self.dtype_policy, name=self._part_name(name))
        layer.build((None, None, self.key_dim))
        return layer

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "key_dim": self.key_dim,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "normalization": self.normalization,
            "self_attention": self.self_attention,
            "scale": self.scale,
            "dropout": self.dropout,
            "rotary": keras.saving.serialize_keras_object(self.rotary),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        rotary = keras.saving.deserialize_keras_object(config.get("rotary"))
        return cls(**{**config, "rotary": rotary})


@keras.saving.register_keras_serializable(package="kerasattn")
class ScaleOffset(keras.layers.Layer):
    """x * gamma + beta, both trained, of one number a feature; beta only if use_offset."""

    def __init__(self, use_offset=True, **kwargs):
        super().__init__(**kwargs)
        self.use_offset = use_offset
        self.supports_masking = True

    def build(self, input_shape):
        if self.use_offset:
            self.beta = self.add_weight((input_shape[-1],), "zeros", name="beta")
        self.gamma = self.add_weight((input_shape[-1],), "ones", name="gamma")

    def call(self, x):
        x = x * self.gamma
        return x + self.beta if self.use_offset else x

    def get_config(self):
        return {**super().get_config(), "use_offset": self.use_offset}
