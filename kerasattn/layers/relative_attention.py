import keras
from keras import ops

from kerasattn.ops import relative
from kerasattn.ops.attention import cache_layout, dot_product_attention


@keras.saving.register_keras_serializable(package="kerasattn")
class QueryBiases(keras.layers.Layer):
    """Vectors that stand in for the query, one a head for each term of relative scores.

    As a layer of its own, several `RelativeAttention`s can share it.

    Args:
        num_heads, head_dim: int.
        with_segments: bool, whether there is a third vector, for segments.
        initializer: of the vectors.

    Example:
    >>> from kerasattn import layers
    >>> biases = layers.QueryBiases(num_heads=2, head_dim=4)
    >>> biases.build()
    >>> [tuple(weight.shape) for weight in biases.weights]
    [(2, 4), (2, 4)]

    Source: https://arxiv.org/abs/1901.02860, section 3.3: u and v.
    """

    def __init__(
        self, num_heads, head_dim, with_segments=False, initializer="glorot_uniform", **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.with_segments = with_segments
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape=None):
        def vectors(name):
            return self.add_weight(
                shape=(self.num_heads, self.head_dim),
                initializer=self.initializer.clone(),
                name=name,
            )

        self.content = vectors("content")
        self.position = vectors("position")
        self.segment = vectors("segment") if self.with_segments else None
        self.built = True

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "with_segments": self.with_segments,
            "initializer": keras.initializers.serialize(self.initializer),
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class RelativeAttention(keras.layers.Layer):
    """Attention that knows distances, not places: Transformer-XL's, and XLNet's two streams.

    A query's score of a key is the query's product with the key, plus that with their distance
    and, where segments are told, that with whether they are in the same one; to each factor of the
    query comes a trained vector of its own.

    Args:
        num_heads: int >= 1.
        head_dim: int, width of a head; by default query width / num_heads.
        dropout: float in [0, 1), dropout of the attention weights.
        with_segments: bool, whether scores have the term of segments.
        biases: `QueryBiases` to be shared with other layers, or None for own ones.
        kernel_initializer: of all weights.
        seed: int or None, of the dropout.

    Call arguments:
        query: (batch, query, dim).
        distances: (1, distance, dim), of `RelativeSinusoids`.
        memory: (batch, memory, dim) or None, what stands before the query as keys and values.
        attention_mask: bool, True = may attend, broadcastable to (batch, num_heads, query, memory +
            query). In a causal model it must hide the keys behind each query.
        same_segment: bool (batch, 1, query, memory + query), where with_segments.
        targets: (batch, target, dim), XLNet's query stream, which asks for the tokens at some
            positions without seeing them; or None.
        target_mapping: (batch, target, query), 1 where a target stands in the sequence.
        target_mask: bool, as `attention_mask`, of the query stream.
        cache: the pair of `empty_cache` or of an earlier call, keys and values that stand before
            the query in the place of a memory.

    Returns:
        (batch, query, dim); a tuple of it, with targets (batch, target, dim), and with a cache the
        new cache, which has the query's keys and values too.

    Raises:
        ValueError: if num_heads does not divide the query's width.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x, memory = np.ones((2, 3, 8), "float32"), np.ones((2, 5, 8), "float32")
    >>> distances = layers.RelativeSinusoids()(x, memory)
    >>> tuple(layers.RelativeAttention(num_heads=2)(x, distances, memory).shape)
    (2, 3, 8)

    Source: https://arxiv.org/abs/1901.02860, section 3.3; segments and two streams
    https://arxiv.org/abs/1906.08237, sections 2.3 and 2.5.
    """

    def __init__(
        self,
        num_heads,
        head_dim=None,
        dropout=0.0,
        with_segments=False,
        biases=None,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1:
            raise ValueError(f"num_heads must be at least 1, got {num_heads}.")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        if biases is not None and not biases.built:
            # Not in `build`, where their paths would start with this layer's name.
            biases.build()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.dropout = dropout
        self.with_segments = with_segments
        self.shared_biases = biases
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, query_shape):
        width = query_shape[-1]
        if not self.head_dim and width % self.num_heads:
            raise ValueError(
                f"num_heads = {self.num_heads} must divide the query's width {width}; otherwise "
                "give head_dim."
            )
        head_dim = self.head_dim or width // self.num_heads

        def dense(name, input_dim, units):
            layer = keras.layers.Dense(
                units,
                use_bias=False,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, None, input_dim))
            return layer

        inner = self.num_heads * head_dim
        self.query, self.key, self.value, self.position = (
            dense(name, width, inner) for name in ("query", "key", "value", "position")
        )
        self.output_dense = dense("output", inner, width)
        self.biases = self.shared_biases
        if self.biases is None:
            self.biases = QueryBiases(
                self.num_heads,
                head_dim,
                self.with_segments,
                self.kernel_initializer,
                dtype=self.dtype_policy,
                name="biases",
            )
            self.biases.build()
        if self.with_segments:
            self.segments = self.add_weight(
                shape=(2, self.num_heads, head_dim),  # of the same segment, of another
                initializer=self.kernel_initializer.clone(),
                name="segments",
            )

    def call(
        self,
        query,
        distances,
        memory=None,
        attention_mask=None,
        same_segment=None,
        targets=None,
        target_mapping=None,
        target_mask=None,
        cache=None,
        training=False,
    ):
        content = query
        if memory is not None:
            content = ops.concatenate([ops.cast(memory, query.dtype), query], axis=1)
        keys, values = self._split(self.key(content)), self._split(self.value(content))
        keys, values = cache_layout(keys, values)  # (b, h, d, k), (b, h, k, d)
        if cache is not None:
            keys = ops.concatenate([cache[0], keys], axis=3)
            values = ops.concatenate([cache[1], values], axis=2)
        places = self._split(self.position(distances))[0]  # (distance, heads, head_dim)

        def attend(queries, mask):
            mixed, _, _ = dot_product_attention(
                queries + self.biases.content,
                keys,
                values,
                attention_mask=mask,
                bias=self._bias(queries, places, same_segment, ops.shape(keys)[3]),
                dropout=self.dropout if training else 0.0,
                seed=self.seed_generator,
                cached=True,
            )
            return mixed  # (batch, query, heads, head_dim)

        output = self._join(attend(self._split(self.query(query)), attention_mask))
        results = [output]
        if targets is not None:
            mapping = ops.cast(target_mapping, query.dtype)
            # The targets ask from where they stand, so that distances and masks are the sequence's.
            queries = ops.einsum("btq,bthd->bqhd", mapping, self._split(self.query(targets)))
            mixed = ops.einsum("btq,bqhd->bthd", mapping, attend(queries, target_mask))
            results.append(self._join(mixed))
        if cache is not None:
            results.append((keys, values))
        return results[0] if len(results) == 1 else tuple(results)

    def empty_cache(self, batch_size, length):
        """Zeros for the keys and values of `length` tokens before the first."""
        width = self.query.units // self.num_heads
        keys = ops.zeros((batch_size, self.num_heads, width, length), self.compute_dtype)
        return keys, ops.swapaxes(keys, 2, 3)

    def _bias(self, queries, places, same_segment, num_keys):
        """What distances and segments add to the scores: (batch, heads, query, key), float32."""
        bias = relative.shift(_scores(queries + self.biases.position, places), num_keys)
        if not self.with_segments:
            return bias
        of_segment = _scores(queries + self.biases.segment, self.segments)  # (b, h, q, 2)
        return bias + ops.where(same_segment, of_segment[..., :1], of_segment[..., 1:])

    def _split(self, x):
        batch, length = ops.shape(x)[:2]
        return ops.reshape(x, (batch, length, self.num_heads, x.shape[-1] // self.num_heads))

    def _join(self, x):
        batch, length = ops.shape(x)[:2]
        return self.output_dense(ops.reshape(x, (batch, length, x.shape[-2] * x.shape[-1])))

    def compute_output_spec(self, query, distances, *args, targets=None, **kwargs):
        # Said rather than traced: JAX traces all unknown sizes as one number.
        output = keras.KerasTensor(query.shape, self.compute_dtype)
        if targets is None:
            return output
        return output, keras.KerasTensor(targets.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "dropout": self.dropout,
            "with_segments": self.with_segments,
            "biases": keras.saving.serialize_keras_object(self.shared_biases),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        biases = keras.saving.deserialize_keras_object(config["biases"])
        return cls(**{**config, "biases": biases})


def _scores(queries, keys):
    """(batch, query, heads, dim) and (key, heads, dim) -> (batch, heads, query, key) float32."""
    # In float32 before they are multiplied: a product may be beyond what float16 holds.
    queries = ops.cast(queries, "float32") * queries.shape[-1] ** -0.5
    keys = ops.cast(keys, "float32")
    return ops.matmul(ops.transpose(queries, (0, 2, 1, 3)), ops.transpose(keys, (1, 2, 0)))
