import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from kerasattn.ops import rotary


def rotate(x, position, **kwargs):
    x = np.asarray(x, "float32")[None, None]
    return ops.convert_to_numpy(rotary.rotate(x, np.array([position]), **kwargs))[0, 0]


# CASES C16
@pytest.mark.parametrize(
    "interleaved, expected",
    [
        (True, [-1.14264, 1.92208, 2.95985, 4.02980]),
        (False, [-1.98411, 1.95990, 2.46238, 4.01980]),
    ],
)
def test_conventions(interleaved, expected):
    got = rotate([1, 2, 3, 4], 1, interleaved=interleaved)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(got), 5.47723, atol=1e-5)


def test_products_see_distances():
    query, key = [1, 2, 3, 4], [4, 3, 2, 1]
    for q, k in ((5, 3), (2, 0), (1002, 1000)):
        np.testing.assert_allclose(rotate(query, q) @ rotate(key, k), 1.190051, atol=2e-5)


@settings(max_examples=10, deadline=None)
@given(
    half=st.sampled_from([1, 4, 20]),
    interleaved=st.booleans(),
    base=st.sampled_from([100.0, 10000.0, 500000.0]),
    seed=st.integers(0, 1000),
    shift=st.integers(0, 100_000),
)
def test_products_see_only_distances(half, interleaved, base, seed, shift):
    random = np.random.default_rng(seed)
    query, key = random.normal(size=(2, 2 * half))
    q, k = random.integers(0, 50, size=2)
    options = {"interleaved": interleaved, "base": base}
    near = rotate(query, q, **options) @ rotate(key, k, **options)
    far = rotate(query, q + shift, **options) @ rotate(key, k + shift, **options)
    np.testing.assert_allclose(near, far, atol=2e-3 if shift > 2000 else 1e-4)


@pytest.mark.parametrize("interleaved", [True, False])
def test_each_pair_is_a_complex_product(interleaved):
    x = np.random.default_rng(1).normal(size=(2, 9, 3, 8))
    ids = np.random.default_rng(2).integers(0, 4000, size=(2, 9))
    turn = np.exp(1j * ids[..., None, None] * 10000.0 ** (-np.arange(4) / 4))
    if interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., :4], x[..., 4:]
    turned = (first + 1j * second) * turn
    expected = np.empty_like(x)
    if interleaved:
        expected[..., 0::2], expected[..., 1::2] = turned.real, turned.imag
    else:
        expected[..., :4], expected[..., 4:] = turned.real, turned.imag
    got = rotary.rotate(x.astype("float32"), ids, interleaved=interleaved)
    np.testing.assert_allclose(ops.convert_to_numpy(got), expected, atol=1e-5)


def test_half_precision_keeps_positions_apart():
    """bfloat16 angles would give positions 1000 and 1001 the same turn."""
    x = ops.cast(np.ones((1, 1, 1, 2), "float32"), "bfloat16")
    turned = [rotary.rotate(x, np.array([p])) for p in (1000, 1001)]
    assert all(y.dtype == x.dtype for y in turned)
    got = [ops.convert_to_numpy(ops.cast(y, "float32"))[0, 0, 0] for y in turned]
    expected = [[np.cos(p) - np.sin(p), np.cos(p) + np.sin(p)] for p in (1000, 1001)]
    np.testing.assert_allclose(got, expected, atol=1e-2)


def test_angles_that_are_given():
    x = np.random.default_rng(0).normal(size=(2, 5, 3, 8)).astype("float32")
    angles = np.arange(5)[:, None] * 10000.0 ** (-np.arange(4) / 4)
    for interleaved in (True, False):
        turned = rotary.turn(x, np.cos(angles), np.sin(angles), interleaved)
        expected = rotary.rotate(x, np.arange(5), interleaved=interleaved)
        np.testing.assert_allclose(turned, expected, atol=1e-5)
