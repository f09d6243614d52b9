import keras
from keras import ops

from kerasattn.ops.prepared import prepared


@keras.saving.register_keras_serializable(package="kerasattn")
class TokenEmbedding(keras.layers.Layer):
    """Turns token ids into vectors and, in reverse, hidden vectors into logits with the same table.

    Args:
        vocabulary_size: int >= 1, the number of rows of the table.
        hidden_dim: int >= 1, the width of the vectors.
        embedding_dim: int >= 1 or None, the table's width where it differs from hidden_dim: then a
            dense sublayer `projection` maps rows to hidden_dim (ALBERT's factorization).
        embeddings_initializer: initializer of the table, None for TruncatedNormal(stddev=0.02).

    Shapes:
        token_ids, integers (...) -> (..., hidden_dim).
        reverse=True: (..., table's width) -> (..., vocabulary_size), float32 in every policy.

    Raises:
        ValueError: if a size is not positive, the ids are not integers, or, in reverse, the width
            is not the table's.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> embedding = layers.TokenEmbedding(vocabulary_size=100, hidden_dim=8)
    >>> x = embedding(np.array([[1, 2, 3]]))
    >>> tuple(x.shape), tuple(embedding(x, reverse=True).shape)
    ((1, 3, 8), (1, 3, 100))

    Source: tied output https://arxiv.org/abs/1608.05859; factorized width
    https://arxiv.org/abs/1909.11942, section 3.1.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        embedding_dim=None,
        embeddings_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if min(vocabulary_size, hidden_dim, 1 if embedding_dim is None else embedding_dim) < 1:
            raise ValueError(
                "vocabulary_size, hidden_dim and embedding_dim must be at least 1, got "
                f"{vocabulary_size}, {hidden_dim} and {embedding_dim}."
            )
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.embedding_dim = embedding_dim
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer or keras.initializers.TruncatedNormal(stddev=0.02)
        )
        self.supports_masking = True

    @property
    def table_dim(self):
        """The table's width, which is what `reverse=True` takes."""
        return self.embedding_dim or self.hidden_dim

    def build(self, input_shape=None):
        self.embeddings = self.add_weight(
            shape=(self.vocabulary_size, self.table_dim),
            initializer=self.embeddings_initializer,
            name="embeddings",
        )
        self.projection = None
        if self.embedding_dim is not None:
            self.projection = keras.layers.Dense(
                self.hidden_dim,
                kernel_initializer=self.embeddings_initializer.clone(),
                dtype=self.dtype_policy,
                name="projection",
            )
            self.projection.build((None, self.embedding_dim))

    def call(self, inputs, reverse=False):
        self._check(inputs, reverse)
        if reverse:
            return self._logits(inputs)
        x = ops.take(self.embeddings, inputs, axis=0)  # (..., table_dim)
        return x if self.projection is None else self.projection(x)  # (..., hidden_dim)

    def compute_output_spec(self, inputs, reverse=False):
        self._check(inputs, reverse)
        if reverse:
            return keras.KerasTensor((*inputs.shape[:-1], self.vocabulary_size), "float32")
        return keras.KerasTensor((*inputs.shape, self.hidden_dim), self.compute_dtype)

    def _check(self, inputs, reverse):
        if reverse and inputs.shape[-1] != self.table_dim:
            raise ValueError(
                f"reverse=True needs vectors as wide as the table, (..., {self.table_dim}), got "
                f"shape {tuple(inputs.shape)}. Project them to that width first."
            )
        if not reverse and not keras.backend.is_int_dtype(inputs.dtype):
            dtype = keras.backend.standardize_dtype(inputs.dtype)
            raise ValueError(
                f"Token ids must be integers, got dtype {dtype}. Cast them to int32; to get logits "
                "from hidden vectors, call with reverse=True."
            )

    def _logits(self, hidden):
        table = prepared(self)
        if table is None or hidden.shape[0] == 1:  # one vector is multiplied faster as the table is
            table = ops.transpose(self.embeddings)
        return ops.cast(ops.matmul(hidden, table), "float32")  # (..., vocabulary_size)

    def prepare(self):
        """The table as logits are multiplied by it, for `ops.prepared`."""
        return ops.cast(ops.transpose(self.embeddings), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "embedding_dim": self.embedding_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
