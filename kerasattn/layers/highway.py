import keras
from keras import ops

from kerasattn.ops import activations


@keras.saving.register_keras_serializable(package="kerasattn")
class Highway(keras.layers.Layer):
    """A dense layer beside a way around it, and a gate for each number that chooses.

    y = t * activation(W x + b) + (1 - t) * x with t = sigmoid(W_t x + b_t).

    Args:
        activation: of the dense layer.
        gate_bias: float, what b_t begins with: below 0 most of x goes around.
        kernel_initializer: of W and W_t.

    Shapes:
        (..., dim) -> (..., dim).

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x = np.ones((2, 3, 4), "float32")
    >>> bool(np.allclose(layers.Highway(gate_bias=-50.0)(x), x))
    True

    Source: https://arxiv.org/abs/1505.00387, equation 3.
    """

    def __init__(
        self, activation="relu", gate_bias=-1.0, kernel_initializer="glorot_uniform", **kwargs
    ):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self.gate_bias = float(gate_bias)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        self.dense = keras.layers.Dense(  # both at once: one product
            2 * input_shape[-1],
            kernel_initializer=self.kernel_initializer.clone(),
            bias_initializer=self._start,
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build(input_shape)

    def _start(self, shape, dtype=None):
        dim = shape[0] // 2
        return ops.concatenate([ops.zeros(dim, dtype), ops.full((dim,), self.gate_bias, dtype)])

    def call(self, x):
        changed, gate = ops.split(self.dense(x), 2, axis=-1)
        gate = ops.sigmoid(gate)
        return gate * self.activation(changed) + (1 - gate) * x

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "activation": activations.serialize(self.activation),
            "gate_bias": self.gate_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
