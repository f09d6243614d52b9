import keras
from keras import ops

from kerasattn.ops import positions


@keras.saving.register_keras_serializable(package="kerasattn")
class LearnedPositionEmbedding(keras.layers.Layer):
    """Adds a trained vector for each position to the features.

    Args:
        max_length: int >= 1, n, the number of rows of the table.
        hierarchical: bool or float in (0, 1). True reads n^2 positions out of the table of n, the
            first n unchanged; a float is the alpha of this extension, True is 0.4.
        mode: "add" gives x + E, "multiply" x (1 + E), "concatenate" E after x's features, None E
            alone.
        embeddings_initializer: initializer of the table, None for TruncatedNormal(stddev=0.02).

    Call arguments:
        x: float tensor (batch, length, dim).
        position_ids: integer (batch or 1, length) or (length,), or None for consecutive ones.
        start_index: int or integer tensor, scalar or (batch,), the first of the consecutive ones.

    Shapes:
        (batch, length, dim) -> (batch, length, dim), or 2 dim when concatenated, or
        (batch or 1, length, dim) alone. A Keras mask of x is kept.

    Raises:
        ValueError: for positions past the table's end (n, or n^2 if hierarchical) where they are
            known, that is eagerly, and always when the length and start_index are fixed; x not of
            rank 3; an argument out of range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> layer = layers.LearnedPositionEmbedding(max_length=4, hierarchical=True)
    >>> tuple(layer(np.zeros((2, 16, 8))).shape)
    (2, 16, 8)

    Source: https://arxiv.org/abs/1705.03122, section 3.1; hierarchical:
    https://kexue.fm/archives/7947.
    """

    def __init__(
        self, max_length, hierarchical=False, mode="add", embeddings_initializer=None, **kwargs
    ):
        super().__init__(**kwargs)
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}.")
        if hierarchical is not True and not 0 <= hierarchical < 1:
            raise ValueError(f"hierarchical must be a bool or in (0, 1), got {hierarchical}.")
        positions.check_mode(mode)
        self.max_length = max_length
        self.hierarchical = hierarchical
        self.mode = mode
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer or keras.initializers.TruncatedNormal(stddev=0.02)
        )
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 3:
            raise ValueError(f"x must be (batch, length, dim), got shape {tuple(input_shape)}.")
        self.embeddings = self.add_weight(
            shape=(self.max_length, input_shape[-1]),
            initializer=self.embeddings_initializer,
            name="embeddings",
        )

    def call(self, x, position_ids=None, start_index=0):
        if position_ids is None:
            position_ids = positions.consecutive(x, start_index)
        if self.hierarchical:
            alpha = 0.4 if self.hierarchical is True else self.hierarchical
            rows = positions.hierarchical(self.embeddings, position_ids, alpha)
        else:
            positions.check_range(position_ids, self.max_length)
            rows = ops.take(self.embeddings, position_ids, axis=0)  # (..., length, dim)
        return positions.merge(x, rows, self.mode)

    def compute_output_spec(self, x, position_ids=None, start_index=0):
        if self.mode == "add" and x.shape[:2] == (None, None):  # nothing there is to check
            return keras.KerasTensor(x.shape, self.compute_dtype)
        return super().compute_output_spec(x, position_ids, start_index)

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "hierarchical": self.hierarchical,
            "mode": self.mode,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
