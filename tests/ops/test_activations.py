import keras
import numpy as np
import pytest
from scipy import special

from kerasattn.ops import activations

X = np.linspace(-5, 5, 101).astype("float32")


def test_gelu_is_exact():
    expected = X.astype("float64") * special.ndtr(X.astype("float64"))
    np.testing.assert_allclose(activations.get("gelu")(X), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu_tanh", "gelu_new", "gelu_pytorch_tanh"])
def test_gelu_tanh(name):
    x = X.astype("float64")
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(activations.get(name)(X), expected, atol=1e-6)
    assert np.abs(expected - x * special.ndtr(x)).max() > 1e-4  # the two forms can be told apart


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu", "silu", "tanh", None])
def test_round_trip(name):
    function = activations.get(name)
    again = activations.get(activations.serialize(function))
    np.testing.assert_array_equal(function(X), again(X))


def test_unknown_name():
    with pytest.raises(ValueError, match="Unknown activation 'gellu'"):
        activations.get("gellu")


def test_keras_names_are_kept():
    assert activations.get("relu") is keras.activations.relu
