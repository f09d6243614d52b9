"""The layers of ELMo against their equations."""

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_a_mix_is_its_equation():
    given, scalars = [normal(2, 3, 4) for _ in range(3)], np.array([0.5, -1.0, 2.0], "float32")
    for normalize in (False, True):
        mix = layers.ScalarMix(normalize)
        even = array(mix(given))
        mix.set_weights([scalars, np.array(0.7)])
        parts = given
        if normalize:
            parts = [(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) for x in given]
        np.testing.assert_allclose(even, np.mean(parts, axis=0), atol=1e-5)
        shares = np.exp(scalars) / np.exp(scalars).sum()
        expected = 0.7 * sum(s * x for s, x in zip(shares, parts, strict=True))
        np.testing.assert_allclose(array(mix(given)), expected, atol=1e-5)


def test_mixes_are_of_one_shape_and_come_back_from_their_config():
    mix = layers.ScalarMix(True, regularizer=keras.regularizers.L2(0.5))
    assert layers.ScalarMix.from_config(mix.get_config()).get_config() == mix.get_config()
    mix([normal(1, 2, 3)] * 2)
    mix.scalars.assign([1.0, 2.0])
    np.testing.assert_allclose(array(mix.losses[0]), 2.5)  # 0.5 (1 + 4)
    for bad in ([normal(1, 2), normal(1, 3)], normal(2, 3)):
        with pytest.raises(ValueError, match="a list of tensors of one shape"):
            layers.ScalarMix()(bad)


def test_a_projected_cell_is_its_equations():
    cell = layers.ProjectedLSTMCell(5, 3, cell_clip=0.6, projection_clip=0.4)
    x, h, c = normal(2, 4), normal(2, 3), normal(2, 5)
    cell.build(x.shape)
    np.testing.assert_array_equal(array(cell.bias), np.repeat([0, 1, 0, 0], 5))
    for weight in cell.weights:
        weight.assign(normal(*weight.shape))
    kernel, recurrent, bias, projection = map(array, cell.weights)
    enter, forget, candidate, leave = np.split(x @ kernel + h @ recurrent + bias, 4, axis=-1)
    new = sigmoid(forget) * c + sigmoid(enter) * np.tanh(candidate)
    told = (sigmoid(leave) * np.tanh(np.clip(new, -0.6, 0.6))) @ projection
    output, states = cell(x, [h, c])
    expected = [np.clip(told, -0.4, 0.4)] * 2 + [np.clip(new, -0.6, 0.6)]
    assert (np.abs(new) > 0.6).any() and (np.abs(told) > 0.4).any()  # the limits bite
    for found, wanted in zip([output, *states], expected, strict=True):
        np.testing.assert_allclose(array(found), wanted, atol=1e-6)


def test_projected_to_its_own_width_it_is_keras_lstm():
    ours, theirs = layers.ProjectedLSTMCell(3, 3), keras.layers.LSTMCell(3)
    x, states = normal(2, 4), [normal(2, 3), normal(2, 3)]
    theirs.build(x.shape)
    ours.build(x.shape)
    ours.set_weights([*theirs.get_weights(), np.eye(3)])
    np.testing.assert_allclose(array(ours(x, states)[0]), array(theirs(x, states)[0]), atol=1e-6)


def test_settings_of_the_cell():
    cell = layers.ProjectedLSTMCell(5, 3, cell_clip=2.0, unit_forget_bias=False)
    assert cell.from_config(cell.get_config()).get_config() == cell.get_config()
    with pytest.raises(ValueError, match="projection_dim must be at least 1"):
        layers.ProjectedLSTMCell(3, 0)
    with pytest.raises(ValueError, match="cell_clip must be above 0"):
        layers.ProjectedLSTMCell(3, 3, cell_clip=0)
    with pytest.raises(ValueError, match="takes one step"):
        layers.ProjectedLSTMCell(3, 3).build((2, 4, 5))


def test_filters_equal_convolutions():
    layer = layers.CharacterFilters(7, 4, [(1, 2), (3, 5)], "relu")
    ids = RANDOM.integers(0, 7, (2, 3, 6))
    found = array(layer(ids))
    x = array(layer.embedding.embeddings)[ids] * (ids > 0)[..., None]
    expected = []
    for kernel, bias in zip(layer.kernels, layer.biases, strict=True):
        kernel, width = array(kernel), kernel.shape[0]
        places = [
            np.einsum("blwe,wen->bln", x[:, :, i : i + width], kernel) for i in range(6 - width + 1)
        ]
        expected.append(np.max(places, axis=0) + array(bias))
    expected = np.maximum(np.concatenate(expected, axis=-1), 0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_character_filters():
    check_layer(
        layers.CharacterFilters,
        {"vocabulary_size": 7, "embedding_dim": 3, "filters": [[1, 2], [2, 3]]},
        lambda batch, length: RANDOM.integers(1, 7, (batch, length, 4)).astype("int32"),
        errors=[
            (np.ones((2, 3), "int32"), "at least 2 characters"),
            (np.ones((2, 3, 1), "int32"), "at least 2 characters"),
        ],
        config_errors=[({"filters": []}, "filters pairs"), ({"filters": [(0, 3)]}, "at least 1")],
        skip={"saved_model": "ELMo has it", "save": "ELMo has it", "jit": "ELMo has it"},
        lengths=(1, 3),
    )
