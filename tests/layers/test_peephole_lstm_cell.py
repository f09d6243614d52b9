"""The peephole LSTM against its equations, and against Keras' LSTM where it has no peepholes."""

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


@pytest.mark.parametrize("coupled", [False, True])
def test_equals_its_equations(coupled):
    cell, x, h, c = layers.PeepholeLSTMCell(3, coupled=coupled), *(normal(2, n) for n in (4, 3, 3))
    cell.build(x.shape)
    for weight in cell.weights:
        weight.assign(normal(*weight.shape))
    w = {weight.name: array(weight) for weight in cell.weights}
    names = (
        ["enter", "candidate", "leave"] if coupled else ["enter", "forget", "candidate", "leave"]
    )
    z = x @ w["kernel"] + h @ w["recurrent_kernel"] + w["bias"]
    z = {name: z[:, 3 * i : 3 * i + 3] for i, name in enumerate(names)}
    enter = sigmoid(z["enter"] + w["peepholes"][0] * c)
    forget = 1 - enter if coupled else sigmoid(z["forget"] + w["peepholes"][1] * c)
    new = forget * c + enter * np.tanh(z["candidate"])
    leave = sigmoid(z["leave"] + w["peepholes"][-1] * new)  # the state after the step
    output, states = cell(x, [h, c])
    for found, expected in zip([output, *states], [leave * np.tanh(new)] * 2 + [new], strict=True):
        np.testing.assert_allclose(array(found), expected, atol=1e-6)


def test_without_peepholes_it_is_keras_lstm():
    ours, theirs = layers.PeepholeLSTMCell(3), keras.layers.LSTMCell(3)
    x, states = normal(2, 4), [normal(2, 3), normal(2, 3)]
    theirs.build(x.shape)
    ours.build(x.shape)
    np.testing.assert_array_equal(array(ours.bias), array(theirs.bias))
    ours.set_weights([*theirs.get_weights(), np.zeros((3, 3))])
    np.testing.assert_allclose(array(ours(x, states)[0]), array(theirs(x, states)[0]), atol=1e-6)


def test_peephole_lstm_cell():
    check_layer(
        lambda **config: keras.layers.RNN(
            layers.PeepholeLSTMCell(**config, peephole_initializer="ones"),
            return_sequences=True,
            dtype=config.get("dtype"),
            name=config.get("name"),
        ),
        {"units": 3, "coupled": True},
        lambda batch, length: normal(batch, length, 4),
        padding=lambda real: {"mask": real},
        skip={
            "config": "the cell's is in the RNN's, which is Keras' own",
            "errors": "of the cell, below",
            "save": "models of it have it",
            "saved_model": "LatticeLSTM has it, as a cell of Keras' RNN",
        },
        lengths=(1, 3),
    )
    cell = layers.PeepholeLSTMCell.from_config(
        layers.PeepholeLSTMCell(3, coupled=True).get_config()
    )
    assert cell.coupled and cell.units == 3
    with pytest.raises(ValueError, match="units must be at least 1"):
        layers.PeepholeLSTMCell(0)
    with pytest.raises(ValueError, match="takes one step"):
        layers.PeepholeLSTMCell(3).build((2, 4, 5))
