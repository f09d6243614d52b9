import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class Adam(keras.optimizers.Adam):
    """Adam, whose bias correction may be left out.

    Args:
        learning_rate, beta_1, beta_2: of `keras.optimizers.Adam`.
        epsilon: float, added to the root of the second moment after its correction.
        bias_correction: bool, whether the moments are corrected for their start at 0.

    Example:

    >>> from kerasattn.compat.bert4keras.optimizers import Adam
    >>> float(Adam(learning_rate=0.5).learning_rate)
    0.5
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        bias_correction=True,
        **kwargs,
    ):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **kwargs)
        self.bias_correction = bias_correction

    def update_step(self, gradient, variable, learning_rate):
        cast = lambda x: ops.cast(x, variable.dtype)
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        gradient, rate, step = cast(gradient), cast(learning_rate), cast(self.iterations + 1)
        self.assign_add(m, (gradient - m) * (1 - self.beta_1))
        self.assign_add(v, (ops.square(gradient) - v) * (1 - self.beta_2))
        mean, square = ops.convert_to_tensor(m), ops.convert_to_tensor(v)
        if self.bias_correction:
            mean = mean / (1 - ops.power(cast(self.beta_1), step))
            square = square / (1 - ops.power(cast(self.beta_2), step))
        self.assign_sub(variable, rate * mean / (ops.sqrt(square) + self.epsilon))

    def get_config(self):
        return {**super().get_config(), "bias_correction": self.bias_correction}
