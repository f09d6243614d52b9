import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.ops import addressing

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def weights(*shape):
    x = RANDOM.random(shape).astype("float32")
    return x / x.sum(-1, keepdims=True)


def test_content_is_the_softmax_of_cosines():
    memory, keys = RANDOM.normal(size=(2, 5, 3)), RANDOM.normal(size=(2, 4, 3))
    strengths = RANDOM.random((2, 4)) * 5
    norms = np.linalg.norm(keys, axis=-1)[:, :, None] * np.linalg.norm(memory, axis=-1)[:, None]
    scores = np.exp(strengths[..., None] * np.einsum("bhd,bnd->bhn", keys, memory) / norms)
    expected = scores / scores.sum(-1, keepdims=True)
    found = addressing.by_content(*(x.astype("float32") for x in (memory, keys, strengths)))
    np.testing.assert_allclose(array(found), expected, atol=1e-5)


def test_slots_of_zeros_are_like_nothing():
    memory, key = np.array([[[0.0, 0.0], [1.0, 0.0]]]), np.array([[[1.0, 0.0]]])
    found = array(addressing.by_content(memory, key, np.array([[2.0]])))
    np.testing.assert_allclose(found[0, 0], [0.119203, 0.880797], atol=1e-6)
    nothing = array(addressing.by_content(memory, key * 0, np.array([[2.0]])))
    np.testing.assert_allclose(nothing[0, 0], [0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_shift_is_a_circular_convolution(reach):
    before, moves = weights(2, 3, 6), weights(2, 3, 2 * reach + 1)
    expected = np.zeros_like(before)
    for slot in range(6):
        for i, move in enumerate(range(-reach, reach + 1)):
            expected[..., (slot + move) % 6] += before[..., slot] * moves[..., i]
    np.testing.assert_allclose(array(addressing.shift(before, moves)), expected, atol=1e-6)


def test_sharpen_is_a_power_over_its_sum():
    before, powers = weights(2, 3, 6), 1 + RANDOM.random((2, 3)).astype("float32")
    expected = before.astype("float64") ** powers[..., None]
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(array(addressing.sharpen(before, powers)), expected, atol=1e-5)
    tiny = np.array([[[1e-3, 1e-3]]], "float32")
    assert array(addressing.sharpen(tiny, np.array([[20.0]]))).tolist() == [[[0.5, 0.5]]]
    one = np.array([[[0.0, 1.0, 0.0]]], "float32")
    np.testing.assert_allclose(array(addressing.sharpen(one, np.array([[3.0]]))), one, atol=1e-20)


def test_write_erases_and_adds_by_head():
    memory, places = RANDOM.normal(size=(2, 5, 3)), weights(2, 2, 5)
    erase, add = RANDOM.random((2, 2, 3)), RANDOM.normal(size=(2, 2, 3))
    expected = memory.copy()
    for head in range(2):
        expected *= 1 - places[:, head, :, None] * erase[:, head, None]
    for head in range(2):
        expected += places[:, head, :, None] * add[:, head, None]
    found = addressing.write(*(x.astype("float32") for x in (memory, places, erase, add)))
    np.testing.assert_allclose(array(found), expected, atol=1e-5)
    found = addressing.read(memory.astype("float32"), places)
    np.testing.assert_allclose(array(found), np.einsum("bhn,bnd->bhd", places, memory), atol=1e-5)


def test_gradients_are_finite_where_it_is_flat():
    """A memory of zeros, a key of zeros, a place that is certain, a large power."""
    variables = [
        keras.Variable(np.asarray(x, "float32"))
        for x in (np.zeros((1, 3, 2)), np.zeros((1, 1, 2)), np.full((1, 1), 5.0), [[20.0]])
    ]

    class Everything(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.parts = variables

        def call(self, x):
            memory, key, strength, power = self.parts
            found = addressing.by_content(memory, key, strength)
            certain = np.array([[[1.0, 0.0, 0.0]]], "float32")
            places = addressing.interpolate(found, certain, np.zeros((1, 1), "float32"))
            places = addressing.shift(places, np.array([[[0.0, 1.0, 0.0]]], "float32"))
            return x * ops.sum(addressing.sharpen(places, power) * certain * 2 + found)

    model = keras.Sequential([keras.Input((1,)), Everything()])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(np.ones((2, 1)), np.zeros((2, 1)), verbose=0)
    assert all(np.isfinite(array(v)).all() for v in variables)
