import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from kerasattn.ops import positions


def numpy(x):
    return ops.convert_to_numpy(x)


def sinusoids(position, dim, base=10000.0):
    """The formula of the paper, one number after the other, in float64."""
    return np.array(
        [(np.sin, np.cos)[i % 2](position / base ** (2 * (i // 2) / dim)) for i in range(dim)]
    )


# CASES C18: an odd width ends with a sine.
def test_odd_width():
    expected = [0.841471, 0.540302, 0.025116, 0.999685, 0.000631]
    np.testing.assert_allclose(numpy(positions.sinusoidal([1], 5))[0], expected, atol=1e-6)


@pytest.mark.parametrize("dim", [1, 2, 7, 64])
@pytest.mark.parametrize("position", [0, 1, -3, 511, 100_000])
def test_sinusoidal_is_the_formula(dim, position):
    got = numpy(positions.sinusoidal(np.array([position]), dim))[0]
    assert got.dtype == "float32"
    np.testing.assert_allclose(got, sinusoids(position, dim), atol=2e-4 if position > 1e4 else 2e-6)


def test_fractional_positions():
    got = numpy(positions.sinusoidal(np.array([0.5, 12.25], "float32"), 6))
    np.testing.assert_allclose(got, [sinusoids(0.5, 6), sinusoids(12.25, 6)], atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(step=st.integers(0, 300), half=st.sampled_from([1, 3, 16]))
def test_a_step_is_one_fixed_linear_map(step, half):
    """PE(pos + k) = M_k PE(pos), M_k block rotations by k times each frequency, for every pos."""
    dim = 2 * half
    turn = np.zeros((dim, dim))
    for i in range(half):
        angle = step / 10000 ** (2 * i / dim)
        turn[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [np.cos(angle), np.sin(angle)],
            [-np.sin(angle), np.cos(angle)],
        ]
    encoding = numpy(positions.sinusoidal(np.arange(700), dim)).astype("float64")
    np.testing.assert_allclose(
        encoding[step:], encoding[: 700 - step] @ turn.T, atol=2e-5, err_msg=f"step {step}"
    )


# CASES C22
DISTANCES = [-128, -20, -8, -1, 0, 1, 8, 20, 128]


@pytest.mark.parametrize(
    "bidirectional, expected",
    [(True, [15, 10, 8, 1, 0, 17, 24, 26, 31]), (False, [31, 17, 8, 1, 0, 0, 0, 0, 0])],
)
def test_buckets(bidirectional, expected):
    got = numpy(positions.buckets(np.array(DISTANCES), bidirectional=bidirectional))
    assert got.dtype == "int32"
    assert got.tolist() == expected


@pytest.mark.parametrize("name", ["t5_relative_bidirectional", "t5_relative_causal"])
def test_buckets_of_bert4keras(golden, name):
    folder = golden(f"bert4keras/layers/{name}")
    expected = np.load(folder / "golden.npz")["bucket_ids"]
    case = json.loads((folder / "case.json").read_text())["constructor"]
    distances = positions.relative(np.arange(expected.shape[0]), np.arange(expected.shape[1]))
    got = positions.buckets(distances, 32, 128, case.get("bidirectional", True))
    np.testing.assert_array_equal(numpy(got), expected)


@settings(max_examples=30, deadline=None)
@given(
    num_buckets=st.integers(2, 32).map(lambda n: 2 * n),
    max_distance=st.sampled_from([33, 100, 128, 500]),
    bidirectional=st.booleans(),
)
def test_buckets_by_logarithm(num_buckets, max_distance, bidirectional):
    """The formula with logarithms in float64, away from edges, where rounding decides."""
    count = num_buckets // (2 if bidirectional else 1)
    exact = count // 2
    distances = np.arange(-1000, 1000)
    far = np.maximum(np.abs(distances), 1) / exact
    place = np.log(far) / np.log(max_distance / exact) * (count - exact)
    expected = np.where(
        np.abs(distances) < exact,
        np.abs(distances),
        np.minimum(exact + np.floor(place), count - 1),
    )
    if bidirectional:
        expected += np.where(distances > 0, count, 0)
    else:
        expected = np.where(distances > 0, 0, expected)
    clear = np.abs(place - np.round(place)) > 1e-9
    got = numpy(positions.buckets(distances, num_buckets, max_distance, bidirectional))
    np.testing.assert_array_equal(got[clear], expected[clear])
    assert got.min() == 0
    assert got.max() == num_buckets - 1


def test_buckets_refuse_what_cannot_be():
    with pytest.raises(ValueError, match="num_buckets must be at least 4, and even"):
        positions.buckets([0], num_buckets=7)
    with pytest.raises(ValueError, match="max_distance=8"):
        positions.buckets([0], num_buckets=32, max_distance=8)


# CASES C20
def test_hierarchical_table():
    table = np.array([[1.0], [2.0], [3.0], [4.0]], "float32")
    got = numpy(positions.hierarchical(table, np.array([0, 1, 2, 3, 5, 15])))[:, 0]
    assert got[:4].tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(got[4:], [2.66667, 6.0], atol=1e-5)
    for outside in (16, -1):
        with pytest.raises(ValueError, match=r"in \[0, 16\)"):
            positions.hierarchical(table, np.array([outside]))
    with pytest.raises(ValueError, match="alpha"):
        positions.hierarchical(table, np.array([0]), alpha=1.0)


@pytest.mark.parametrize("alpha", [0.4, 0.1, 0.9])
def test_hierarchical_keeps_the_first_rows_to_the_bit(alpha):
    table = np.random.default_rng(0).normal(size=(13, 7)).astype("float32")
    got = numpy(positions.hierarchical(table, np.arange(13 * 13), alpha))
    np.testing.assert_array_equal(got[:13], table)
    u = (table.astype("float64") - alpha * table[0]) / (1 - alpha)
    p = np.arange(13 * 13)
    np.testing.assert_allclose(got, alpha * u[p // 13] + (1 - alpha) * u[p % 13], atol=2e-5)


def test_clipped_relative_positions():
    distances = positions.relative(np.array([0, 5]), np.array([0, 1, 9]))
    assert numpy(distances).tolist() == [[0, 1, 9], [-5, -4, 4]]
    assert numpy(positions.clipped(distances, 4)).tolist() == [[4, 5, 8], [0, 0, 8]]


def test_relative_positions_of_each_row():
    query = np.array([[0, 1], [3, 4]])
    assert numpy(positions.relative(query, np.array([0, 2]))).tolist() == [
        [[0, 2], [-1, 1]],
        [[-3, -1], [-4, -2]],
    ]


def test_consecutive_positions():
    x = np.zeros((2, 3, 4))
    assert positions.consecutive(x, 5).tolist() == [5, 6, 7]
    assert numpy(positions.consecutive(x, np.array([1, 4]))).tolist() == [[1, 2, 3], [4, 5, 6]]
