import keras
from keras import ops


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
        return self.dense(ops.sum(hidden[:, :1], axis=1))  # zeros for a text without a token

    def compute_output_spec(self, hidden):
        return keras.KerasTensor((hidden.shape[0], hidden.shape[-1]), self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
