import keras

from kerasattn.layers.feed_forward import FeedForward
from kerasattn.layers.relative_attention import RelativeAttention
from kerasattn.ops import seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class RelativeTransformerBlock(keras.layers.Layer):
    """One layer of Transformer-XL or XLNet: attention by distances, to a memory too, feed-forward.

    Args:
        num_heads: int, heads of the attention.
        intermediate_dim: int, width inside the feed-forward part.
        head_dim, with_segments, biases: see `RelativeAttention`.
        activation: of the feed-forward part.
        dropout: float in [0, 1), dropout of each part's output and inside the feed-forward part.
        attention_dropout: float in [0, 1), dropout of the attention weights.
        norm: "post", after each sum, or "pre", before each part.
        layer_norm_epsilon: float > 0.
        kernel_initializer: of all weights.
        seed: int or None, of the dropouts.

    Call arguments:
        inputs: (batch, length, dim).
        distances, memory, attention_mask, same_segment, targets, target_mapping, target_mask,
            cache: as `RelativeAttention`. Without a target_mapping the targets are given back as
            they are.

    Returns:
        (batch, length, dim); a tuple of it, with targets (batch, target, dim), and with a cache the
        new cache.

    Raises:
        ValueError: for another norm.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x = np.ones((2, 3, 8), "float32")
    >>> block = layers.RelativeTransformerBlock(num_heads=2, intermediate_dim=16)
    >>> tuple(block(x, layers.RelativeSinusoids()(x)).shape)
    (2, 3, 8)

    Source: https://arxiv.org/abs/1901.02860, section 3.3; https://arxiv.org/abs/1906.08237,
    section 2.5.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        head_dim=None,
        with_segments=False,
        biases=None,
        activation="gelu",
        dropout=0.0,
        attention_dropout=0.0,
        norm="post",
        layer_norm_epsilon=1e-12,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f'norm is "post" or "pre", got {norm!r}.')
        self.norm = norm
        kernel_initializer = keras.initializers.get(kernel_initializer)
        self._config = dict(
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            head_dim=head_dim,
            with_segments=with_segments,
            biases=keras.saving.serialize_keras_object(biases),
            activation=activation
            if isinstance(activation, str)
            else keras.saving.serialize_keras_object(activation),
            dropout=dropout,
            attention_dropout=attention_dropout,
            norm=norm,
            layer_norm_epsilon=layer_norm_epsilon,
            kernel_initializer=keras.initializers.serialize(kernel_initializer),
            seed=seed,
        )

        def normalization(name):
            return keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name=name
            )

        self.attention = RelativeAttention(
            num_heads,
            head_dim,
            attention_dropout,
            with_segments,
            biases,
            kernel_initializer.clone(),
            seed=seeds.child(seed, "attention"),
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_norm = normalization("attention_norm")
        self.feed_forward = FeedForward(
            intermediate_dim,
            activation=activation,
            dropout=dropout,
            kernel_initializer=kernel_initializer.clone(),
            seed=seeds.child(seed, "feed_forward"),
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.feed_forward_norm = normalization("feed_forward_norm")
        self.dropout = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "dropout"), dtype=self.dtype_policy
        )

    def build(self, inputs_shape):
        self.attention.build(inputs_shape)
        self.attention_norm.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_norm.build(inputs_shape)

    def call(
        self,
        inputs,
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
        pre = self.norm == "pre"

        def before(x):
            return None if x is None else self.attention_norm(x) if pre else x

        def add(x, part, norm):
            x = x + self.dropout(part, training=training)
            return x if pre else norm(x)

        def feed_forward(x):
            read = self.feed_forward_norm(x) if pre else x
            part = self.feed_forward(read, training=training)
            return add(x, part, self.feed_forward_norm)

        asked = None if target_mapping is None else targets
        mixed = self.attention(
            before(inputs),
            distances,
            memory=before(memory),
            attention_mask=attention_mask,
            same_segment=same_segment,
            targets=before(asked),
            target_mapping=target_mapping,
            target_mask=target_mask,
            cache=cache,
            training=training,
        )
        mixed = mixed if isinstance(mixed, tuple) else (mixed,)
        streams = [inputs] if asked is None else [inputs, asked]
        results = [
            feed_forward(add(x, part, self.attention_norm)) for x, part in zip(streams, mixed)
        ]
        if targets is not None and asked is None:
            results.append(targets)
        if cache is not None:
            results.append(mixed[-1])
        return results[0] if len(results) == 1 else tuple(results)

    def compute_output_spec(self, inputs, distances, *args, targets=None, **kwargs):
        # Said rather than traced, as in `RelativeAttention`.
        output = keras.KerasTensor(inputs.shape, self.compute_dtype)
        if targets is None:
            return output
        return output, keras.KerasTensor(targets.shape, self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), **self._config}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("biases", "activation"):
            if isinstance(config[name], dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        return cls(**config)
