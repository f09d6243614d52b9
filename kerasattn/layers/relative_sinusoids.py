import keras
from keras import ops

from kerasattn.ops import relative


@keras.saving.register_keras_serializable(package="kerasattn")
class RelativeSinusoids(keras.layers.Layer):
    """Sinusoids of all distances between queries and keys, of which memory comes first.

    Args:
        bidirectional: bool, whether queries see keys behind them.
        max_distance: int >= 1 or None, from which on all distances count as this one.

    Call arguments:
        x: (batch, length, dim), of which only the shape is read.
        memory: (batch, ..., memory, dim) or None, likewise.

    Returns:
        (1, distance, dim), from the farthest key before a query on; see `ops.relative`.

    Raises:
        ValueError: if max_distance is less than 1.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x = np.ones((2, 3, 8), "float32")
    >>> tuple(layers.RelativeSinusoids()(x, np.ones((2, 5, 8), "float32")).shape)
    (1, 9, 8)

    Source: https://arxiv.org/abs/1901.02860, section 3.3.
    """

    def __init__(self, bidirectional=False, max_distance=None, **kwargs):
        super().__init__(**kwargs)
        if max_distance is not None and max_distance < 1:
            raise ValueError(f"max_distance must be at least 1 or None, got {max_distance}.")
        self.bidirectional = bidirectional
        self.max_distance = max_distance

    def call(self, x, memory=None):
        length, before = ops.shape(x)[1], 0 if memory is None else ops.shape(memory)[-2]
        distances = relative.distances(
            length, before + length, self.bidirectional, self.max_distance
        )
        return ops.cast(relative.sinusoids(distances, x.shape[-1]), self.compute_dtype)[None]

    def compute_output_spec(self, x, memory=None):
        return keras.KerasTensor((1, None, x.shape[-1]), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "bidirectional": self.bidirectional,
            "max_distance": self.max_distance,
        }
