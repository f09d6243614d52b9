import keras
from keras import ops

from kerasattn.ops import positions


@keras.saving.register_keras_serializable(package="kerasattn")
class RelativePositionBias(keras.layers.Layer):
    """A trained number for each head and bucket of distances, added to attention's scores (T5).

    Near distances have a bucket each, far ones share buckets that widen with the logarithm. It is
    made for self-attention: in cross-attention, positions of two texts have no distance.

    Args:
        num_heads: int >= 1.
        num_buckets: int, rows of the table, even if bidirectional.
        max_distance: int, from which on all distances share the last bucket.
        bidirectional: bool. True for encoders: half the buckets are for keys that stand later.
            False for decoders: all buckets are for keys that stand before.
        embeddings_initializer: initializer of the table, None for TruncatedNormal(stddev=0.02).

    Call arguments:
        query: tensor (batch, query, ...), of which only the length is read.
        key: tensor (batch, key, ...), of which only the length is read; None for the query.
        query_positions, key_positions: integer (batch or 1, length) or (length,), or None for
            consecutive ones from 0. A decoder with a cache gives the position of its one query,
            and 0, 1, ... for the cache's slots.

    Shapes:
        -> (1, num_heads, query, key), or (batch, num_heads, query, key) if positions have a batch.
        float32 in every policy, as scores are.

    Raises:
        ValueError: if there are too few buckets or max_distance is within the exact ones.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> layer = layers.RelativePositionBias(num_heads=4)
    >>> x = np.zeros((2, 7, 16))
    >>> tuple(layer(x).shape)
    (1, 4, 7, 7)
    >>> tuple(layer(x[:, :1], x, query_positions=np.array([6])).shape)
    (1, 4, 1, 7)

    Source: https://arxiv.org/abs/1910.10683, section 2.1.
    """

    def __init__(
        self,
        num_heads,
        num_buckets=32,
        max_distance=128,
        bidirectional=True,
        embeddings_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1:
            raise ValueError(f"num_heads must be at least 1, got {num_heads}.")
        positions.bucket_table(num_buckets, max_distance, bidirectional)  # raises if it cannot be
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer or keras.initializers.TruncatedNormal(stddev=0.02)
        )
        self.supports_masking = True

    def build(self, query_shape):
        self.embeddings = self.add_weight(
            shape=(self.num_buckets, self.num_heads),
            initializer=self.embeddings_initializer,
            autocast=False,
            name="embeddings",
        )

    def call(self, query, key=None, query_positions=None, key_positions=None):
        if query_positions is None:
            query_positions = positions.consecutive(query)
        if key_positions is None:
            key_positions = positions.consecutive(query if key is None else key)
        distances = positions.relative(query_positions, key_positions)  # (..., query, key)
        numbers = positions.buckets(
            distances, self.num_buckets, self.max_distance, self.bidirectional
        )
        bias = ops.take(self.embeddings, numbers, axis=0)  # (..., query, key, heads)
        bias = bias if len(bias.shape) == 4 else bias[None]
        return ops.transpose(bias, (0, 3, 1, 2))

    def compute_output_spec(self, query, key=None, query_positions=None, key_positions=None):
        def places(positions, x):
            return (1, x.shape[1]) if positions is None else (1, *positions.shape)[-2:]

        query_batch, query_length = places(query_positions, query)
        key_batch, key_length = places(key_positions, query if key is None else key)
        batch = key_batch if query_batch == 1 else query_batch
        return keras.KerasTensor((batch, self.num_heads, query_length, key_length), "float32")

    def compute_mask(self, *args, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
