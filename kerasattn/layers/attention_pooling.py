import keras
from keras import ops

from kerasattn.ops.attention import masked_softmax


@keras.saving.register_keras_serializable(package="kerasattn")
class AttentionPooling(keras.layers.Layer):
    """One vector of many: their mean, weighed by how well each fits a vector that is learned.

    Weights are softmax(u · tanh(W x + b)). Where nothing is real the result is zeros. Keras' mask
    of x, where there is one, hides vectors too.

    Args:
        units: int >= 1, width of u.
        kernel_initializer: of W and u.

    Shapes:
        x (..., length, dim) and a padding_mask, bool (..., length), True = real, or None
        -> (..., dim); with return_weights=True also the weights, float32 (..., length).

    Raises:
        ValueError: for units below 1, x of fewer than 3 axes, or a mask that is not boolean or of
            another shape.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x, real = np.ones((2, 3, 2), "float32"), np.array([[True, True, False], [False] * 3])
    >>> np.array(layers.AttentionPooling(units=4)(x, padding_mask=real)).tolist()
    [[1.0, 1.0], [0.0, 0.0]]

    Source: Yang et al. 2016, Hierarchical Attention Networks for Document Classification,
    equations 5 to 7, https://aclanthology.org/N16-1174.
    """

    def __init__(self, units, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"units must be at least 1, got {units}.")
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, x_shape, padding_mask_shape=None):
        if len(x_shape) < 3:
            raise ValueError(f"x must be (..., length, dim), got the shape {tuple(x_shape)}.")
        self.projection = keras.layers.Dense(
            self.units,
            activation="tanh",
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="projection",
        )
        self.projection.build(x_shape)
        initializer = self.kernel_initializer.clone()
        self.vector = self.add_weight((self.units, 1), initializer, name="vector")

    def call(self, x, padding_mask=None, return_weights=False, mask=None):
        x = ops.cast(x, self.compute_dtype)  # integers have no room for weights
        scores = ops.matmul(self.projection(x), self.vector)[..., 0]  # (..., length)
        if padding_mask is not None:
            padding_mask = check_padding_mask(padding_mask, x)
        if mask is not None:
            padding_mask = mask if padding_mask is None else padding_mask & mask
        weights = masked_softmax(scores, padding_mask)
        pooled = ops.sum(ops.cast(weights, x.dtype)[..., None] * x, axis=-2)  # (..., dim)
        return (pooled, weights) if return_weights else pooled

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_spec(self, x, padding_mask=None, return_weights=False, mask=None):
        if padding_mask is not None:
            check_padding_mask(padding_mask, x)
        pooled = keras.KerasTensor((*x.shape[:-2], x.shape[-1]), self.compute_dtype)
        return (pooled, keras.KerasTensor(x.shape[:-1], "float32")) if return_weights else pooled

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def check_padding_mask(padding_mask, x, name="padding_mask"):
    """Refuses a mask that is not boolean, or not of the shape of x but for its last axis.

    Raises:
        ValueError: naming what is taken.
    """
    dtype = keras.backend.standardize_dtype(padding_mask.dtype)
    given, wanted = tuple(padding_mask.shape), tuple(x.shape[:-1])
    same = len(given) == len(wanted)
    same = same and all(a is None or b is None or a == b for a, b in zip(given, wanted))
    if dtype != "bool" or not same:
        raise ValueError(
            f"{name} takes booleans, True where a token is real, of the shape {wanted}; got "
            f"{dtype} of the shape {given}."
        )
    return padding_mask
