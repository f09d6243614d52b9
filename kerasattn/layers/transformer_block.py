import keras
from keras import ops

from kerasattn.layers.feed_forward import FeedForward
from kerasattn.layers.multi_head_attention import MultiHeadAttention
from kerasattn.layers.plain_rms_normalization import PlainRMSNormalization
from kerasattn.ops import seeds

NORMS = {
    "layer": keras.layers.LayerNormalization,
    "rms": keras.layers.RMSNormalization,
    "plain_rms": PlainRMSNormalization,
}


@keras.saving.register_keras_serializable(package="kerasattn")
class TransformerBlock(keras.layers.Layer):
    """One layer of a Transformer: self-attention, cross-attention where asked for, feed-forward.

    Each part is added to what it reads, with the norm after the sum ("post") or before the part
    ("pre").

    Args:
        num_heads: int, heads of the attention.
        intermediate_dim: int, width inside the feed-forward part.
        activation: of the feed-forward part, such as "gelu" (the erf form).
        gated: bool, whether the feed-forward part is gated (SwiGLU and its kin).
        dropout: float in [0, 1), dropout of each part's output.
        attention_dropout: float in [0, 1), dropout of the attention weights; by default `dropout`.
        norm: "post" or "pre".
        norm_type: "layer", "rms", or "plain_rms" without weights.
        layer_norm_epsilon: float > 0.
        cross_attention: bool, whether there is a cross-attention to `context`.
        num_key_value_heads, head_dim, attention_scale: see `MultiHeadAttention`.
        use_bias: bool, of all projections.
        feed_forward_bias: bool, of those of the feed-forward part; by default `use_bias`.
        feed_forward_dropout: float in [0, 1), dropout inside the feed-forward part.
        rotary, rotary_value: see `MultiHeadAttention`; of the self-attention only.
        kernel_initializer: of all projections.
        seed: int or None, of the dropouts.

    Call arguments:
        inputs: (batch, length, dim).
        attention_mask: bool, see `MultiHeadAttention`; its keys are those of `memory`, then of
            `inputs`.
        context: (batch, context, dim), what the cross-attention reads.
        context_mask: bool, broadcastable to (batch, num_heads, length, context).
        memory: (batch, memory, dim), hidden vectors that stand before the inputs as keys and
            values, and are no queries.
        context_bias: float, added to the scores of the cross-attention.
        bias, query_positions, key_positions, relative_keys, relative_values, cache, cache_index,
            return_weights: as `MultiHeadAttention`, for the self-attention.
        context_cache: the cross-attention's keys and values, computed once.
        return_context_weights: bool, whether to return the weights of the cross-attention.

    Returns:
        (batch, length, dim); a tuple of it, the weights, the new cache and the weights of the
        cross-attention, where asked for.

    Raises:
        ValueError: for another norm, or a context without cross-attention or the reverse.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> block = layers.TransformerBlock(num_heads=2, intermediate_dim=32)
    >>> tuple(block(np.ones((2, 5, 16), "float32")).shape)
    (2, 5, 16)

    Source: https://arxiv.org/abs/1706.03762, section 3.1; pre-norm https://arxiv.org/abs/2002.04745.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="gelu",
        gated=False,
        dropout=0.0,
        attention_dropout=None,
        norm="post",
        norm_type="layer",
        layer_norm_epsilon=1e-12,
        cross_attention=False,
        num_key_value_heads=None,
        head_dim=None,
        attention_scale=None,
        use_bias=True,
        feed_forward_bias=None,
        feed_forward_dropout=0.0,
        rotary=None,
        rotary_value=False,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f'norm is "post" or "pre", got {norm!r}.')
        if norm_type not in NORMS:
            raise ValueError(f"norm_type is one of {tuple(NORMS)}, got {norm_type!r}.")
        attention_dropout = dropout if attention_dropout is None else attention_dropout
        feed_forward_bias = use_bias if feed_forward_bias is None else feed_forward_bias
        self.norm = norm
        self._config = dict(
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            activation=activation
            if isinstance(activation, str)
            else keras.saving.serialize_keras_object(activation),
            gated=gated,
            dropout=dropout,
            attention_dropout=attention_dropout,
            norm=norm,
            norm_type=norm_type,
            layer_norm_epsilon=layer_norm_epsilon,
            cross_attention=cross_attention,
            num_key_value_heads=num_key_value_heads,
            head_dim=head_dim,
            attention_scale=attention_scale,
            use_bias=use_bias,
            feed_forward_bias=feed_forward_bias,
            feed_forward_dropout=feed_forward_dropout,
            rotary=keras.saving.serialize_keras_object(rotary),
            rotary_value=rotary_value,
            kernel_initializer=keras.initializers.serialize(
                keras.initializers.get(kernel_initializer)
            ),
            seed=seed,
        )
        kernel_initializer = keras.initializers.get(kernel_initializer)

        def attention(name, rotary=None):
            return MultiHeadAttention(
                num_heads,
                head_dim=head_dim,
                num_key_value_heads=num_key_value_heads,
                dropout=attention_dropout,
                use_bias=use_bias,
                scale=attention_scale,
                rotary=rotary,
                rotary_value=rotary_value,
                kernel_initializer=kernel_initializer.clone(),
                seed=seeds.child(seed, name),
                dtype=self.dtype_policy,
                name=name,
            )

        def normalization(name):
            kind = NORMS[norm_type]
            return kind(epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name=name)

        self.self_attention = attention("self_attention", rotary)
        self.self_attention_norm = normalization("self_attention_norm")
        if cross_attention:
            self.cross_attention = attention("cross_attention")
            self.cross_attention_norm = normalization("cross_attention_norm")
        else:
            self.cross_attention = None
        self.feed_forward = FeedForward(
            intermediate_dim,
            activation=activation,
            gated=gated,
            use_bias=feed_forward_bias,
            dropout=feed_forward_dropout,
            kernel_initializer=kernel_initializer.clone(),
            seed=seeds.child(seed, "feed_forward"),
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.feed_forward_norm = normalization("feed_forward_norm")
        self.dropout = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "dropout"), dtype=self.dtype_policy
        )
        self.supports_masking = True

    def build(self, inputs_shape, context_shape=None):
        self.self_attention.build(inputs_shape)
        self.self_attention_norm.build(inputs_shape)
        if self.cross_attention is not None:
            self.cross_attention.build(inputs_shape, context_shape or inputs_shape)
            self.cross_attention_norm.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_norm.build(inputs_shape)

    def call(
        self,
        inputs,
        attention_mask=None,
        context=None,
        context_mask=None,
        context_bias=None,
        memory=None,
        bias=None,
        query_positions=None,
        key_positions=None,
        relative_keys=None,
        relative_values=None,
        cache=None,
        cache_index=None,
        context_cache=None,
        return_weights=False,
        return_context_weights=False,
        training=False,
        mask=None,
        inputs_mask=None,
    ):
        self._check_context(context is not None or context_cache is not None)
        mask = mask if mask is not None else inputs_mask
        extras = []

        def self_attention(x):
            value = value_mask = None
            if memory is not None:
                before = self.self_attention_norm(memory) if self.norm == "pre" else memory
                value = ops.concatenate([ops.cast(before, x.dtype), x], axis=1)
                if mask is not None:
                    before_mask = ops.ones_like(memory[..., 0], dtype="bool")
                    value_mask = ops.concatenate([before_mask, mask], axis=1)
            results = self.self_attention(
                x,
                value=value,
                attention_mask=attention_mask,
                bias=bias,
                query_positions=query_positions,
                key_positions=key_positions,
                relative_keys=relative_keys,
                relative_values=relative_values,
                cache=cache,
                cache_index=cache_index,
                return_weights=return_weights,
                training=training,
                mask=mask,
                value_mask=value_mask,
            )
            if isinstance(results, tuple):
                extras.extend(results[1:])
                return results[0]
            return results

        def cross_attention(x):
            results = self.cross_attention(
                x,
                value=context,
                attention_mask=context_mask,
                bias=context_bias,
                cache=context_cache,
                return_weights=return_context_weights,
                training=training,
            )
            if return_context_weights:
                extras.append(results[1])
                return results[0]
            return results

        def residual(x, part, norm):
            if self.norm == "pre":
                return x + self.dropout(part(norm(x)), training=training)
            return norm(x + self.dropout(part(x), training=training))

        x = residual(inputs, self_attention, self.self_attention_norm)
        if self.cross_attention is not None:
            x = residual(x, cross_attention, self.cross_attention_norm)
        x = residual(x, self.feed_forward, self.feed_forward_norm)
        return (x, *extras) if extras else x

    def _check_context(self, has_context):
        if has_context != (self.cross_attention is not None):
            raise ValueError(
                f"A block with cross_attention={self.cross_attention is not None} was "
                f"{'' if has_context else 'not '}given a context."
            )

    def compute_output_spec(
        self,
        inputs,
        *args,
        cache=None,
        context_cache=None,
        return_weights=False,
        return_context_weights=False,
        **kwargs,
    ):
        # Said rather than traced. JAX traces all unknown sizes as one number, which the keys'
        # length with a memory is not; and tracing is what takes time in building a model.
        if args or cache is not None or (context_cache is not None and return_context_weights):
            return super().compute_output_spec(
                inputs,
                *args,
                cache=cache,
                context_cache=context_cache,
                return_weights=return_weights,
                return_context_weights=return_context_weights,
                **kwargs,
            )
        context = kwargs.get("context")
        self._check_context(context is not None or context_cache is not None)
        results = [keras.KerasTensor(inputs.shape, self.compute_dtype)]
        batch, query = inputs.shape[:2]

        def weights(key):
            shape = (batch, self._config["num_heads"], query, key)
            results.append(keras.KerasTensor(shape, "float32"))

        if return_weights:
            memory, key = kwargs.get("memory"), query
            if memory is not None:
                key = None if None in (query, memory.shape[1]) else query + memory.shape[1]
            weights(key)
        if return_context_weights:
            weights(context.shape[1])
        return results[0] if len(results) == 1 else tuple(results)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def get_config(self):
        return {**super().get_config(), **self._config}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("rotary", "activation"):
            if isinstance(config[name], dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        return cls(**config)
