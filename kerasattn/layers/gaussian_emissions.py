import keras

from kerasattn.ops import hmm


@keras.saving.register_keras_serializable(package="kerasattn")
class GaussianEmissions(keras.layers.Layer):
    """The log-density of each observed vector in each hidden state, of diagonal normals.

    Args:
        num_states: int >= 1.
        initializer: of the means. It must not make all states alike, or they stay so. The
            variances start at 1.

    Shapes:
        float (batch, length, dim) -> float32 (batch, length, num_states).

    Raises:
        ValueError: for a number below 1, or observations of another rank.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> emissions = layers.GaussianEmissions(2, initializer="zeros")
    >>> np.array(emissions(np.array([[[0.0], [1.0]]])), "float64").round(4).tolist()
    [[[-0.9189, -0.9189], [-1.4189, -1.4189]]]

    Source: https://doi.org/10.1109/5.18626 (Rabiner 1989), section IV.A.
    """

    def __init__(self, num_states, initializer="random_normal", **kwargs):
        super().__init__(autocast=False, **kwargs)
        if num_states < 1:
            raise ValueError(f"num_states must be at least 1, got {num_states}.")
        self.num_states = num_states
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape):
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                "Observations must be (batch, length, dim) with a known dim, got "
                f"{tuple(input_shape)}."
            )
        shape = (self.num_states, input_shape[-1])
        options = dict(dtype="float32", autocast=False)
        self.means = self.add_weight(shape, self.initializer.clone(), name="means", **options)
        self.log_variances = self.add_weight(shape, "zeros", name="log_variances", **options)

    def call(self, observations):
        return hmm.gaussian_log_density(observations, self.means, self.log_variances)

    def get_config(self):
        return {
            **super().get_config(),
            "num_states": self.num_states,
            "initializer": keras.initializers.serialize(self.initializer),
        }
