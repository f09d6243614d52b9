"""bert4keras' ways to extend an optimizer: functions from a class to a class with more arguments.

`AdamW = extend_with_weight_decay(Adam, "AdamW")`. They can be put on top of each other.
"""

import keras
from keras import ops

from kerasattn.training.piecewise_linear import PiecewiseLinear

register = keras.saving.register_keras_serializable(package="kerasattn.bert4keras")


@register
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


def extend_with_weight_decay(base, name=None):
    """Adds `weight_decay_rate` and `exclude_from_weight_decay`.

    The decay is decoupled: a step takes learning rate * rate * weight off. Left out are weights
    whose path holds one of the given strings, such as "Norm" or "bias".

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_weight_decay
    >>> AdamW = extend_with_weight_decay(Adam, "AdamW")
    >>> optimizer = AdamW(1e-4, weight_decay_rate=0.01, exclude_from_weight_decay=["Norm", "bias"])
    >>> optimizer.weight_decay
    0.01
    """

    class WithWeightDecay(base):
        def __init__(
            self,
            *args,
            weight_decay_rate=0.01,
            exclude_from_weight_decay=(),
            weight_decay=None,
            **kwargs,
        ):
            rate = weight_decay_rate if weight_decay is None else weight_decay
            super().__init__(*args, weight_decay=rate, **kwargs)
            self.weight_decay_rate = rate
            self.excluded_patterns = list(exclude_from_weight_decay)

        def _use_weight_decay(self, variable):
            return not _matches(_path(self, variable), self.excluded_patterns)

        def get_config(self):
            return {**super().get_config(), "exclude_from_weight_decay": self.excluded_patterns}

    return _named(WithWeightDecay, base, name)


def extend_with_piecewise_linear_lr(base, name=None):
    """Adds `lr_schedule`, a dict from steps to factors of the learning rate, straight in between.

    {1000: 1, 10000: 0.1} warms up from 0 within 1000 steps, then falls to a tenth, and stays.

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_piecewise_linear_lr
    >>> AdamLR = extend_with_piecewise_linear_lr(Adam)
    >>> optimizer = AdamLR(learning_rate=0.1, lr_schedule={10: 1, 20: 0.5})
    >>> _ = optimizer.iterations.assign(5)
    >>> round(float(optimizer.learning_rate), 6)
    0.05
    """

    class WithPiecewiseLinearLR(base):
        def __init__(self, learning_rate=0.001, *args, lr_schedule=None, **kwargs):
            if lr_schedule is not None:
                learning_rate = PiecewiseLinear(learning_rate, lr_schedule)
            super().__init__(learning_rate, *args, **kwargs)

    return _named(WithPiecewiseLinearLR, base, name)


def extend_with_parameter_wise_lr(base, name=None):
    """Adds `paramwise_lr_schedule`, a dict from strings to factors of the learning rate.

    A weight's rate is multiplied by the factors of all strings that its path holds. Decay of
    weights is not.

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_parameter_wise_lr
    >>> AdamPW = extend_with_parameter_wise_lr(Adam)
    >>> optimizer = AdamPW(1e-4, paramwise_lr_schedule={"Embedding": 0.1, "Transformer-0": 0.5})
    """

    class WithParameterWiseLR(base):
        def __init__(self, *args, paramwise_lr_schedule=None, **kwargs):
            super().__init__(*args, **kwargs)
            self.paramwise_lr_schedule = dict(paramwise_lr_schedule or {})

        def update_step(self, gradient, variable, learning_rate):
            path, factor = _path(self, variable), 1.0
            for pattern, multiplier in self.paramwise_lr_schedule.items():
                factor *= multiplier if pattern in path else 1.0
            super().update_step(gradient, variable, learning_rate * factor)

        def get_config(self):
            return {**super().get_config(), "paramwise_lr_schedule": self.paramwise_lr_schedule}

    return _named(WithParameterWiseLR, base, name)


def extend_with_gradient_accumulation(base, name=None):
    """Adds `grad_accum_steps`, which is Keras' `gradient_accumulation_steps`.

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_gradient_accumulation
    >>> AdamGA = extend_with_gradient_accumulation(Adam)
    >>> AdamGA(1e-4, grad_accum_steps=4).gradient_accumulation_steps
    4
    """

    class WithGradientAccumulation(base):
        def __init__(self, *args, grad_accum_steps=None, **kwargs):
            if grad_accum_steps is not None and grad_accum_steps > 1:
                kwargs["gradient_accumulation_steps"] = grad_accum_steps
            super().__init__(*args, **kwargs)

    return _named(WithGradientAccumulation, base, name)


def extend_with_exponential_moving_average(base, name=None):
    """Adds `ema_momentum` and methods that put the average of the weights into the model and back.

    It is Keras' `use_ema`, whose average begins with the weights after the first step, so that
    there is no bias to correct. Unlike there, `fit` leaves the weights as they are.

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import (
    ...     Adam, extend_with_exponential_moving_average)
    >>> AdamEMA = extend_with_exponential_moving_average(Adam, "AdamEMA")
    >>> AdamEMA(1e-4, ema_momentum=0.99).ema_momentum
    0.99
    """

    class WithMovingAverage(base):
        def __init__(self, *args, ema_momentum=0.999, **kwargs):
            kwargs["use_ema"] = True
            super().__init__(*args, ema_momentum=ema_momentum, **kwargs)

        def finalize_variable_values(self, var_list):
            """Nothing: the averages come into the model when asked for."""

        def apply_ema_weights(self, bias_correction=True):
            """Puts the averages into the model, and remembers what was there."""
            variables = self._trainable_variables
            self.old_weights = [ops.convert_to_numpy(variable) for variable in variables]
            self._overwrite_model_variables_with_average_value(variables)

        def reset_old_weights(self):
            """Puts back what `apply_ema_weights` found."""
            for variable, value in zip(self._trainable_variables, self.old_weights):
                variable.assign(value)

    return _named(WithMovingAverage, base, name)


def _named(cls, base, name):
    """Names the class, and registers it so that a saved model finds it."""
    cls.__name__ = cls.__qualname__ = name or f"{cls.__name__}{base.__name__}"
    return register(cls)


def _path(optimizer, variable):
    """A weight's path in its model; on TensorFlow it comes as a variable without one."""
    return optimizer._trainable_variables[optimizer._get_variable_index(variable)].path


def _matches(path, patterns):
    return any(pattern in path for pattern in patterns)
