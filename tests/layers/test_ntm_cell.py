import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
TINY = dict(units=5, num_slots=4, slot_dim=3)


def machine(dtype=None, **config):
    cell = layers.NTMCell(**config, dtype=dtype)
    return keras.layers.RNN(cell, return_sequences=True, dtype=dtype)


def sequences(batch, length):
    return RANDOM.normal(size=(batch, length, 2)).astype("float32")


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


OPTIONS = {
    "lstm": dict(initial_memory="learned", seed=3),
    "dense": dict(
        num_read_heads=2, num_write_heads=2, controller="dense", addressing="content",
        initial_memory="random",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_layer(name):
    check_layer(
        machine,
        {**TINY, **OPTIONS[name]},
        sequences,
        config_errors=[
            ({"units": 0}, "units must be at least 1, got 0"),
            ({"shift_range": 2}, "below half of the 4 slots, got 2"),
            ({"addressing": "place"}, "addressing must be one of"),
            ({"controller": "gru"}, "controller must be one of"),
            ({"initial_memory": "zeros"}, "initial_memory must be one of"),
        ],
        skip={
            "config": "the layer is Keras' own; that of the cell is below",
            **dict.fromkeys(["save", "saved_model", "jit", "precision"], "those of the model"),
            **(dict.fromkeys(["causal", "padding"], "as the LSTM's") if name == "dense" else {}),
        },
        lengths=(1, 3),
    )
    cell = layers.NTMCell(**TINY, **OPTIONS[name])
    assert layers.NTMCell.from_config(cell.get_config()).get_config() == cell.get_config()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def test_a_step_is_that_of_the_paper():
    """One head that reads and one that writes, in numpy, from the equations."""
    cell = layers.NTMCell(**TINY, controller="dense")
    cell.build((None, 2))
    for weight in cell.weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    x, hidden = sequences(2, 1)[:, 0], np.zeros((2, 5), "float32")
    memory = RANDOM.normal(size=(2, 4, 3)).astype("float32")
    before = softmax(RANDOM.normal(size=(2, 2, 4))).astype("float32")
    reads = RANDOM.normal(size=(2, 3)).astype("float32")
    said, states = cell(x, [hidden, memory.reshape(2, 12), before.reshape(2, 8), reads])

    kernel, bias = (array(w) for w in cell.body.weights)
    hidden = np.tanh(np.concatenate([x, reads], 1) @ kernel + bias)
    kernel, bias = (array(w) for w in cell.interface.weights)
    given = hidden @ kernel + bias
    parts = np.split(given, np.cumsum([6, 2, 2, 6, 2, 3]), axis=1)
    keys, strengths, gates, shifts, powers, erase, add = parts
    places = np.zeros((2, 2, 4))
    for head in range(2):
        key = np.tanh(keys.reshape(2, 2, 3)[:, head])
        cosine = np.einsum("bd,bnd->bn", key, memory)
        cosine /= np.linalg.norm(key, axis=-1)[:, None] * np.linalg.norm(memory, axis=-1)
        found = softmax(np.log1p(np.exp(strengths[:, head]))[:, None] * cosine)
        gate = sigmoid(gates[:, head])[:, None]
        place = gate * found + (1 - gate) * before[:, head]
        move = softmax(shifts.reshape(2, 2, 3)[:, head])
        place = sum(move[:, i, None] * np.roll(place, i - 1, axis=1) for i in range(3))
        place = place ** (1 + np.log1p(np.exp(powers[:, head])))[:, None]
        places[:, head] = place / place.sum(1, keepdims=True)
    read = np.einsum("bn,bnd->bd", places[:, 0], memory)
    write = places[:, 1, :, None]
    memory = memory * (1 - write * sigmoid(erase)[:, None]) + write * np.tanh(add)[:, None]

    np.testing.assert_allclose(array(said), np.concatenate([hidden, read], 1), atol=1e-5)
    for found, expected in zip(states, (hidden, memory, places, read)):
        np.testing.assert_allclose(array(found), expected.reshape(2, -1), atol=1e-5)
    np.testing.assert_allclose(array(cell.adds(said)), np.tanh(add), atol=1e-5)


def test_the_start():
    cell = layers.NTMCell(**TINY)
    cell.build((None, 2))
    h, c, memory, places, reads = map(array, cell.get_initial_state(3))
    assert not h.any() and not c.any() and h.shape == (3, 5)
    np.testing.assert_allclose(memory, 1e-6)
    assert (places.reshape(3, 2, 4)[:, :, 0] > 0.9).all()
    np.testing.assert_allclose(places.reshape(3, 2, 4).sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(reads, 1e-6, rtol=1e-5)
    drawn = [layers.NTMCell(**TINY, initial_memory="random", seed=s) for s in (1, 1, 2)]
    for one in drawn:
        one.build((None, 2))
    first, same, other = (array(one.memory) for one in drawn)
    assert (first == same).all() and (first != other).any()
    assert not drawn[0].memory.trainable


def test_by_content_alone_an_even_memory_stays_even():
    """What training cannot get out of: no slot can be told from another."""
    cell = layers.NTMCell(**TINY, addressing="content", seed=0)
    cell.build((None, 2))
    states = cell.get_initial_state(5)
    for _ in range(3):
        _, states = cell(sequences(5, 1)[:, 0], states)
    memory, places = array(states[-3]).reshape(5, 4, 3), array(states[-2]).reshape(5, 2, 4)
    np.testing.assert_allclose(places, 0.25, atol=1e-6)
    np.testing.assert_allclose(memory, memory[:, :1].repeat(4, axis=1), atol=1e-6)
