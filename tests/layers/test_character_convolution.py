import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def characters(batch, length):
    ids = RANDOM.integers(1, 7, (batch, length, 4))
    ids[..., 2:] *= RANDOM.integers(0, 2, (batch, length, 1))
    return ids.astype("int32")


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_equals_a_convolution(kernel_size):
    layer = layers.CharacterConvolution(7, 4, 6, kernel_size)
    ids = np.array([[[3, 4, 5, 0, 0], [1, 0, 0, 0, 0], [0] * 5]])
    found = array(layer(ids))
    convolution = keras.layers.Conv1D(6, kernel_size, padding="same")
    convolution.build((None, None, 4))
    kernel = array(layer.projection.kernel).reshape(kernel_size, 4, 6)
    convolution.set_weights([kernel, array(layer.projection.bias)])
    for place, length in enumerate((3, 1)):  # of each word as if it was alone
        x = array(layer.embedding.embeddings)[ids[0, place, :length]]
        expected = array(convolution(x[None])).max(axis=1)[0]
        np.testing.assert_allclose(found[0, place], expected, atol=1e-5)
    assert not found[0, 2].any()


def test_layer():
    check_layer(
        layers.CharacterConvolution,
        {"vocabulary_size": 7, "embedding_dim": 4, "filters": 3},
        characters,
        errors=[(np.ones((2, 3), "int32"), r"\(batch, length, characters\)")],
        config_errors=[({"kernel_size": 2}, "kernel_size odd"), ({"filters": 0}, "at least 1")],
        skip={"saved_model": "as other layers of ids", "save": "one of a kind is saved elsewhere"},
        lengths=(1, 3),
    )
