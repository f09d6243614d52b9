"""Positions that count real tokens."""

import keras
import numpy as np

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
REAL = np.array([[False, True, True, False, True], [False] * 5])


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def test_real_tokens_count():
    assert array(layers.PositionIds()(REAL)).tolist() == [[0, 0, 1, 1, 2], [0] * 5]
    roberta = layers.PositionIds(start=2, padding_position=1)
    assert array(roberta(REAL)).tolist() == [[1, 2, 3, 1, 4], [1] * 5]


def test_positions_that_are_given_count():
    given = np.array([[4, 3, 2, 1, 0]] * 2)
    found = layers.PositionIds(start=2)(REAL, given)
    assert found.dtype == "int32" and array(found).tolist() == given.tolist()


def test_layer():
    check_layer(
        layers.PositionIds,
        {"start": 2, "padding_position": 1},
        lambda batch, length: RANDOM.random((batch, length)) < 0.7,
        skip={
            "padding": "it counts what is no padding",
            "fit": "it has no weights",
            "precision": "it has no floats",
            "errors": "it takes any mask",
        },
    )
