import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class Maxout(keras.layers.Layer):
    """A dense layer of which each output is the largest of several sums.

    Args:
        units: int >= 1, the width of the output.
        pieces: int >= 1, sums for each.
        kernel_initializer: of the kernel.

    Shapes:
        (..., dim) -> (..., units).

    Raises:
        ValueError: for numbers below 1.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> layer = layers.Maxout(1)
    >>> layer.build((None, 1))
    >>> layer.set_weights([np.array([[2.0, -1.0]]), np.zeros(2)])
    >>> np.array(layer(np.array([[3.0], [-3.0]]))).tolist()
    [[6.0], [3.0]]

    Source: https://arxiv.org/abs/1302.4389, section 2; as a readout https://arxiv.org/abs/1409.0473,
    appendix A.2.2.
    """

    def __init__(self, units, pieces=2, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        if min(units, pieces) < 1:
            raise ValueError(f"units and pieces must be at least 1, got {units} and {pieces}.")
        self.units = units
        self.pieces = pieces
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        columns = self.units * self.pieces
        self.kernel = self.add_weight(
            (input_shape[-1], columns), self.kernel_initializer, name="kernel"
        )
        self.bias = self.add_weight((columns,), "zeros", name="bias")

    def call(self, x):
        x = ops.matmul(x, self.kernel) + self.bias  # (..., units * pieces)
        x = ops.reshape(x, (*ops.shape(x)[:-1], self.units, self.pieces))
        return ops.max(x, axis=-1)

    def compute_output_spec(self, x):
        return keras.KerasTensor((*x.shape[:-1], self.units), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "pieces": self.pieces,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
