import keras
from keras import ops

from kerasattn.ops import routing


@keras.saving.register_keras_serializable(package="kerasattn")
class PrimaryCapsules(keras.layers.Layer):
    """The first capsules of a picture: a convolution, whose channels are grouped and squashed.

    Args:
        num_channels: int >= 1, capsules at each place.
        capsule_dim: int >= 1, numbers in a capsule.
        kernel_size, strides, padding: of `keras.layers.Conv2D`.
        kernel_initializer: of the convolution.

    Shapes:
        (batch, height, width, channels) -> (batch, places * num_channels, capsule_dim), with
        lengths in [0, 1).

    Raises:
        ValueError: for sizes below 1, pictures of another rank, or smaller than the kernel.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> capsules = layers.PrimaryCapsules(32, 8, kernel_size=9, strides=2)
    >>> tuple(capsules(np.ones((1, 20, 20, 3), "float32")).shape)  # 6 * 6 * 32
    (1, 1152, 8)

    Source: https://arxiv.org/abs/1710.09829, section 4.
    """

    def __init__(
        self,
        num_channels=32,
        capsule_dim=8,
        kernel_size=9,
        strides=2,
        padding="valid",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_channels < 1 or capsule_dim < 1:
            raise ValueError(
                "num_channels and capsule_dim must be at least 1, got "
                f"{num_channels} and {capsule_dim}."
            )
        self.num_channels = num_channels
        self.capsule_dim = capsule_dim
        self.kernel_size, self.strides, self.padding = kernel_size, strides, padding
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.convolution = keras.layers.Conv2D(
            num_channels * capsule_dim,
            kernel_size,
            strides,
            padding,
            data_format="channels_last",
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="convolution",
        )

    def build(self, input_shape):
        if len(input_shape) != 4:
            raise ValueError(
                f"Pictures must be (batch, height, width, channels), got {tuple(input_shape)}."
            )
        self.convolution.build(input_shape)

    def call(self, x):
        x = self.convolution(x)  # (batch, height, width, num_channels * capsule_dim)
        return routing.squash(ops.reshape(x, (ops.shape(x)[0], -1, self.capsule_dim)))

    def compute_output_shape(self, input_shape):
        _, height, width, _ = self.convolution.compute_output_shape(input_shape)
        known = None not in (height, width)
        count = height * width * self.num_channels if known else None
        return (input_shape[0], count, self.capsule_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "num_channels": self.num_channels,
            "capsule_dim": self.capsule_dim,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "padding": self.padding,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
