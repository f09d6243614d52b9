"""Models that start with a file's numbers: nothing drawn, dtypes, errors that leave Keras whole."""

import contextlib

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import weights
from kerasattn.models import BERT

SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


@pytest.fixture
def folder(tmp_path):
    model = BERT(**SIZES)
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    model.save_pretrained(tmp_path)
    return tmp_path


def test_nothing_is_drawn_that_the_file_has(folder, monkeypatch):
    drawn = []
    plain = keras.initializers.TruncatedNormal.__call__

    def counted(self, shape, dtype=None):
        value = plain(self, shape, dtype)
        with contextlib.suppress(Exception):  # a symbol, of which nothing is drawn
            array(value)
            drawn.append(shape)
        return value

    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", counted)
    BERT.from_pretrained(folder)
    assert drawn == []
    model = BERT.from_pretrained(folder, heads=("class",))
    assert sorted(map(tuple, drawn)) == [(8, 2), (8, 8)]  # the new head and its pooler
    kernel = array(model.get_layer("classifier").weights[0])
    assert kernel.std() > 0


def test_load_in_keeps_weights_narrow(folder):
    wide = BERT.from_pretrained(folder)
    for dtype in ("bfloat16", "float16"):
        narrow = BERT.from_pretrained(folder, load_in=dtype)
        assert {v.dtype for v in narrow.trainable_variables} == {dtype}
        for one, other in zip(wide.trainable_variables, narrow.trainable_variables):
            np.testing.assert_array_equal(array(ops.cast(one, dtype)), array(other))
    narrow.save_pretrained(folder / "narrow")
    again = BERT.from_pretrained(folder / "narrow")
    assert {v.dtype for v in again.trainable_variables} == {"float32"}
    with pytest.raises(ValueError, match="load_in='float16' and dtype='float32' differ"):
        BERT.from_pretrained(folder, load_in="float16", dtype="float32")


def test_an_error_leaves_keras_whole(folder):
    """Variables that are left without a value would make the next model fail."""
    with pytest.raises(ValueError, match="do not fit the model"):
        BERT.from_pretrained(folder, num_layers=2)
    form, _ = weights.find_format(folder, BERT.formats)

    class Broken(weights.Source):
        def __init__(self, source):
            super().__init__(source.path)
            self.source, self.names, self.shape = source, source.names, source.shape

        names = ()

        def read(self, name):
            if name.endswith("output.dense.weight"):
                raise ValueError("half of it is missing")
            return self.source.read(name)

    with (
        form.open(folder) as source,
        pytest.raises(ValueError, match="half of it is missing"),
    ):
        weights.build_with_weights(
            lambda: BERT(**SIZES), form.table, Broken(source), fresh=form.fresh
        )
    assert BERT(**SIZES)([[1, 2]])["hidden"].shape == (1, 2, 8)
    assert BERT.from_pretrained(folder)([[1, 2]])["hidden"].shape == (1, 2, 8)
