import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class GatedConvolution(keras.layers.Layer):
    """A convolution over time whose one half of channels gates the other: a · sigmoid(b).

    Padding counts as zeros, whatever stands there, and so does what lies beyond the ends.

    Args:
        filters: int >= 1, the width of the output.
        kernel_size: int >= 1, places that an output sees; odd unless causal.
        causal: bool, whether it sees its own place and those before it alone.
        dropout: float in [0, 1), of the inputs.
        kernel_initializer: of the convolution; by default normal with variance
            4 (1 - dropout) / fan_in, by which outputs vary as much as inputs.
        seed: int or None, of the dropout.

    Call arguments:
        x: (batch, length, dim).
        padding_mask: bool (batch, length), True = real; by default Keras' mask of x, or all.
        before: (batch, kernel_size - 1, dim), the inputs before x of a causal layer; by default
            zeros. They are taken as they are.

    Shapes:
        (batch, length, dim) -> (batch, length, filters).

    Raises:
        ValueError: for numbers out of range, or an even kernel_size that is not causal.

    Example: the two halves of the filters are 2 x and, with a bias of 0, sigmoid(0).

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> layer = layers.GatedConvolution(1, kernel_size=1)
    >>> layer.build((None, None, 1))
    >>> layer.convolution.set_weights([np.array([[[2.0, 0.0]]]), np.zeros(2)])
    >>> np.array(layer(np.array([[[3.0]]]))).tolist()
    [[[3.0]]]

    Source: https://arxiv.org/abs/1705.03122, sections 3.2 and 3.5; gated linear units
    https://arxiv.org/abs/1612.08083, equation 1.
    """

    def __init__(
        self,
        filters,
        kernel_size=3,
        causal=False,
        dropout=0.0,
        kernel_initializer=None,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if min(filters, kernel_size) < 1:
            raise ValueError(
                f"filters and kernel_size must be at least 1, got {filters} and {kernel_size}."
            )
        if not causal and kernel_size % 2 == 0:
            raise ValueError(
                f"kernel_size must be odd, as many places on each side, or the layer causal; got "
                f"{kernel_size}."
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        self.filters = filters
        self.kernel_size = kernel_size
        self.causal = causal
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(
            kernel_initializer
            or keras.initializers.VarianceScaling(4 * (1 - dropout), "fan_in", "untruncated_normal")
        )
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 3:
            raise ValueError(f"x must be (batch, length, dim), got shape {tuple(input_shape)}.")
        self.convolution = keras.layers.Conv1D(
            2 * self.filters,
            self.kernel_size,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="convolution",
        )
        self.convolution.build((None, None, input_shape[-1]))  # of any length

    def call(self, x, padding_mask=None, before=None, training=False, mask=None):
        padding_mask = mask if padding_mask is None else padding_mask
        if padding_mask is not None:
            x = ops.where(padding_mask[..., None], x, ops.zeros_like(x))
        more = self.kernel_size - 1
        if before is not None:
            x = ops.concatenate([ops.cast(before, x.dtype), x], axis=1)
        else:
            behind = 0 if self.causal else more // 2
            x = ops.pad(x, [[0, 0], [more - behind, behind], [0, 0]])
        if training and self.dropout:
            x = keras.random.dropout(x, self.dropout, seed=self.seed_generator)
        values, gates = ops.split(self.convolution(x), 2, axis=-1)  # (batch, length, filters)
        return values * ops.sigmoid(gates)

    def compute_output_spec(self, x, *args, **kwargs):
        return keras.KerasTensor((*x.shape[:2], self.filters), self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "causal": self.causal,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }
