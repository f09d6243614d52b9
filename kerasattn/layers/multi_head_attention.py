import keras
import numpy as np
from keras import ops

from kerasattn.ops import masks
from kerasattn.ops.attention import as_mask, cache_layout, dot_product_attention
from kerasattn.ops.prepared import prepared


@keras.saving.register_keras_serializable(package="kerasattn")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention with any boolean mask, self or cross, trained or one token at a time.

    Args:
        num_heads: int >= 1, heads of the query.
        head_dim: int, width of a head's queries and keys; by default query width / num_heads.
        value_dim: int, width of a head's values; by default head_dim.
        output_dim: int, width of the output; by default that of the query.
        num_key_value_heads: int that divides num_heads; by default num_heads. 1 is multi-query.
        dropout: float in [0, 1), dropout of the attention weights.
        use_bias: bool, whether the four projections have a bias.
        scale: float, by default head_dim ** -0.5. T5 has 1.
        rotary: a layer called as `rotary(x, position_ids)` on queries and keys of shape
            (batch, length, heads, head_dim), such as `RotaryEmbedding`; None for none.
        rotary_value: bool, whether it is called on values too.
        accumulate_scores: bool, whether the scores returned contain `previous_scores` (RealFormer).
        kernel_initializer: of the projections.
        seed: int or None, of the dropout.

    Call arguments:
        query: (batch, query, dim).
        value: (batch, key, dim), by default the query.
        key: (batch, key, dim), by default the value.
        attention_mask: bool, True = may attend, (query, key), (batch, query, key) or broadcastable
            to (batch, num_heads, query, key). Keras' masks of query, value and key hide keys too.
        bias: float, broadcastable to (batch, num_heads, query, key), added to the scores.
        query_positions, key_positions: int (batch or 1, query), (batch or 1, key), for `rotary`;
            by default 0, 1, 2, ...
        previous_scores: (batch, num_heads, query, key), the layer below's scores (RealFormer).
        relative_keys, relative_values: (query, key, head_dim) or (batch, query, key, head_dim),
            vectors of distances, added to keys and values, such as `RelativePositionEmbedding`.
        cache: the pair of `empty_cache` or `project_key_value`. With `cache_index` the new keys and
            values are written there and all written ones attended to; without, the cache is
            attended to as it is, and `value` and `key` are not looked at.
        cache_index: int scalar, where in the cache the new keys and values go.
        return_weights, return_scores: bool, whether to return the weights, the unmasked scores.

    Returns:
        (batch, query, output_dim); a tuple of it and, in this order, the weights, the scores and
        the new cache, if any of these was asked for.

    Raises:
        ValueError: if the widths do not divide, or for a mask of another dtype or shape.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> from kerasattn.ops import masks
    >>> x = np.ones((2, 5, 16), "float32")
    >>> attention = layers.MultiHeadAttention(num_heads=4)
    >>> tuple(attention(x, attention_mask=masks.causal(x[..., 0])).shape)
    (2, 5, 16)

    Source: https://arxiv.org/abs/1706.03762, section 3.2.2.
    """

    def __init__(
        self,
        num_heads,
        head_dim=None,
        value_dim=None,
        output_dim=None,
        num_key_value_heads=None,
        dropout=0.0,
        use_bias=True,
        scale=None,
        rotary=None,
        rotary_value=False,
        accumulate_scores=True,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1:
            raise ValueError(f"num_heads must be at least 1, got {num_heads}.")
        if num_heads % (num_key_value_heads or num_heads):
            raise ValueError(
                f"num_key_value_heads must divide num_heads = {num_heads}, got "
                f"{num_key_value_heads}."
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.value_dim = value_dim
        self.output_dim = output_dim
        self.num_key_value_heads = num_key_value_heads
        self.dropout = dropout
        self.use_bias = use_bias
        self.scale = scale
        self.rotary = rotary
        self.rotary_value = rotary_value
        self.accumulate_scores = accumulate_scores
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, query_shape, value_shape=None, key_shape=None):
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        head_dim = self.head_dim or query_shape[-1] // self.num_heads
        if not self.head_dim and query_shape[-1] % self.num_heads:
            raise ValueError(
                f"num_heads = {self.num_heads} must divide the query's width {query_shape[-1]}; "
                "otherwise give head_dim."
            )
        groups = self.num_key_value_heads or self.num_heads
        value_dim = self.value_dim or head_dim
        self._groups = groups
        self._widths = (head_dim, value_dim)

        def dense(width, name, input_width):
            layer = keras.layers.Dense(
                width,
                use_bias=self.use_bias,
                # Each its own: one initializer object would give equal kernels.
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, None, input_width))
            return layer

        self.query = dense(self.num_heads * head_dim, "query", query_shape[-1])
        self.key = dense(groups * head_dim, "key", key_shape[-1])
        self.value = dense(groups * value_dim, "value", value_shape[-1])
        self.output_dense = dense(
            self.output_dim or query_shape[-1], "output", self.num_heads * value_dim
        )
        if self.rotary is not None and not self.rotary.built:
            self.rotary.build((None, None, self.num_heads, head_dim))

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        bias=None,
        query_positions=None,
        key_positions=None,
        previous_scores=None,
        relative_keys=None,
        relative_values=None,
        cache=None,
        cache_index=None,
        return_weights=False,
        return_scores=False,
        training=False,
        mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
    ):
        # Masks that Keras carries along with tensors.
        implicit = [mask if mask is not None else query_mask]
        if value is not None or key is not None:
            implicit = [value_mask, key_mask]
        value = query if value is None else value
        key = value if key is None else key

        queries, keys, values = self._project(query, value, key, cache, cache_index)
        queries = self._split(queries, self.num_heads)  # (b, q, h, d)
        if self.rotary is not None:
            queries = self.rotary(queries, query_positions)
        if cache is None:
            keys, values = self._place(keys, values, key_positions)
            more_masks = [masks.keys(m) for m in implicit if m is not None]
        elif cache_index is None:
            keys, values = cache
            more_masks = []
        else:
            new_keys, new_values = self._place(keys, values, key_positions)
            keys = ops.slice_update(cache[0], (0, 0, 0, cache_index), new_keys)
            values = ops.slice_update(cache[1], (0, 0, cache_index, 0), new_values)
            written = ops.arange(keys.shape[3]) < cache_index + ops.shape(new_keys)[3]
            more_masks = [written[None, None, None, :]]
        for more in more_masks:
            shape = (query.shape[0], self.num_heads, query.shape[1], keys.shape[3])
            if attention_mask is not None:
                more = as_mask(attention_mask, shape) & more
            attention_mask = more

        mixed, weights, scores = dot_product_attention(
            queries,
            keys,
            values,
            attention_mask=attention_mask,
            bias=bias,
            scale=self.scale,
            dropout=self.dropout if training else 0.0,
            seed=self.seed_generator,
            previous_scores=previous_scores,
            relative_keys=relative_keys,
            relative_values=relative_values,
            accumulate_scores=self.accumulate_scores,
            cached=True,
        )  # (b, q, h, v)
        batch, length = ops.shape(mixed)[:2]
        output = self.output_dense(
            ops.reshape(mixed, (batch, length, self.num_heads * self._widths[1]))
        )
        results = [output]
        if return_weights:
            results.append(weights)
        if return_scores:
            results.append(scores)
        if cache_index is not None:
            results.append((keys, values))
        return output if len(results) == 1 else tuple(results)

    def project_key_value(self, value, key=None, key_positions=None):
        """Keys (batch, heads, head_dim, key) and values (batch, heads, key, value_dim).

        As `cache` of a cross-attention they are computed once and used at every step.
        """
        return self._place(
            self.key(value if key is None else key), self.value(value), key_positions
        )

    def prepare(self):
        """The projections of a self-attention as one, for `ops.prepared`; None if it has none."""
        parts = [self.query, self.key, self.value]
        plain = all(type(x) is keras.layers.Dense and not x.quantization_mode for x in parts)
        if not plain or len({x.kernel.shape[0] for x in parts}) > 1:
            return None

        def joined(weights):
            return ops.concatenate([ops.cast(w, self.compute_dtype) for w in weights], axis=-1)

        bias = joined([x.bias for x in parts]) if self.use_bias else 0
        return joined([x.kernel for x in parts]), bias

    def _project(self, query, value, key, cache, cache_index):
        """Queries, keys and values, (batch, length, width) each; None of a cache that is full."""
        if cache is not None and cache_index is None:
            return self.query(query), None, None
        joint = prepared(self)
        if joint is None or value is not query or key is not query:
            return self.query(query), self.key(key), self.value(value)
        kernel, bias = joint
        widths = np.cumsum([self.query.units, self.key.units])
        return ops.split(ops.matmul(query, kernel) + bias, widths.tolist(), axis=-1)

    def _place(self, keys, values, key_positions):
        """From projections (batch, key, width) to what attention keeps."""
        keys, values = self._split(keys, self._groups), self._split(values, self._groups)
        if self.rotary is not None:
            keys = self.rotary(keys, key_positions)
            if self.rotary_value:
                values = self.rotary(values, key_positions)
        return cache_layout(keys, values)

    def empty_cache(self, batch_size, length):
        """Zeros for the keys and values of `length` tokens, to be written with `cache_index`."""
        head_dim, value_dim = self._widths
        keys = ops.zeros((batch_size, self._groups, head_dim, length), self.compute_dtype)
        values = ops.zeros((batch_size, self._groups, length, value_dim), self.compute_dtype)
        return keys, values

    def _split(self, x, num_heads):
        batch, length = ops.shape(x)[:2]
        return ops.reshape(x, (batch, length, num_heads, x.shape[-1] // num_heads))

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "value_dim": self.value_dim,
            "output_dim": self.output_dim,
            "num_key_value_heads": self.num_key_value_heads,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "scale": self.scale,
            "rotary": keras.saving.serialize_keras_object(self.rotary),
            "rotary_value": self.rotary_value,
            "accumulate_scores": self.accumulate_scores,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        rotary = keras.saving.deserialize_keras_object(config["rotary"])
        return cls(**{**config, "rotary": rotary})
