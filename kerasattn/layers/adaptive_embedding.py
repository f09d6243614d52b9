"""Tables for large vocabularies: rare tokens have narrow vectors, on the way in and out."""

import itertools

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class AdaptiveEmbedding(keras.layers.Layer):
    """Turns token ids, frequent ones first, into vectors that are narrower the rarer the token is.

    Args:
        vocabulary_size: int >= 1, number of tokens.
        hidden_dim: int >= 1, width of what comes out.
        embedding_dim: int >= 1, width of the frequent tokens' vectors; by default hidden_dim.
        cutoffs: rising ints, where clusters of tokens begin, but for the first one at 0.
        divisor: int >= 1, by which the width falls from one cluster to the next. With 1 there is
            one table for all.
        initializer: of tables and projections.

    Shapes:
        token ids (...) -> (..., hidden_dim), times the root of hidden_dim.

    Raises:
        ValueError: for cutoffs that do not rise within the vocabulary, or widths that fall to 0.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> embedding = layers.AdaptiveEmbedding(100, hidden_dim=8, cutoffs=(10, 40), divisor=2)
    >>> tuple(embedding(np.array([[1, 50, 20]])).shape)
    (1, 3, 8)

    Source: https://arxiv.org/abs/1809.10853, section 3.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        embedding_dim=None,
        cutoffs=(),
        divisor=1,
        initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        edges = [0, *cutoffs, vocabulary_size]
        if any(low >= high for low, high in itertools.pairwise(edges)):
            raise ValueError(
                f"cutoffs must rise between 0 and vocabulary_size = {vocabulary_size}, got "
                f"{list(cutoffs)}."
            )
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.embedding_dim = embedding_dim or hidden_dim
        self.cutoffs = list(cutoffs)
        self.divisor = divisor
        self.initializer = keras.initializers.get(initializer)
        self.edges = edges
        self.widths = [self.embedding_dim // divisor**i for i in range(len(edges) - 1)]
        if divisor < 1 or min(self.widths) < 1:
            raise ValueError(
                f"The clusters' widths must be at least 1, got {self.widths}: take fewer cutoffs "
                "or a smaller divisor."
            )

    @property
    def table_shapes(self):
        """(tokens, width) of each table."""
        if self.divisor == 1:
            return [(self.vocabulary_size, self.embedding_dim)]
        sizes = [high - low for low, high in itertools.pairwise(self.edges)]
        return list(zip(sizes, self.widths, strict=True))

    @property
    def is_projected(self):
        """Whether vectors go through a kernel (width, hidden_dim)."""
        return self.divisor > 1 or self.embedding_dim != self.hidden_dim

    def build(self, input_shape=None):
        self.tables, self.projections = [], []
        for i, shape in enumerate(self.table_shapes):
            table = self.add_weight(
                shape=shape, initializer=self.initializer.clone(), name=f"embeddings_{i}"
            )
            self.tables.append(table)
            if self.is_projected:
                projection = self.add_weight(
                    shape=(shape[1], self.hidden_dim),
                    initializer=self.initializer.clone(),
                    name=f"projection_{i}",
                )
                self.projections.append(projection)
        self.built = True

    def call(self, token_ids):
        vectors = None
        low = 0
        for i, (size, _) in enumerate(self.table_shapes):
            place = token_ids - low
            found = ops.take(self.tables[i], ops.clip(place, 0, size - 1), axis=0)
            if self.is_projected:
                found = ops.matmul(found, self.projections[i])  # (..., hidden_dim)
            vectors = found if i == 0 else ops.where((place >= 0)[..., None], found, vectors)
            low += size
        return vectors * ops.cast(self.hidden_dim**0.5, vectors.dtype)

    def compute_output_spec(self, token_ids):
        return keras.KerasTensor((*token_ids.shape, self.hidden_dim), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "embedding_dim": self.embedding_dim,
            "cutoffs": self.cutoffs,
            "divisor": self.divisor,
            "initializer": keras.initializers.serialize(self.initializer),
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class AdaptiveSoftmax(keras.layers.Layer):
    """Log-probabilities of tokens: of the frequent ones and of each cluster, then within clusters.

    Args:
        embedding: `AdaptiveEmbedding`, whose clusters and widths these are.
        tied: bool, whether its tables are used.
        tied_projections: bools, one a cluster, whether its projections are used; by default as
            `tied`.

    Shapes:
        (..., hidden_dim) -> (..., vocabulary_size), float32 in every policy.

    Raises:
        ValueError: if tied_projections are not as many as there are clusters.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> embedding = layers.AdaptiveEmbedding(100, hidden_dim=8, cutoffs=(10, 40), divisor=2)
    >>> log_probs = layers.AdaptiveSoftmax(embedding)(np.ones((1, 3, 8), "float32"))
    >>> print(np.exp(np.array(log_probs)).sum(axis=-1).round(3))
    [[1. 1. 1.]]

    Source: https://arxiv.org/abs/1609.04309, section 4.2.
    """

    def __init__(self, embedding, tied=True, tied_projections=None, **kwargs):
        super().__init__(**kwargs)
        count = len(embedding.widths)
        if tied_projections is not None and len(tied_projections) != count:
            raise ValueError(
                f"tied_projections must be {count} bools, one a cluster, got {tied_projections}."
            )
        if not embedding.built:
            # Not in `build`, where the tables' paths would start with this layer's name.
            embedding.build()
        self.embedding = embedding
        self.tied = tied
        self.tied_projections = None if tied_projections is None else list(tied_projections)

    def build(self, input_shape):
        embedding = self.embedding
        initializer = embedding.initializer

        def own(name, *shape):
            return self.add_weight(shape=shape, initializer=initializer.clone(), name=name)

        def bias(name, size):
            # Added to float32 logits, so kept out of the policy's compute dtype.
            return self.add_weight(shape=(size,), initializer="zeros", autocast=False, name=name)

        shapes, count = embedding.table_shapes, len(embedding.widths)
        self.tables = embedding.tables
        if not self.tied:
            self.tables = [own(f"embeddings_{i}", *shape) for i, shape in enumerate(shapes)]
        self.biases = [bias(f"bias_{i}", size) for i, (size, _) in enumerate(shapes)]
        if count > 1:
            self.cluster_embeddings = own("cluster_embeddings", count - 1, embedding.embedding_dim)
            self.cluster_bias = bias("cluster_bias", count - 1)
        self.projections = []
        for i, width in enumerate(embedding.widths if embedding.is_projected else ()):
            width = embedding.embedding_dim if embedding.divisor == 1 else width
            tied = self.tied if self.tied_projections is None else self.tied_projections[i]
            shared = embedding.projections[0 if embedding.divisor == 1 else i]
            self.projections.append(
                shared if tied else own(f"projection_{i}", width, embedding.hidden_dim)
            )

    def call(self, hidden):
        edges = self.embedding.edges
        first = self._logits(hidden, 0)
        if len(edges) == 2:
            return ops.log_softmax(first)
        clusters = ops.matmul(self._narrow(hidden, 0), ops.transpose(self.cluster_embeddings))
        clusters = ops.cast(clusters, "float32") + ops.cast(self.cluster_bias, "float32")
        first = ops.log_softmax(ops.concatenate([first, clusters], axis=-1))
        log_probs = [first[..., : edges[1]]]
        for i in range(1, len(edges) - 1):
            of_cluster = first[..., edges[1] + i - 1][..., None]
            log_probs.append(of_cluster + ops.log_softmax(self._logits(hidden, i)))
        return ops.concatenate(log_probs, axis=-1)  # (..., vocabulary)

    def _narrow(self, hidden, i):
        """As wide as a cluster's vectors."""
        if not self.projections:
            return hidden
        return ops.matmul(hidden, ops.transpose(self.projections[i]))

    def _logits(self, hidden, i):
        """Of a cluster's tokens among themselves: (..., tokens) float32."""
        part, table = slice(None), min(i, len(self.tables) - 1)
        if self.embedding.divisor == 1:
            part = slice(*self.embedding.edges[i : i + 2])
        rows = ops.convert_to_tensor(self.tables[table])[part]
        logits = ops.matmul(self._narrow(hidden, i), ops.transpose(ops.cast(rows, hidden.dtype)))
        return ops.cast(logits, "float32") + ops.cast(self.biases[table], "float32")[part]

    def compute_output_spec(self, hidden):
        return keras.KerasTensor((*hidden.shape[:-1], self.embedding.vocabulary_size), "float32")

    def get_config(self):
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "tied": self.tied,
            "tied_projections": self.tied_projections,
        }

    @classmethod
    def from_config(cls, config):
        embedding = keras.saving.deserialize_keras_object(config["embedding"])
        return cls(**{**config, "embedding": embedding})
