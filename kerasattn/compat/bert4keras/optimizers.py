"""bert4keras' ways to extend an optimizer: functions from a class to a class with more arguments.

`AdamW = extend_with_weight_decay(Adam, "AdamW")`. They can be put on top of each other: each
changes the step that what is below it takes.
"""

import keras
from keras import ops

from kerasattn.compat.bert4keras.adafactor import AdaFactor
from kerasattn.compat.bert4keras.adam import Adam
from kerasattn.compat.bert4keras.helpers import string_matching
from kerasattn.training.piecewise_linear import PiecewiseLinear

register = keras.saving.register_keras_serializable(package="kerasattn.bert4keras")

__all__ = [
    "AdaFactor",
    "Adam",
    "extend_with_exponential_moving_average",
    "extend_with_gradient_accumulation",
    "extend_with_layer_adaptation",
    "extend_with_lazy_optimization",
    "extend_with_lookahead",
    "extend_with_parameter_wise_lr",
    "extend_with_piecewise_linear_lr",
    "extend_with_weight_decay",
]


def extend_with_weight_decay(base, name=None):
    """Adds `weight_decay_rate` and `exclude_from_weight_decay`.

    The decay is decoupled: a step takes learning rate * rate * weight off. Left out are weights in
    whose path one of the given regular expressions is found, such as "Norm" or "bias".

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_weight_decay
    >>> AdamW = extend_with_weight_decay(Adam, "AdamW")
    >>> optimizer = AdamW(1e-4, weight_decay_rate=0.01, exclude_from_weight_decay=["Norm", "bias"])
    >>> optimizer.weight_decay_rate
    0.01
    """

    class WithWeightDecay(base):
        def __init__(self, *args, weight_decay_rate=0.01, exclude_from_weight_decay=(), **kwargs):
            super().__init__(*args, **kwargs)
            self.weight_decay_rate = weight_decay_rate
            self.exclude_from_weight_decay = list(exclude_from_weight_decay)

        def update_step(self, gradient, variable, learning_rate):
            before = ops.copy(variable)
            super().update_step(gradient, variable, learning_rate)
            if not string_matching(_path(self, variable), self.exclude_from_weight_decay):
                rate = ops.cast(learning_rate * self.weight_decay_rate, variable.dtype)
                self.assign_sub(variable, rate * before)

        def get_config(self):
            return {
                **super().get_config(),
                "weight_decay_rate": self.weight_decay_rate,
                "exclude_from_weight_decay": self.exclude_from_weight_decay,
            }

    return _named(WithWeightDecay, base, name)


def extend_with_layer_adaptation(base, name=None):
    """Adds `exclude_from_layer_adaptation`: steps are as long as their weights (LAMB).

    The step of a weight, its decay with it if that is extended first, is divided by its norm and
    multiplied by that of the weight and the learning rate. Left out are weights in whose path one
    of the given regular expressions is found, and those that are 0.

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_layer_adaptation
    >>> Lamb = extend_with_layer_adaptation(Adam, "Lamb")
    >>> optimizer = Lamb(1e-3, exclude_from_layer_adaptation=["Norm", "bias"])

    Source: https://arxiv.org/abs/1904.00962, algorithm 2.
    """

    class WithLayerAdaptation(base):
        def __init__(self, *args, exclude_from_layer_adaptation=(), **kwargs):
            super().__init__(*args, **kwargs)
            self.exclude_from_layer_adaptation = list(exclude_from_layer_adaptation)

        def update_step(self, gradient, variable, learning_rate):
            before = ops.copy(variable)
            super().update_step(gradient, variable, learning_rate)
            if string_matching(_path(self, variable), self.exclude_from_layer_adaptation):
                return
            step = ops.convert_to_tensor(variable) - before
            rate = ops.maximum(ops.cast(learning_rate, variable.dtype), keras.config.epsilon())
            weight, length = ops.norm(before), ops.norm(step) / rate
            moves = ops.logical_and(weight > 0, length > 0)
            ratio = ops.where(moves, weight / ops.where(moves, length, 1.0), 1.0)
            self.assign(variable, before + step * ratio)

        def get_config(self):
            excluded = self.exclude_from_layer_adaptation
            return {**super().get_config(), "exclude_from_layer_adaptation": excluded}

    return _named(WithLayerAdaptation, base, name)


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

    A weight's step is multiplied by the factors of all strings that its path holds, its decay with
    it if that is extended first.

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
            before = ops.copy(variable)
            super().update_step(gradient, variable, learning_rate)
            path, factor = _path(self, variable), 1.0
            for pattern, multiplier in self.paramwise_lr_schedule.items():
                factor *= multiplier if pattern in path else 1.0
            if factor != 1:
                step = ops.convert_to_tensor(variable) - before
                self.assign(variable, before + step * factor)

        def get_config(self):
            return {**super().get_config(), "paramwise_lr_schedule": self.paramwise_lr_schedule}

    return _named(WithParameterWiseLR, base, name)


