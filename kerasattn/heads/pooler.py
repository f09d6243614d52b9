import keras
from keras import ops

from kerasattn.ops import masks


@keras.saving.register_keras_serializable(package="kerasattn")
class Pooler(keras.layers.Layer):
    """The first token's vector through a dense layer: BERT's vector of a whole sequence.

    Args:
        activation: of the dense layer.
        kernel_initializer: of the dense layer.

    Shapes:
        (batch, length, dim) -> (batch, dim).

    Example:
    >>> import numpy as np
    >>> from kerasattn import heads
    >>> tuple(heads.Pooler()(np.ones((2, 5, 8), "float32")).shape)
    (2, 8)

    Source: https://arxiv.org/abs/1810.04805, section 3.1.
    """

    def __init__(self, activation="tanh", kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.activation = keras.activations.get(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, input_shape):
        self.dense = keras.layers.Dense(
            input_shape[-1],
            activation=self.activation,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((input_shape[0], input_shape[-1]))

    def call(self, hidden):
        return self.dense(hidden[:, 0])

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class LastToken(keras.layers.Layer):
    """The last real token's vector, which has read the whole text from left to right.

    Shapes:
        (batch, length, dim) and a padding mask (batch, length) -> (batch, 1, dim).

    Example:
    >>> import numpy as np
    >>> from kerasattn import heads
    >>> x = np.arange(4.0).reshape(1, 4, 1)
    >>> print(np.array(heads.LastToken()(x, np.array([[True, True, True, False]]))))
    [[[2.]]]

    Source: https://arxiv.org/abs/1906.08237, section 2.5.
    """

    def call(self, hidden, padding_mask):
        places = ops.where(padding_mask, masks.positions(padding_mask), 0)
        last = ops.max(places, axis=1, keepdims=True)  # (batch, 1)
        return ops.take_along_axis(hidden, last[..., None], axis=1)

    def compute_output_spec(self, hidden, padding_mask):
        return keras.KerasTensor((hidden.shape[0], 1, hidden.shape[2]), self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return None
