import keras
from keras import ops

from kerasattn.ops import activations


@keras.saving.register_keras_serializable(package="kerasattn")
class CharacterFilters(keras.layers.Layer):
    """A vector for each word from its characters: convolutions of several widths, and their maxima.

    All places count where a filter fits, also those of characters that fill a word up. (Those of
    `CharacterConvolution` reach over a word's ends, and padding is none of the word's.)

    Args:
        vocabulary_size: int >= 1, number of characters; 0 stands for nothing, a vector of zeros.
        embedding_dim: int >= 1, of a character.
        filters: pairs of ints >= 1, the characters that filters see and how many filters see so.
        activation: of the maxima.

    Shapes:
        character ids, int (batch, length, characters), no fewer than the widest filter sees
        -> (batch, length, number of all filters).

    Raises:
        ValueError: for sizes below 1, no filters, too few characters, or ids of another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> words = layers.CharacterFilters(9, embedding_dim=4, filters=[(1, 3), (2, 5)])
    >>> tuple(words(np.array([[[3, 4, 5], [6, 1, 1]]])).shape)
    (1, 2, 8)

    Source: https://arxiv.org/abs/1508.06615 (Kim et al. 2016), section 2.2.
    """

    def __init__(self, vocabulary_size, embedding_dim, filters, activation="tanh", **kwargs):
        super().__init__(**kwargs)
        filters = [list(pair) for pair in filters]
        pairs = bool(filters) and all(len(pair) == 2 for pair in filters)
        if not pairs or min(vocabulary_size, embedding_dim, *map(min, filters)) < 1:
            raise ValueError(
                "vocabulary_size and embedding_dim must be at least 1, and filters pairs of (width,"
                f" number) of at least 1, got {vocabulary_size}, {embedding_dim}, {filters}."
            )
        self.vocabulary_size, self.embedding_dim = vocabulary_size, embedding_dim
        self.filters = filters
        self.activation = activations.get(activation)

    def build(self, input_shape):
        widest = max(width for width, _ in self.filters)
        if len(input_shape) != 3 or (input_shape[2] or widest) < widest:
            raise ValueError(
                f"character ids must be (batch, length, at least {widest} characters), got shape "
                f"{tuple(input_shape)}."
            )
        self.embedding = keras.layers.Embedding(
            self.vocabulary_size, self.embedding_dim, dtype=self.dtype_policy, name="embedding"
        )
        self.embedding.build(input_shape)
        self.kernels, self.biases = [], []
        for i, (width, number) in enumerate(self.filters):
            shape = (width, self.embedding_dim, number)
            self.kernels.append(self.add_weight(shape, "glorot_uniform", name=f"kernel_{i}"))
            self.biases.append(self.add_weight((number,), "zeros", name=f"bias_{i}"))

    def call(self, character_ids):
        x = self.embedding(character_ids)  # (batch, length, characters, embedding)
        x = x * ops.cast(ops.not_equal(character_ids, 0), x.dtype)[..., None]
        found = []
        for (width, number), kernel, bias in zip(
            self.filters, self.kernels, self.biases, strict=True
        ):
            # A convolution is a product with the neighbours side by side, which XLA is fast at.
            places = x.shape[2] - width + 1 if x.shape[2] else ops.shape(x)[2] - width + 1
            neighbours = ops.concatenate([x[:, :, i : i + places] for i in range(width)], axis=-1)
            kernel = ops.reshape(kernel, (width * self.embedding_dim, number))
            best = ops.max(ops.matmul(neighbours, kernel), axis=2)  # (batch, length, number)
            found.append(best + bias)
        return self.activation(ops.concatenate(found, axis=-1))

    def compute_output_spec(self, character_ids):
        number = sum(number for _, number in self.filters)
        return keras.KerasTensor((*character_ids.shape[:2], number), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "filters": self.filters,
            "activation": activations.serialize(self.activation),
        }
