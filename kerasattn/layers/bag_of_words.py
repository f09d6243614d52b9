import keras
from keras import ops

from kerasattn.ops.scores import dot


@keras.saving.register_keras_serializable(package="kerasattn")
class BagOfWords(keras.layers.Layer):
    """A vector for each sentence: the sum of its words' vectors, weighted by where they stand.

    With positions, number k of dim of the vector of word j of J counts
    (1 - j/J) - (k/dim) (1 - 2j/J) times, so that the order of words tells.

    Args:
        vocabulary_size, dim: ints >= 1.
        position_encoding: bool.
        pad_id: int, of what is no word; a sentence without a word is zeros.
        embeddings_initializer: of the words' vectors.

    Call arguments:
        token_ids: int (..., words).

    Shapes:
        (..., words) -> (..., dim).

    Raises:
        ValueError: for sizes below 1, or ids that are not integers.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> bag = layers.BagOfWords(10, dim=4)
    >>> tuple(bag(np.array([[[3, 4, 0], [0, 0, 0]]])).shape)
    (1, 2, 4)

    Source: https://arxiv.org/abs/1503.08895 (Sukhbaatar et al. 2015), section 4.1.
    """

    def __init__(
        self,
        vocabulary_size,
        dim,
        position_encoding=True,
        pad_id=0,
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, size in dict(vocabulary_size=vocabulary_size, dim=dim).items():
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}.")
        self.vocabulary_size, self.dim = vocabulary_size, dim
        self.position_encoding, self.pad_id = position_encoding, pad_id
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape):
        shape = (self.vocabulary_size, self.dim)
        self.embeddings = self.add_weight(shape, self.embeddings_initializer, name="embeddings")

    def call(self, token_ids):
        dtype = keras.backend.standardize_dtype(token_ids.dtype)
        if "int" not in dtype:
            raise ValueError(f"token_ids takes integers, got the dtype {dtype}.")
        real = ops.cast(ops.not_equal(token_ids, self.pad_id), self.compute_dtype)
        vectors = ops.take(self.embeddings, token_ids, axis=0) * real[..., None]
        if not self.position_encoding:
            return ops.sum(vectors, axis=-2)
        # (1 - j/J) - (k/d)(1 - 2j/J): sums over words of what is without k, and of what is with it.
        place = ops.cumsum(real, axis=-1) / ops.maximum(ops.sum(real, axis=-1, keepdims=True), 1)
        part = ops.arange(1, self.dim + 1, dtype=self.compute_dtype) / self.dim
        return ops.sum(vectors * (1 - place)[..., None], axis=-2) - part * ops.sum(
            vectors * (1 - 2 * place)[..., None], axis=-2
        )

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "dim": self.dim,
            "position_encoding": self.position_encoding,
            "pad_id": self.pad_id,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class WordScores(keras.layers.Layer):
    """How well each word says what was found, by the words' vectors of a `BagOfWords`.

    Args:
        words: a `BagOfWords`.

    Call arguments:
        hidden: (batch, dim).

    Shapes:
        (batch, dim) -> float32 (batch, vocabulary_size).

    Raises:
        ValueError: for inputs of another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> bag = layers.BagOfWords(10, dim=4)
    >>> tuple(layers.WordScores(bag)(bag(np.array([[3, 4, 0]]))).shape)
    (1, 10)

    Source: https://arxiv.org/abs/1503.08895, equation 3.
    """

    def __init__(self, words, **kwargs):
        super().__init__(**kwargs)
        self.words = words

    def build(self, input_shape):
        if len(input_shape) != 2:
            raise ValueError(f"hidden takes the shape (batch, dim), got {tuple(input_shape)}.")
        if not self.words.built:
            self.words.build((None, None))
            self.words.built = True

    def call(self, hidden):
        return dot(hidden, self.words.embeddings)

    def compute_output_spec(self, hidden):
        return keras.KerasTensor((hidden.shape[0], self.words.vocabulary_size), "float32")

    def get_config(self):
        return {
            **super().get_config(),
            "words": keras.saving.serialize_keras_object(self.words),
        }

    @classmethod
    def from_config(cls, config):
        words = keras.saving.deserialize_keras_object(config["words"])
        return cls(**{**config, "words": words})
