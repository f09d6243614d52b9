"""bert4keras' LayerNormalization: with or without a mean, a gain, an offset, a condition."""

import keras
from keras import ops

from kerasattn.compat.bert4keras.backend import get_activation
from kerasattn.compat.bert4keras.nodes import Nodes
from kerasattn.ops import activations

register = keras.saving.register_keras_serializable(package="kerasattn.bert4keras")


@register
class ScaleOffset(Nodes, keras.layers.Layer):
    """x * gamma + beta along the last axis, both shifted by a condition if there is one.

    Args:
        scale, offset: bool, whether there are gamma and beta; or a number that each of them is.
        conditional: bool, whether the input is a list of x and a condition.
        hidden_units: int, width of a dense layer that the condition passes first; None for none.
        hidden_activation: of that layer.
        hidden_initializer: of that layer.

    Shapes:
        (batch, ..., dim), with a condition (batch, condition dim) -> (batch, ..., dim).

    Source: https://kexue.fm/archives/7124.
    """

    def __init__(
        self,
        scale=True,
        offset=True,
        conditional=False,
        hidden_units=None,
        hidden_activation="linear",
        hidden_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset
        self.conditional = conditional
        self.hidden_units = hidden_units
        self.hidden_activation = get_activation(hidden_activation)
        self.hidden_initializer = keras.initializers.get(hidden_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        shape, condition_shape = input_shape if self.conditional else (input_shape, None)
        dim = shape[-1]
        if self.offset is True:
            self.beta = self.add_weight(shape=(dim,), initializer="zeros", name="beta")
        if self.scale is True:
            self.gamma = self.add_weight(shape=(dim,), initializer="ones", name="gamma")
        if not self.conditional:
            return

        def dense(units, name, input_dim, **options):
            layer = keras.layers.Dense(
                units, use_bias=False, dtype=self.dtype_policy, name=name, **options
            )
            layer.build((None, input_dim))
            return layer

        condition_dim = condition_shape[-1]
        if self.hidden_units is not None:
            self.hidden_dense = dense(
                self.hidden_units,
                "hidden_dense",
                condition_dim,
                activation=self.hidden_activation,
                kernel_initializer=self.hidden_initializer,
            )
            condition_dim = self.hidden_units
        # From zeros, so that the condition does not change a pretrained model at first.
        if self.has_offset:
            self.beta_dense = dense(dim, "beta_dense", condition_dim, kernel_initializer="zeros")
        if self.has_scale:
            self.gamma_dense = dense(dim, "gamma_dense", condition_dim, kernel_initializer="zeros")

    @property
    def has_scale(self):
        """Whether x is multiplied."""
        return self.scale is not False and self.scale is not None

    @property
    def has_offset(self):
        """Whether something is added to x."""
        return self.offset is not False and self.offset is not None

    def call(self, inputs):
        x, condition = inputs if self.conditional else (inputs, None)
        if condition is not None:
            if self.hidden_units is not None:
                condition = self.hidden_dense(condition)
            for _ in range(len(x.shape) - len(condition.shape)):
                condition = condition[:, None]  # (batch, 1, ..., dim)
        if self.has_scale:
            gamma = self.gamma if self.scale is True else self.scale
            x = x * (gamma if condition is None else gamma + self.gamma_dense(condition))
        if self.has_offset:
            beta = self.beta if self.offset is True else self.offset
            x = x + (beta if condition is None else beta + self.beta_dense(condition))
        return x

    def compute_output_spec(self, inputs):
        x = inputs[0] if self.conditional else inputs
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask and previous_mask[0] if self.conditional else previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "scale": self.scale,
            "offset": self.offset,
            "conditional": self.conditional,
            "hidden_units": self.hidden_units,
            "hidden_activation": activations.serialize(self.hidden_activation),
            "hidden_initializer": keras.initializers.serialize(self.hidden_initializer),
        }

    @classmethod
    def from_config(cls, config):
        activation = config["hidden_activation"]
        if isinstance(activation, dict):
            activation = keras.saving.deserialize_keras_object(activation)
        return cls(**{**config, "hidden_activation": activations.get(activation)})


@register
class LayerNormalization(ScaleOffset):
    """Normalized vectors, then `ScaleOffset`.

    Args:
        zero_mean: bool, whether the mean is subtracted.
        unit_variance: bool, whether vectors are divided by the root of their mean square.
        epsilon: float > 0, added to the mean square; by default 1e-7.
        **kwargs: of `ScaleOffset`.

    Shapes:
        as `ScaleOffset`; statistics are float32.

    Source: https://arxiv.org/abs/1607.06450, equation 3.
    """

    def __init__(self, zero_mean=True, unit_variance=True, epsilon=None, **kwargs):
        super().__init__(**kwargs)
        self.zero_mean = zero_mean
        self.unit_variance = unit_variance
        self.epsilon = epsilon or 1e-7

    def call(self, inputs):
        x, *condition = inputs if self.conditional else (inputs,)
        x = ops.cast(x, "float32")
        if self.zero_mean:
            x = x - ops.mean(x, axis=-1, keepdims=True)
        if self.unit_variance:
            square = ops.mean(ops.square(x), axis=-1, keepdims=True)
            x = x * ops.rsqrt(square + self.epsilon)
        x = ops.cast(x, self.compute_dtype)
        return super().call([x, *condition] if self.conditional else x)

    def get_config(self):
        return {
            **super().get_config(),
            "zero_mean": self.zero_mean,
            "unit_variance": self.unit_variance,
            "epsilon": self.epsilon,
        }
