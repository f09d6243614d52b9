"""Who sees whom, by application."""

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
REAL = np.array([[True, True, True, False]])
SEGMENTS = np.array([[0, 0, 1, 0]])


def visible(mask):
    mask = np.asarray(keras.ops.convert_to_numpy(mask))
    return np.broadcast_to(mask, (1, 1, 4, 4))[0, 0].astype(int).tolist()


def test_applications():
    assert visible(layers.AttentionMask()(REAL, SEGMENTS)) == [[1, 1, 1, 0]] * 4
    causal = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    assert visible(layers.AttentionMask("lm")(REAL)) == causal
    prefix = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    assert visible(layers.AttentionMask("unilm")(REAL, SEGMENTS)) == prefix
    with pytest.raises(ValueError, match=r"application must be one of .*'gpt'"):
        layers.AttentionMask("gpt")


def test_a_further_mask():
    further = np.eye(4, dtype=bool)[None]
    found = layers.AttentionMask("lm")(REAL, SEGMENTS, further)
    assert visible(found) == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_the_shape_it_says():
    real = keras.Input((None,), dtype="bool")
    assert layers.AttentionMask()(real).shape == (None, 1, 1, None)
    assert layers.AttentionMask("lm")(real).shape == (None, 1, None, None)


def test_layer():
    check_layer(
        layers.AttentionMask,
        {"application": "unilm"},
        lambda batch, length: (
            np.ones((batch, length), bool),
            (RANDOM.random((batch, length)) < 0.5).astype("int32"),
        ),
        skip={
            "padding": "it hides padding",
            "causal": "it is the mask",
            "fit": "it has no weights",
            "precision": "it has no floats",
            "errors": "it takes any ids",
        },
    )
