import keras
import numpy as np
from keras import ops

from kerasattn.ops import positions


@keras.saving.register_keras_serializable(package="kerasattn")
class RelativePositionEmbedding(keras.layers.Layer):
    """A vector for each distance of key from query, clipped, to add to keys and values.

    Learned vectors are Shaw's, fixed sinusoids NEZHA's: row d + max_distance of the sinusoidal
    table for distance d.

    Args:
        embedding_dim: int >= 1, the width: that of one head's keys and values.
        max_distance: int >= 0, from which on all distances share a vector, on either side.
        learned: bool, whether the vectors are trained or fixed sinusoids.
        embeddings_initializer: initializer of learned vectors, None for
            TruncatedNormal(stddev=0.02).

    Call arguments:
        query: tensor (batch, query, ...), of which only the length is read.
        key: tensor (batch, key, ...), of which only the length is read; None for the query.
        query_positions, key_positions: integer (batch or 1, length) or (length,), or None for
            consecutive ones from 0.

    Shapes:
        -> (query, key, embedding_dim), or (batch, query, key, embedding_dim) if positions have a
        batch.

    Raises:
        ValueError: if embedding_dim or max_distance is out of range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> layer = layers.RelativePositionEmbedding(embedding_dim=16, max_distance=64)
    >>> tuple(layer(np.zeros((2, 5, 8)), np.zeros((2, 7, 8))).shape)
    (5, 7, 16)

    Source: https://arxiv.org/abs/1803.02155, section 3.2; https://arxiv.org/abs/1909.00204,
    section 2.1.
    """

    def __init__(
        self,
        embedding_dim,
        max_distance=64,
        learned=False,
        embeddings_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if embedding_dim < 1 or max_distance < 0:
            raise ValueError(
                "embedding_dim must be at least 1 and max_distance at least 0, got "
                f"embedding_dim={embedding_dim}, max_distance={max_distance}."
            )
        self.embedding_dim = embedding_dim
        self.max_distance = max_distance
        self.learned = learned
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer or keras.initializers.TruncatedNormal(stddev=0.02)
        )
        self.supports_masking = True

    def build(self, query_shape):
        if self.learned:
            self.embeddings = self.add_weight(
                shape=(2 * self.max_distance + 1, self.embedding_dim),
                initializer=self.embeddings_initializer,
                name="embeddings",
            )

    def call(self, query, key=None, query_positions=None, key_positions=None):
        if query_positions is None:
            query_positions = positions.consecutive(query)
        if key_positions is None:
            key_positions = positions.consecutive(query if key is None else key)
        distances = positions.relative(query_positions, key_positions)  # (..., query, key)
        numbers = positions.clipped(distances, self.max_distance)
        if self.learned:
            return ops.take(self.embeddings, numbers, axis=0)
        rows = np.arange(2 * self.max_distance + 1, dtype="int32")
        table = positions.sinusoidal(rows, self.embedding_dim)
        return ops.take(ops.cast(table, self.compute_dtype), numbers, axis=0)

    def compute_mask(self, *args, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "embedding_dim": self.embedding_dim,
            "max_distance": self.max_distance,
            "learned": self.learned,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
