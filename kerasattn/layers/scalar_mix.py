import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class ScalarMix(keras.layers.Layer):
    """A mean of what several layers say, by weights that are learned, times a number: ELMo's mix.

    y = gamma * sum_j s_j x_j with s = softmax(w). The weights w start at 0: all layers alike.

    Args:
        normalize: bool, whether each vector is normalized to mean 0 and variance 1 before. (The
            authors' code takes mean and variance of the whole batch, so that texts feel each
            other; here each vector has its own, as in a layer normalization.)
        regularizer: of w, such as "l2": a strong one keeps the mix near the mean.

    Shapes:
        list of tensors (..., dim), all of one shape -> (..., dim).

    Raises:
        ValueError: for what is no list, or tensors of several shapes.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> low, high = np.zeros((1, 2, 3), "float32"), np.ones((1, 2, 3), "float32")
    >>> float(layers.ScalarMix()([low, high])[0, 0, 0])
    0.5

    Source: https://arxiv.org/abs/1802.05365 (Peters et al. 2018), equation 1.
    """

    def __init__(self, normalize=False, regularizer=None, **kwargs):
        super().__init__(**kwargs)
        self.normalize = normalize
        self.regularizer = keras.regularizers.get(regularizer)

    def build(self, input_shape):
        shapes = [tuple(shape) for shape in input_shape if isinstance(shape, (tuple, list))]
        if not shapes or len(shapes) != len(input_shape) or len(set(shapes)) > 1:
            raise ValueError(f"ScalarMix takes a list of tensors of one shape, got {input_shape}.")
        self.norm = keras.layers.LayerNormalization(
            epsilon=1e-12, center=False, scale=False, dtype=self.dtype_policy, name="norm"
        )
        self.scalars = self.add_weight(
            (len(shapes),), "zeros", regularizer=self.regularizer, name="scalars"
        )
        self.gamma = self.add_weight((), "ones", name="gamma")

    def call(self, inputs):
        shares = self.gamma * ops.softmax(self.scalars)  # (layers,)
        if self.normalize:
            inputs = [self.norm(x) for x in inputs]
        return sum(shares[j] * x for j, x in enumerate(inputs))

    def compute_output_spec(self, inputs):
        return keras.KerasTensor(inputs[0].shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "normalize": self.normalize,
            "regularizer": keras.regularizers.serialize(self.regularizer),
        }
