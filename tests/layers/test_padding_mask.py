"""The padding mask that models derive in the graph."""

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def test_real_tokens():
    ids = np.array([[0, 7, 0], [0, 0, 0]])
    assert array(layers.PaddingMask()(ids)).tolist() == [[False, True, False], [False] * 3]
    assert array(layers.PaddingMask(pad_id=7)(ids)).tolist() == [[True, False, True], [True] * 3]
    first = layers.PaddingMask(keep_first=True)
    assert array(first(ids)).tolist() == [[True, True, False], [True, False, False]]
    assert array(first(ids[:, :1])).tolist() == [[True], [True]]


def test_a_mask_that_is_given_counts():
    ids, given = np.array([[0, 7, 5]]), np.array([[True, False, True]])
    assert array(layers.PaddingMask()(ids, given)).tolist() == given.tolist()
    found = layers.PaddingMask()(ids, given.astype("int32"))
    assert found.dtype == "bool" and array(found).tolist() == given.tolist()


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (3,), (2, 3, 1), (2, 4)])
def test_a_mask_is_not_stretched(shape):
    with pytest.raises(ValueError, match=r"padding mask has the shape .*ids have \(2, 3\)"):
        layers.PaddingMask()(np.ones((2, 3), "int32"), np.ones(shape, bool))


def test_layer():
    check_layer(
        layers.PaddingMask,
        {"pad_id": 1, "keep_first": True},
        lambda batch, length: RANDOM.integers(0, 3, (batch, length)).astype("int32"),
        skip={
            "padding": "it says where padding is",
            "fit": "it has no weights",
            "precision": "it has no floats",
            "errors": "it takes any ids",
        },
    )
