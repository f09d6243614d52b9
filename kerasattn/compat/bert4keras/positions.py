"""bert4keras' layers of positions."""

import keras
from keras import ops

from kerasattn.compat.bert4keras.masking import first
from kerasattn.ops import positions

MODES = {"add": "add", "mul": "multiply", "concat": "concatenate", "zero": None}


class _Positions(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def _table(self, initializer):
        return self.add_weight(
            (self.input_dim, self.output_dim),
            keras.initializers.get(initializer),
            name="embeddings",
        )


class _Merged(_Positions):
    """Positions that join the features of their input."""

    def _set_mode(self, merge_mode, custom_position_ids):
        if merge_mode not in MODES:
            raise ValueError(f"merge_mode must be one of {list(MODES)}, got {merge_mode!r}.")
        self.merge_mode, self.custom_position_ids = merge_mode, custom_position_ids

    def call(self, inputs, mask=None):
        if self.custom_position_ids:
            inputs, position_ids = inputs
        else:
            position_ids = positions.consecutive(inputs)
        return positions.merge(inputs, self._vectors(position_ids), MODES[self.merge_mode])

    def compute_mask(self, inputs, mask=None):
        return first(mask)


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class PositionEmbedding(_Merged):
    """A trained vector for each position; `layers.LearnedPositionEmbedding` for new code.

    Args:
        input_dim: int, rows of the table.
        output_dim: int, width.
        merge_mode: "add", "mul" (x (1 + E)), "concat" or "zero", E alone.
        hierarchical: True or a float in (0, 1) reads input_dim^2 positions from the table.
        embeddings_initializer: of the table.
        custom_position_ids: bool, whether inputs are a list of x and the positions.

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import PositionEmbedding
    >>> tuple(PositionEmbedding(4, 8, hierarchical=True)(np.ones((2, 9, 8), "float32")).shape)
    (2, 9, 8)
    """

    def __init__(
        self,
        input_dim,
        output_dim,
        merge_mode="add",
        hierarchical=None,
        embeddings_initializer="zeros",
        custom_position_ids=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._set_mode(merge_mode, custom_position_ids)
        self.input_dim, self.output_dim = input_dim, output_dim
        self.hierarchical = hierarchical
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape):
        self.embeddings = self._table(self.embeddings_initializer)

    def _vectors(self, position_ids):
        position_ids = ops.cast(position_ids, "int32")
        if self.hierarchical:
            alpha = 0.4 if self.hierarchical is True else self.hierarchical
            return positions.hierarchical(self.embeddings, position_ids, alpha)
        positions.check_range(position_ids, self.input_dim)
        return ops.take(self.embeddings, position_ids, axis=0)

    def get_config(self):
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "merge_mode": self.merge_mode,
            "hierarchical": self.hierarchical,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "custom_position_ids": self.custom_position_ids,
        }


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class SinusoidalPositionEmbedding(_Merged):
    """Sines and cosines of positions, side by side; `layers.SinusoidalPositionEncoding`.

    Args:
        output_dim: int, width.
        merge_mode: "add", "mul" (x (1 + PE)), "concat" or "zero", PE alone.
        custom_position_ids: bool, whether inputs are a list of x and the positions, which may be
            fractions.

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import SinusoidalPositionEmbedding
    >>> tuple(SinusoidalPositionEmbedding(6, merge_mode="zero")(np.ones((2, 9, 8))).shape)
    (1, 9, 6)
    """

    def __init__(self, output_dim, merge_mode="add", custom_position_ids=False, **kwargs):
        # Positions may be fractions, which must not be cast to half precision.
        super().__init__(autocast=False, **kwargs)
        self._set_mode(merge_mode, custom_position_ids)
        self.output_dim = output_dim

    def call(self, inputs, mask=None):
        if self.custom_position_ids:
            inputs = [ops.cast(inputs[0], self.compute_dtype), inputs[1]]
        else:
            inputs = ops.cast(inputs, self.compute_dtype)
        return super().call(inputs)

    def _vectors(self, position_ids):
        return positions.sinusoidal(position_ids, self.output_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "output_dim": self.output_dim,
            "merge_mode": self.merge_mode,
            "custom_position_ids": self.custom_position_ids,
        }


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class RelativePositionEmbedding(_Positions):
    """A vector for each clipped distance; `layers.RelativePositionEmbedding` for new code.

    Args:
        input_dim: int, rows of the table; distances end at +-(input_dim - 1) // 2.
        output_dim: int, width.
        embeddings_initializer: of the table.

    Call arguments:
        inputs: list of query and value (batch, length, ...), of which the lengths are read.

    Shapes:
        -> (query, value, output_dim).

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import RelativePositionEmbedding
    >>> x = np.ones((2, 5, 8), "float32")
    >>> tuple(RelativePositionEmbedding(9, 4)([x, x]).shape)
    (5, 5, 4)
    """

    def __init__(self, input_dim, output_dim, embeddings_initializer="zeros", **kwargs):
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = input_dim, output_dim
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape):
        self.embeddings = self._table(self.embeddings_initializer)

    def call(self, inputs, mask=None):
        return ops.take(self.embeddings, self.compute_position_ids(inputs), axis=0)

    def compute_position_ids(self, inputs):
        """The row of the table for each query and value: int32 (query, value)."""
        distances = positions.relative(*(positions.consecutive(x) for x in inputs))
        return positions.clipped(distances, (self.input_dim - 1) // 2)

    def compute_mask(self, inputs, mask=None):
        return first(mask)

    def get_config(self):
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class RelativePositionEmbeddingT5(RelativePositionEmbedding):
    """A vector for each of T5's buckets of distances; `layers.RelativePositionBias` for new code.

    Args:
        input_dim: int, the number of buckets.
        output_dim: int, width: the number of heads.
        max_distance: int, from which on all distances share the last bucket.
        bidirectional: bool, whether half of the buckets are for what stands behind.
        embeddings_initializer: of the table.

    Call arguments and shapes are those of `RelativePositionEmbedding`.

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import RelativePositionEmbeddingT5
    >>> x = np.ones((2, 5, 8), "float32")
    >>> tuple(RelativePositionEmbeddingT5(32, 4, bidirectional=False)([x, x]).shape)
    (5, 5, 4)
    """

    def __init__(
        self,
        input_dim,
        output_dim,
        max_distance=128,
        bidirectional=True,
        embeddings_initializer="zeros",
        **kwargs,
    ):
        super().__init__(input_dim, output_dim, embeddings_initializer, **kwargs)
        self.max_distance, self.bidirectional = max_distance, bidirectional

    def compute_position_ids(self, inputs):
        """The bucket of each query and value: int32 (query, value)."""
        distances = positions.relative(*(positions.consecutive(x) for x in inputs))
        return positions.buckets(distances, self.input_dim, self.max_distance, self.bidirectional)

    def get_config(self):
        return {
            **super().get_config(),
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
        }
