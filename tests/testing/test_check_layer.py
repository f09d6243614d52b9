"""`check_layer` passes a good layer and fails each broken one, for the reason that is broken."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.testing import check_layer
from kerasattn.testing.check_layer import CHECKS

random = np.random.default_rng(0)
registered = keras.saving.register_keras_serializable(package="kerasattn_tests")


def draw(batch, length):
    return random.normal(size=(batch, length, 4)).astype("float32")


def only(name):
    """Switches off every check but one."""
    return {check: f"only {name} is on trial" for check in CHECKS if check != name}


@registered
class Scale(keras.layers.Layer):
    """A good layer: each position times a weight and a size."""

    def __init__(self, size=1.0, **kwargs):
        super().__init__(**kwargs)
        if not size > 0:
            raise ValueError(f"size must be above 0, got {size}.")
        self.size = size

    def build(self, input_shape):
        self.scale = self.add_weight((input_shape[-1],), initializer="ones", name="scale")

    def call(self, x):
        return x * ops.cast(self.scale, x.dtype) * self.size

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "size": self.size}


@registered
class MeanOverLength(Scale):
    """A good layer that reads other positions: the mean of those that the mask leaves."""

    def call(self, x, mask_of_keys):
        weights = ops.cast(mask_of_keys, x.dtype)  # (batch, length, length)
        total = ops.maximum(ops.sum(weights, axis=-1, keepdims=True), 1)
        return super().call(ops.matmul(weights / total, x))

    def build(self, x_shape, mask_of_keys_shape):
        super().build(x_shape)

    def compute_output_shape(self, x_shape, mask_of_keys_shape):
        return x_shape


SIZE_ERROR = [({"size": -1.0}, "above 0")]


def test_a_good_layer_passes_everything():
    check_layer(Scale, {"size": 2.0}, draw, config_errors=SIZE_ERROR)


def test_a_good_layer_with_masks_passes():
    check_layer(
        MeanOverLength,
        {"size": 2.0},
        lambda batch, length: {
            "x": draw(batch, length),
            "mask_of_keys": np.ones((batch, length, length), bool),
        },
        padding=lambda real: {"mask_of_keys": np.repeat(real[:, None], real.shape[1], axis=1)},
        causal=lambda batch, length: {"mask_of_keys": np.tile(np.tri(length) > 0, (batch, 1, 1))},
        skip={"errors": "has none", "saved_model": "seen above", "save": "seen above"},
    )


@registered
class ForgetsAnArgument(Scale):
    def get_config(self):
        config = super().get_config()
        del config["size"]
        return config


@registered
class SaysAnotherValue(Scale):
    def get_config(self):
        return {**super().get_config(), "size": 1.0}


class NotRegistered(Scale):
    pass


@registered
class KeepsNumbersOutOfTheFile(Scale):
    """Its offset is drawn anew in each process."""

    def build(self, input_shape):
        super().build(input_shape)
        self.offset = float(np.random.default_rng().normal())

    def call(self, x):
        return super().call(x) + self.offset


@registered
class MixesTheBatch(Scale):
    def call(self, x):
        return super().call(x - ops.mean(x, axis=0))


@registered
class FixedLength(Scale):
    def call(self, x):
        return super().call(ops.reshape(x, (-1, 8, 4)))


@registered
class SaysAnotherShape(Scale):
    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 2 * input_shape[-1])


@registered
class LeaksPadding(Scale):
    def call(self, x):
        return super().call(x - ops.mean(x, axis=1, keepdims=True))


@registered
class LeaksTheFuture(Scale):
    def call(self, x):
        return super().call(ops.flip(ops.cumsum(ops.flip(x, axis=1), axis=1), axis=1))


@registered
class Overflows(Scale):
    """Squares of a few hundred pass 65,504, the largest float16."""

    def call(self, x):
        return super().call(ops.square(x * 1000) / 1e6)


@registered
class DependsOnTheCall(Scale):
    """Counts its calls in Python, which a compiled function sees but once."""

    calls = 0

    def call(self, x):
        self.calls += 1
        return super().call(x) + self.calls


@registered
class StopsTheGradient(Scale):
    def call(self, x):
        return super().call(x) * 0 + ops.stop_gradient(super().call(x)) + x * 0


@registered
class DrawsWithoutASeed(Scale):
    def call(self, x, training=False):
        x = super().call(x)
        return x + keras.random.normal(ops.shape(x)) if training else x


@pytest.mark.parametrize(
    "check, layer, message",
    [
        ("config", DrawsWithoutASeed, "takes no seed"),
        ("config", ForgetsAnArgument, "no 'size'"),
        ("config", SaysAnotherValue, "size=1.0"),
        ("config", NotRegistered, "not registered"),
        ("save", KeepsNumbersOutOfTheFile, "new process: output differs"),
        ("save", NotRegistered, "new process"),
        ("shapes", MixesTheBatch, "row alone"),
        ("shapes", FixedLength, "batch 1, length 1"),
        ("shapes", SaysAnotherShape, "its spec said"),
        ("padding", LeaksPadding, "padding changed"),
        ("causal", LeaksTheFuture, "future from 1 on"),
        ("causal", LeaksPadding, "future from 1 on"),
        ("precision", Overflows, "mixed_float16.*not finite"),
        ("jit", DependsOnTheCall, "jit_compile=True"),
        ("fit", StopsTheGradient, "does not change .*scale"),
        ("errors", Scale, "give bad inputs"),
    ],
)
def test_a_broken_layer_fails(check, layer, message):
    with pytest.raises(AssertionError, match=message):
        check_layer(layer, {"size": 2.0}, draw, skip=only(check))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a SavedModel is TensorFlow's")
def test_a_saved_model_that_differs_fails():
    with pytest.raises(AssertionError, match="the SavedModel"):
        check_layer(DependsOnTheCall, {"size": 2.0}, draw, skip=only("saved_model"))


def test_errors_must_be_the_documented_ones():
    with pytest.raises(AssertionError, match="raises nothing"):
        check_layer(Scale, {}, draw, config_errors=[({"size": 3.0}, "size")], skip=only("errors"))
    with pytest.raises(AssertionError, match="not 'below 1'"):
        check_layer(
            Scale, {}, draw, config_errors=[({"size": -3.0}, "below 1")], skip=only("errors")
        )
    with pytest.raises(AssertionError, match="raises TypeError"):
        check_layer(Scale, {}, draw, config_errors=[({"size": "3"}, "size")], skip=only("errors"))


def test_an_exception_to_training_must_be_needed():
    with pytest.raises(AssertionError, match=r"'\*/scale', but .* change"):
        check_layer(Scale, {}, draw, untrained={"*/scale": "who knows"}, skip=only("fit"))
    with pytest.raises(AssertionError, match="no weight has that path"):
        check_layer(Scale, {}, draw, untrained={"*/bias": "who knows"}, skip=only("fit"))
    check_layer(StopsTheGradient, {}, draw, untrained={"*/scale": "stopped"}, skip=only("fit"))


@pytest.mark.parametrize(
    "skip, message", [({"jut": "typo"}, "jut"), ({"jit": ""}, "reason"), ({"jit": True}, "reason")]
)
def test_skipping_needs_a_known_name_and_a_reason(skip, message):
    with pytest.raises(ValueError, match=message):
        check_layer(Scale, {}, draw, skip=skip)
