import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class CharacterConvolution(keras.layers.Layer):
    """A vector for each word from its characters: a convolution over them, and the maximum.

    Args:
        vocabulary_size: int >= 1, number of characters; 0 is padding.
        embedding_dim: int >= 1, of a character.
        filters: int >= 1, width of a word's vector.
        kernel_size: odd int >= 1, characters that a filter sees.

    Shapes:
        character ids, int (batch, length, characters) -> (batch, length, filters); zeros for a word
        without characters.

    Raises:
        ValueError: for sizes below 1, an even kernel_size, or ids of another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> convolution = layers.CharacterConvolution(9, embedding_dim=4, filters=6)
    >>> tuple(convolution(np.array([[[3, 4, 5], [6, 0, 0]]])).shape)
    (1, 2, 6)

    Source: https://arxiv.org/abs/1603.01354 (Ma and Hovy 2016), section 2.1.
    """

    def __init__(self, vocabulary_size, embedding_dim, filters, kernel_size=3, **kwargs):
        super().__init__(**kwargs)
        if min(vocabulary_size, embedding_dim, filters, kernel_size) < 1 or kernel_size % 2 == 0:
            raise ValueError(
                "vocabulary_size, embedding_dim, filters and kernel_size must be at least 1, and "
                f"kernel_size odd, got {vocabulary_size}, {embedding_dim}, {filters}, "
                f"{kernel_size}."
            )
        self.vocabulary_size, self.embedding_dim = vocabulary_size, embedding_dim
        self.filters, self.kernel_size = filters, kernel_size

    def build(self, input_shape):
        if len(input_shape) != 3:
            raise ValueError(
                "character ids must be (batch, length, characters), got shape "
                f"{tuple(input_shape)}."
            )
        self.embedding = keras.layers.Embedding(
            self.vocabulary_size, self.embedding_dim, dtype=self.dtype_policy, name="embedding"
        )
        self.embedding.build(input_shape)
        # A convolution is a product with the neighbours side by side, which XLA is fast at.
        self.projection = keras.layers.Dense(
            self.filters, dtype=self.dtype_policy, name="projection"
        )
        self.projection.build((None, self.kernel_size * self.embedding_dim))

    def call(self, character_ids):
        real = ops.not_equal(character_ids, 0)[..., None]
        x = self.embedding(character_ids)
        x = x * ops.cast(real, x.dtype)  # (batch, length, characters, embedding)
        reach = self.kernel_size // 2
        size = ops.shape(x)[2]
        wide = ops.pad(x, [[0, 0], [0, 0], [reach, reach], [0, 0]])
        neighbours = [wide[:, :, i : i + size] for i in range(self.kernel_size)]
        x = self.projection(ops.concatenate(neighbours, axis=-1))
        lowest = ops.cast(-1e4, x.dtype)  # that half precision has too
        x = ops.max(ops.where(real, x, lowest), axis=2)
        return ops.where(ops.any(real, axis=2), x, ops.zeros_like(x))

    def compute_output_spec(self, character_ids):
        return keras.KerasTensor((*character_ids.shape[:2], self.filters), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "filters": self.filters,
            "kernel_size": self.kernel_size,
        }
