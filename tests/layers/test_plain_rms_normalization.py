import numpy as np
import pytest

from kerasattn.layers import PlainRMSNormalization
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def test_lengths_are_the_root_of_the_width():
    x = RANDOM.normal(size=(2, 3, 8)).astype("float32")
    found = np.asarray(PlainRMSNormalization()(x))
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 8**0.5, rtol=1e-5)
    np.testing.assert_allclose(found / found[..., :1], x / x[..., :1], rtol=1e-4)


# CASES C27: a constant row and a row of zeros have numbers in half precision too.
@pytest.mark.parametrize("policy", ["float16", "mixed_float16", "bfloat16"])
def test_half_precision(policy):
    found = np.asarray(PlainRMSNormalization(dtype=policy)(np.array([[0.0] * 4, [6e4] * 4])))
    np.testing.assert_array_equal(found.astype("float32"), [[0.0] * 4, [1.0] * 4])


@pytest.mark.slow
def test_layer():
    check_layer(
        PlainRMSNormalization,
        {"epsilon": 1e-3},
        lambda batch, length: RANDOM.normal(size=(batch, length, 4)).astype("float32"),
        config_errors=[({"epsilon": 0}, "epsilon must be positive")],
        skip={"fit": "it has no weights"},
    )
