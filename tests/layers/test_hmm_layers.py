import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def log_emissions(batch, length):
    return RANDOM.normal(size=(batch, length, 3)).astype("float32")


def test_chain():
    check_layer(
        layers.HiddenMarkovChain,
        {},
        log_emissions,
        padding=lambda real: {"padding_mask": real},
        errors=[(np.ones((2, 3), "float32"), r"must be \(batch, length, num_states\)")],
        skip={
            "causal": "what comes later tells of what was before",
            **dict.fromkeys(("save", "saved_model"), "the model of normal states has it"),
            "jit": "the tests of ops compile it",
        },
        lengths=(1, 4),
    )


def test_categorical_emissions():
    check_layer(
        layers.CategoricalEmissions,
        {"num_states": 3, "num_symbols": 4},
        lambda batch, length: RANDOM.integers(0, 4, (batch, length)).astype("int32"),
        errors=[(np.ones((2, 3, 1), "int32"), r"must be \(batch, length\)")],
        config_errors=[({"num_states": 0}, "must be at least 1, got 0 and 4")],
        lengths=(1, 4),
    )


def test_gaussian_emissions():
    check_layer(
        layers.GaussianEmissions,
        {"num_states": 3},
        lambda batch, length: RANDOM.normal(size=(batch, length, 2)).astype("float32"),
        errors=[(np.ones((2, 3), "float32"), r"must be \(batch, length, dim\)")],
        config_errors=[({"num_states": 0}, "must be at least 1, got 0")],
        lengths=(1, 4),
    )


def test_density_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    layer, x = layers.GaussianEmissions(2), RANDOM.normal(size=(1, 4, 3)).astype("float32")
    layer.build(x.shape)
    means, log_variances = RANDOM.normal(size=(2, 2, 3))
    layer.means.assign(means)
    layer.log_variances.assign(log_variances)
    found = keras.ops.convert_to_numpy(layer(x))
    for state in range(2):
        normal = stats.multivariate_normal(means[state], np.diag(np.exp(log_variances[state])))
        np.testing.assert_allclose(found[0, :, state], normal.logpdf(x[0]), rtol=1e-5)
