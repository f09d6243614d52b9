"""Capsules against the paper's procedure, written out in loops."""

import keras
import numpy as np
import pytest

from kerasattn.ops import routing

DTYPES = ("float32", "float16", "bfloat16")


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(x, "float32")))


def gradient_of(function, x):
    """d function(x) / dx, by the backend at hand."""
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(function)(x).astype("float32"))
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return array(tape.gradient(value, x))


def squashed(s):
    """Equation 1."""
    squares = (s**2).sum()
    return squares / (1 + squares) * s / np.sqrt(squares) if squares else s


def routed(votes, num_routings, real):
    """Procedure 1, one capsule after another: votes (in, out, dim) -> (out, dim)."""
    votes = votes[real]
    logits = np.zeros(votes.shape[:2])
    for _ in range(num_routings):
        shares = np.array([np.exp(row) / np.exp(row).sum() for row in logits])
        capsules = np.stack(
            [squashed((shares[:, j, None] * votes[:, j]).sum(0)) for j in range(votes.shape[1])]
        )
        logits = logits + np.einsum("iod,od->io", votes, capsules)
    return capsules


@pytest.mark.parametrize("num_routings", [1, 3])
def test_procedure_of_the_paper(num_routings):
    random = np.random.default_rng(0)
    votes = random.normal(size=(2, 4, 6, 3), scale=0.7)  # (batch, out, in, dim)
    real = np.array([[True] * 6, [True, True, False, True, False, True]])
    actual = array(routing.dynamic_routing(votes.astype("float32"), num_routings, real))
    for row in range(2):
        expected = routed(votes[row].transpose(1, 0, 2), num_routings, real[row])
        np.testing.assert_allclose(actual[row], expected, atol=1e-5)
    with pytest.raises(ValueError, match="num_routings must be at least 1, got 0"):
        routing.dynamic_routing(votes, 0)


# CASES C45
@pytest.mark.parametrize("dtype", DTYPES)
def test_squash(dtype):
    x = keras.ops.cast(np.array([[0.0, 0.0], [3.0, 4.0], [1e4, 0.0]]), dtype)
    y = routing.squash(x)
    assert keras.backend.standardize_dtype(y.dtype) == dtype
    expected = [[0, 0], [0.576923, 0.769231], [1, 0]]
    np.testing.assert_allclose(array(y), expected, atol=1e-6 if dtype == "float32" else 4e-3)
    np.testing.assert_allclose(array(routing.lengths(x)), [0, 5, 1e4], rtol=4e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_finite_at_every_size(dtype):
    """Of zeros too, and through capsules made of capsules; a row for each size."""
    limit = {"float16": 4e4}.get(dtype, 1e38)
    sizes = np.minimum([0.0, 1e-42, 1e-25, 1e-4, 1.0, 1e4, 1e30], limit)
    x = keras.ops.cast(np.broadcast_to(sizes[:, None, None, None], (7, 2, 3, 2)), dtype)

    def of(function):
        return gradient_of(lambda v: keras.ops.sum(keras.ops.cast(function(v), "float32")), x)

    stacked = lambda v: routing.lengths(routing.dynamic_routing(v))
    for function in (routing.lengths, routing.squash, stacked):
        assert np.isfinite(array(function(x))).all()
        gradient = of(function)
        assert np.isfinite(gradient).all()
        np.testing.assert_array_equal(gradient[0], 0)
    # Of a vector's length, the vector made a unit one.
    np.testing.assert_allclose(of(routing.lengths)[4:6], 0.5**0.5, rtol=4e-3)


def test_keep_labelled():
    capsules = np.arange(1.0, 13).reshape(2, 3, 2).astype("float32")
    kept = array(routing.keep_labelled(capsules, np.array([2, 0])))
    assert kept.tolist() == [[[0, 0], [0, 0], [5, 6]], [[7, 8], [0, 0], [0, 0]]]
    several = array(routing.keep_labelled(capsules, np.array([[2, 0], [0, 1]])))
    assert several.shape == (2, 2, 3, 2)
    assert several[0, 1].tolist() == [[1, 2], [0, 0], [0, 0]]
