"""The lattice LSTM against its equations, a word at a time, and against Keras' LSTM."""

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

UNITS, SLOTS = 3, 2
RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def draw(batch, length):
    normal = lambda *shape: RANDOM.normal(size=shape).astype("float32")
    there = RANDOM.random((batch, length, SLOTS)) < 0.5
    for slot in range(SLOTS):
        there[:, : slot + 1, slot] = False  # its first character would be before the text
    return {
        "characters": normal(batch, length, 4),
        "words": normal(batch, length, SLOTS, 5),
        "word_mask": there,
    }


def by_the_equations(layer, characters, words):
    """Zhang and Yang 2018, equations 11 to 15; words are {(first, last): vector}."""
    weights = {weight.name: array(weight) for weight in layer.weights}
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    hidden, cells = {-1: np.zeros(UNITS)}, {-1: np.zeros(UNITS)}
    for j, x in enumerate(characters):
        z = x @ weights["kernel"] + hidden[j - 1] @ weights["recurrent_kernel"] + weights["bias"]
        i, f, o = (sigmoid(z[k * UNITS : (k + 1) * UNITS]) for k in (0, 1, 3))
        candidate = np.tanh(z[2 * UNITS : 3 * UNITS])
        ending = {b: vector for (b, e), vector in words.items() if e == j}
        gates, flows = [i], [candidate]
        for b, vector in ending.items():
            z = vector @ weights["word_kernel"] + weights["word_bias"]
            z = z + hidden[b] @ weights["word_recurrent_kernel"]
            iw, fw, cw = sigmoid(z[:UNITS]), sigmoid(z[UNITS : 2 * UNITS]), np.tanh(z[2 * UNITS :])
            flows.append(fw * cells[b] + iw * cw)
            z = x @ weights["gate_kernel"] + flows[-1] @ weights["gate_recurrent_kernel"]
            gates.append(sigmoid(z + weights["gate_bias"]))
        if ending:
            shares = np.exp(gates) / np.exp(gates).sum(axis=0)
            cells[j] = (shares * flows).sum(axis=0)
        else:
            cells[j] = f * cells[j - 1] + i * candidate
        hidden[j] = o * np.tanh(cells[j])
    return np.array([hidden[j] for j in range(len(characters))])


@pytest.mark.parametrize("go_backwards", [False, True])
def test_equals_its_equations(go_backwards):
    layer = layers.LatticeLSTM(UNITS, go_backwards)
    inputs, lengths = draw(3, 6), [6, 4, 1]
    real = np.arange(6) < np.array(lengths)[:, None]
    inputs["word_mask"] &= real[..., None]
    found = array(layer(**inputs, padding_mask=real))
    for row, length in enumerate(lengths):
        words = {
            (end - slot - 1, end): inputs["words"][row, end, slot]
            for end, slot in np.argwhere(inputs["word_mask"][row])
        }
        assert row == 2 or words
        characters = inputs["characters"][row, :length]
        if go_backwards:  # the same of the text read from its end
            words = {(length - 1 - e, length - 1 - b): v for (b, e), v in words.items()}
            expected = by_the_equations(layer, characters[::-1], words)[::-1]
        else:
            expected = by_the_equations(layer, characters, words)
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-5)


def test_without_words_it_is_keras_lstm():
    inputs = draw(2, 6)
    inputs["word_mask"][:] = False
    layer = layers.LatticeLSTM(UNITS)
    plain = keras.layers.LSTM(UNITS, return_sequences=True)
    found = array(layer(**inputs))
    plain.build((None, None, 4))
    plain.set_weights([layer.kernel, layer.cell.recurrent_kernel, layer.bias])
    np.testing.assert_allclose(found, array(plain(inputs["characters"])), atol=1e-6)


def test_words_with_padding_in_them_are_left_out():
    inputs, layer = draw(1, 4), layers.LatticeLSTM(UNITS)
    inputs["word_mask"][:] = False
    inputs["padding_mask"] = np.array([[True, False, True, True]])
    without = array(layer(**inputs))
    inputs["word_mask"][0, 2, 1] = True  # characters 0 to 2
    np.testing.assert_array_equal(array(layer(**inputs)), without)


def test_layer():
    check_layer(
        layers.LatticeLSTM,
        {"units": UNITS},
        draw,
        padding=lambda real: {"padding_mask": real},
        errors=[({**draw(2, 3), "words": np.ones((2, 3, 5), "float32")}, "words .batch")],
        config_errors=[({"units": 0}, "units must be at least 1")],
        lengths=(1, 4),
    )
