import keras

from kerasattn.ops import activations


@keras.saving.register_keras_serializable(package="kerasattn")
class BottleneckAdapter(keras.layers.Layer):
    """A narrow network beside what goes through: x + up(activation(down(x))).

    Args:
        bottleneck_dim: int >= 1, the width inside.
        activation: a name as in `FeedForward`, a callable, or None for the identity.
        down_initializer: initializer of the kernel that narrows.
        up_initializer: initializer of the kernel that widens. Zeros make it the identity at first.

    Shapes:
        (..., dim) -> (..., dim). A Keras mask of the input is kept.

    Raises:
        ValueError: if bottleneck_dim is not positive or the activation unknown.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x = np.ones((2, 5, 8), "float32")
    >>> bool(np.all(np.array(layers.BottleneckAdapter(2)(x)) == x))
    True

    Source: https://arxiv.org/abs/1902.00751, section 2.1.
    """

    def __init__(
        self,
        bottleneck_dim,
        activation="gelu",
        down_initializer="glorot_uniform",
        up_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if bottleneck_dim < 1:
            raise ValueError(f"bottleneck_dim must be at least 1, got {bottleneck_dim}.")
        self.bottleneck_dim = bottleneck_dim
        self.activation = activations.get(activation)
        self.down_initializer = keras.initializers.get(down_initializer)
        self.up_initializer = keras.initializers.get(up_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        def dense(units, initializer, name):
            return keras.layers.Dense(
                units, kernel_initializer=initializer, dtype=self.dtype_policy, name=name
            )

        self.down = dense(self.bottleneck_dim, self.down_initializer, "down")
        self.up = dense(input_shape[-1], self.up_initializer, "up")
        self.down.build(input_shape)
        self.up.build((*input_shape[:-1], self.bottleneck_dim))

    def call(self, x):
        return x + self.up(self.activation(self.down(x)))

    def get_config(self):
        return {
            **super().get_config(),
            "bottleneck_dim": self.bottleneck_dim,
            "activation": activations.serialize(self.activation),
            "down_initializer": keras.initializers.serialize(self.down_initializer),
            "up_initializer": keras.initializers.serialize(self.up_initializer),
        }
