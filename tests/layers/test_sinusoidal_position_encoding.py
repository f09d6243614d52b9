import json

import keras
import numpy as np
import pytest

from kerasattn.layers import SinusoidalPositionEncoding
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
MODES = {"add": "add", "mul": "multiply", "concat": "concatenate", "zero": None}


def x(batch, length, dim=5):
    return RANDOM.normal(size=(batch, length, dim)).astype("float32")


def encoding(ids, dim):
    """The formula in float64, sin and cos side by side."""
    i = np.arange(dim)
    angles = np.asarray(ids)[..., None] / 10000.0 ** (2 * (i // 2) / dim)
    return np.where(i % 2, np.cos(angles), np.sin(angles))


def test_layer():
    check_layer(
        SinusoidalPositionEncoding,
        {"mode": "concatenate", "encoding_dim": 3, "base": 100.0},
        x,
        errors=[
            (np.ones((2, 3), "float32"), r"must be \(batch, length, dim\), got shape \(2, 3\)")
        ],
        config_errors=[
            ({"mode": "sum"}, "mode must be one of"),
            ({"base": -1.0}, "base must be positive"),
        ],
        skip={"fit": "no weights"},
    )


def test_an_added_encoding_is_as_wide_as_the_features():
    with pytest.raises(ValueError, match="as wide as x, 5, got encoding_dim=3"):
        SinusoidalPositionEncoding(encoding_dim=3)(x(1, 2))


@pytest.mark.parametrize("name", ["add", "concat", "mul", "zero", "custom"])
def test_bert4keras(golden, name):
    folder = golden(f"bert4keras/layers/sinusoidal_{name}")
    case = json.loads((folder / "case.json").read_text())["constructor"]
    data = np.load(folder / "golden.npz")
    layer = SinusoidalPositionEncoding(
        MODES[case["merge_mode"]], None if name == "add" else case["output_dim"]
    )
    ids = {"position_ids": data["in_1"]} if "in_1" in data else {}
    np.testing.assert_allclose(layer(data["in_0"], **ids), data["out_0"], atol=2e-6, rtol=0)


@pytest.mark.parametrize("dim", [1, 4, 5])
def test_start_index(dim):
    layer, zeros = SinusoidalPositionEncoding(), np.zeros((2, 3, dim), "float32")
    np.testing.assert_allclose(
        layer(zeros, start_index=40)[0], encoding([40, 41, 42], dim), atol=2e-6
    )
    of_rows = layer(zeros, start_index=np.array([7, 40]))
    np.testing.assert_allclose(of_rows, encoding([[7, 8, 9], [40, 41, 42]], dim), atol=2e-6)


def test_position_ids_of_each_row_and_one_step():
    layer, ids = SinusoidalPositionEncoding(), np.array([[3, 0, 9], [1, 1, 500]])
    features = x(2, 3)
    expected = features + encoding(ids, 5)
    np.testing.assert_allclose(layer(features, ids), expected, atol=2e-6)
    np.testing.assert_allclose(layer(features[:, 2:], ids[:, 2:]), expected[:, 2:], atol=2e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_half_precision_keeps_far_positions_apart(policy):
    """float16 cannot even count to 3001; fractions are not rounded to it either."""
    layer = SinusoidalPositionEncoding(dtype=policy)
    zeros = np.zeros((1, 2, 4), "float32")
    for ids in ([3000, 3001], [3000.25, 3000.75]):
        got = layer(zeros, np.array([ids]).astype("int32" if ids[0] == 3000 else "float32"))
        assert keras.backend.standardize_dtype(got.dtype) == layer.compute_dtype
        got = keras.ops.convert_to_numpy(keras.ops.cast(got, "float32"))
        np.testing.assert_allclose(got[0], encoding(ids, 4), atol=5e-3)


def test_any_length():
    got = SinusoidalPositionEncoding()(np.zeros((1, 20_000, 4), "float32"))
    np.testing.assert_allclose(got[0], encoding(np.arange(20_000), 4), atol=5e-5)
