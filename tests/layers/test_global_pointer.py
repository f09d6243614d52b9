import itertools

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer
from kerasattn.training.losses import multilabel_cross_entropy

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def x(batch, length):
    return RANDOM.normal(size=(batch, length, 6)).astype("float32")


class _Possible:
    """The scores without the -1e9 of hidden spans, which would outweigh every tolerance."""

    HIDDEN = 0.0


@keras.saving.register_keras_serializable(package="tests")
class Pointer(_Possible, layers.GlobalPointer):
    pass


@keras.saving.register_keras_serializable(package="tests")
class EfficientPointer(_Possible, layers.EfficientGlobalPointer):
    pass


@pytest.mark.parametrize("kind", [Pointer, EfficientPointer])
@pytest.mark.parametrize("use_rotary", [True, False])
def test_layer(kind, use_rotary):
    others = dict.fromkeys(
        ("config", "save", "precision", "jit", "saved_model", "errors"), "one of the kinds has it"
    )
    if kind is EfficientPointer and use_rotary:
        others = {"jit": "test_nested_spans_are_learned has it"}
    elif kind is Pointer and use_rotary:
        del others["config"], others["errors"]
    check_layer(
        kind,
        {"num_kinds": 2, "head_dim": 4, "use_rotary": use_rotary, "use_bias": use_rotary},
        x,
        padding=lambda real: {"padding_mask": real},
        config_errors=[
            ({"num_kinds": 0}, "num_kinds and head_dim must be at least 1"),
            ({"head_dim": 3, "use_rotary": True}, "an even head_dim"),
        ],
        errors=[(np.ones((2, 3), "float32"), r"must be \(batch, length, dim\)")],
        skip={"causal": "a span's score has its last token in it", **others},
        lengths=(1, 3, 5),
    )


@pytest.mark.parametrize("kind", [layers.GlobalPointer, layers.EfficientGlobalPointer])
def test_hidden_spans(kind):
    layer = kind(2, head_dim=4)
    real = np.array([[True] * 4, [True, True, False, False]])
    scores = array(layer(x(2, 4), padding_mask=real))
    for row, first, last in itertools.product(range(2), range(4), range(4)):
        possible = real[row, first] and real[row, last] and first <= last
        assert ((scores[row, :, first, last] > -1e9) == possible).all()


def test_nested_spans_are_learned():
    """Kind 0 goes from each 1 to each 2 behind it, kind 1 is each single 3."""
    ids = RANDOM.integers(1, 4, size=(128, 6))
    first, last = ids[:, :, None], ids[:, None, :]
    forward = np.triu(np.ones((6, 6), bool))
    spans = np.stack(
        [(first == 1) & (last == 2) & forward, (first == 3) & np.eye(6, dtype=bool)], 1
    )
    spans = spans.astype("int32")
    token_ids = keras.Input((6,), dtype="int32")
    h = keras.layers.Embedding(4, 16)(token_ids)
    model = keras.Model(token_ids, layers.GlobalPointer(2, head_dim=16)(h))

    def loss(y_true, y_pred):
        flat = lambda x: keras.ops.reshape(x, (-1, 36))
        return multilabel_cross_entropy(flat(y_true), flat(y_pred))

    model.compile(keras.optimizers.Adam(0.02), loss=loss, jit_compile=True)
    model.fit(ids, spans, epochs=40, verbose=0)
    found = array(model(ids)) > 0
    assert (found == spans).all(axis=(1, 2, 3)).mean() > 0.9
