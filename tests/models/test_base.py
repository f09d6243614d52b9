"""What all models share."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.models.base import BaseModel


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


class Counting(BaseModel):
    """Embeds ids, with a dropout that nobody can miss."""

    def __init__(self):
        ids = keras.Input((None,), dtype="int32", name="token_ids")
        other = keras.Input((None,), dtype="int32", name="other", optional=True)
        x = keras.layers.Embedding(5, 400, embeddings_initializer="ones")(ids)
        super().__init__({"token_ids": ids, "other": other}, keras.layers.Dropout(0.5)(x))
        self._id_ranges = {"token_ids": 5}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.std(y_pred)  # 0 without dropout, 1 with


@pytest.mark.parametrize("jit", [False, True])
def test_training_reaches_the_layers(jit):
    """In a call, in fit, and not in evaluate and predict."""
    model, ids = Counting(), np.ones((4, 3), "int32")
    assert array(model(ids)).std() == 0
    assert array(model(ids, training=False)).std() == 0
    assert array(model(ids, training=True)).std() > 0.5
    model.compile(keras.optimizers.SGD(0.0), jit_compile=jit)
    assert model.fit(ids, verbose=0).history["loss"][0] > 0.5
    assert model.evaluate(ids, verbose=0) == 0
    assert array(model.predict(ids, verbose=0)).std() == 0
    outer = keras.Input((None,), dtype="int32")
    nested = keras.Model(outer, model(outer))
    assert array(nested(ids, training=True)).std() > 0.5


def test_inputs():
    model = Counting()
    expected = array(model({"token_ids": np.array([[1, 2]]), "other": None}))
    for inputs in ([[1, 2]], np.array([[1, 2]]), {"token_ids": [[1, 2]]}):
        np.testing.assert_array_equal(array(model(inputs)), expected)
    for wrong, message in (
        ({"tokens": [[1]]}, r"inputs \['token_ids', 'other'\], got also \['tokens'\]"),
        ([[1.7]], "takes integers, got the dtype float"),
        ([[[1]]], r"takes the shape \(None, None\), got \(1, 1, 1\) of rank 3"),
        ([[5]], "ids from 0 to 4, got 5"),
        ([[-1]], "ids from 0 to 4, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            model(wrong)


def test_arrays_beside_tensors():
    model = Counting()
    given = {"token_ids": [[1, 2]], "other": ops.convert_to_tensor([[1, 2]])}
    assert model(given).shape == (1, 2, 400)