def extend_with_lazy_optimization(base, name=None):
    """Adds `include_in_lazy_optimization`: rows of weights without a gradient stay as they are.

    So do tables of embeddings, of which a batch reads few rows. It is for weights in whose path one
    of the given regular expressions is found.

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_lazy_optimization
    >>> LazyAdam = extend_with_lazy_optimization(Adam, "LazyAdam")
    >>> optimizer = LazyAdam(1e-4, include_in_lazy_optimization=["Embedding"])
    """

    class WithLazyOptimization(base):
        def __init__(self, *args, include_in_lazy_optimization=(), **kwargs):
            super().__init__(*args, **kwargs)
            self.include_in_lazy_optimization = list(include_in_lazy_optimization)

        def update_step(self, gradient, variable, learning_rate):
            before = ops.copy(variable)
            super().update_step(gradient, variable, learning_rate)
            if string_matching(_path(self, variable), self.include_in_lazy_optimization):
                moves = ops.any(ops.not_equal(gradient, 0), axis=-1, keepdims=True)
                self.assign(variable, ops.where(moves, ops.convert_to_tensor(variable), before))

        def get_config(self):
            included = self.include_in_lazy_optimization
            return {**super().get_config(), "include_in_lazy_optimization": included}

    return _named(WithLazyOptimization, base, name)


def extend_with_lookahead(base, name=None):
    """Adds `steps_per_slow_update` and `slow_step_size`: slow weights follow, and are returned to.

    Every so many steps the slow weights, which begin as the weights do, go that share of the way to
    the weights, which are then set to them.

    Example:
    >>> from kerasattn.compat.bert4keras.optimizers import Adam, extend_with_lookahead
    >>> AdamLA = extend_with_lookahead(Adam, "AdamLA")
    >>> optimizer = AdamLA(1e-4, steps_per_slow_update=5, slow_step_size=0.5)

    Source: https://arxiv.org/abs/1907.08610, algorithm 1.
    """

    class WithLookahead(base):
        def __init__(self, *args, steps_per_slow_update=5, slow_step_size=0.5, **kwargs):
            super().__init__(*args, **kwargs)
            self.steps_per_slow_update = steps_per_slow_update
            self.slow_step_size = slow_step_size

        def build(self, variables):
            built = self.built
            super().build(variables)
            if not built:
                self._slow = [
                    self.add_variable_from_reference(v, name="slow", initializer="zeros")
                    for v in variables
                ]

        def update_step(self, gradient, variable, learning_rate):
            slow = self._slow[self._get_variable_index(variable)]
            # At the first step, as a checkpoint may be loaded into the weights when it is made.
            start = ops.where(self.iterations == 0, ops.copy(variable), ops.copy(slow))
            super().update_step(gradient, variable, learning_rate)
            fast = ops.convert_to_tensor(variable)
            meet = ops.equal((self.iterations + 1) % self.steps_per_slow_update, 0)
            self.assign(slow, ops.where(meet, start + self.slow_step_size * (fast - start), start))
            self.assign(variable, ops.where(meet, ops.convert_to_tensor(slow), fast))

        def get_config(self):
            return {
                **super().get_config(),
                "steps_per_slow_update": self.steps_per_slow_update,
                "slow_step_size": self.slow_step_size,
            }

    return _named(WithLookahead, base, name)


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
