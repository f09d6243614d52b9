"""One vector for a text: what counts in it, and on which models."""

import numpy as np
import pytest
from keras import ops

from kerasattn import models
from kerasattn.heads import SentenceEmbedding
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_what_is_pooled():
    hidden = RANDOM.normal(size=(2, 4, 3)).astype("float32")
    real = np.array([[True, True, True, False], [False, True, True, True]])
    expected = {
        "mean": [hidden[0, :3].mean(axis=0), hidden[1, 1:].mean(axis=0)],
        "cls": [hidden[0, 0], hidden[1, 1]],
        "last": [hidden[0, 2], hidden[1, 3]],
    }
    for pooling, vectors in expected.items():
        vectors = np.stack(vectors)
        plain = SentenceEmbedding(pooling, normalize=False)(hidden, real)
        np.testing.assert_allclose(array(plain), vectors, rtol=1e-5)
        unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        np.testing.assert_allclose(array(SentenceEmbedding(pooling)(hidden, real)), unit, rtol=1e-5)


# CASES C7: a text without a real token.
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_c7_nothing_gives_zeros(pooling):
    hidden, real = np.ones((2, 3, 2), "float32"), np.array([[True, True, False], [False] * 3])
    found = SentenceEmbedding(pooling, normalize=False)(hidden, real)
    np.testing.assert_array_equal(array(found), [[1, 1], [0, 0]])
    found = SentenceEmbedding(pooling)(hidden[:, :0], real[:, :0])
    np.testing.assert_array_equal(array(found), np.zeros((2, 2)))
    assert np.isfinite(array(SentenceEmbedding(pooling)(hidden, real))).all()


@pytest.mark.slow
def test_layer():
    check_layer(
        SentenceEmbedding,
        {"pooling": "last", "normalize": False},
        lambda batch, length: RANDOM.normal(size=(batch, length, 4)).astype("float32"),
        config_errors=[({"pooling": "max"}, "pooling must be one of")],
        skip={
            "fit": "it has no weights",
            "padding": "test_what_is_pooled",
            "causal": "it reads whole texts",
        },
    )


@pytest.mark.parametrize("family", ["bert", "t5_encoder", "xlnet"])
def test_on_any_encoder(family, tmp_path):
    more = {"head_dim": 4} if family == "t5_encoder" else {}
    more |= {"pad_id": 0}
    encoder = models.MODELS[family](**SIZES, **more)
    model = models.sentence_encoder(encoder)
    found = array(model(np.array([[5, 6, 7, 0, 0], [5, 6, 7, 0, 0]]))["embedding"])
    np.testing.assert_allclose(np.linalg.norm(found[0]), 1, rtol=1e-5)
    hidden = array(encoder(np.array([[5, 6, 7]]))["hidden"]).mean(axis=1)
    expected = hidden / np.linalg.norm(hidden)
    np.testing.assert_allclose(found, expected.repeat(2, axis=0), atol=1e-5)
    if family == "bert":
        model.save(tmp_path / "model.keras")
        again = models.load_model(tmp_path / "model.keras")
        alone = array(again(np.array([[5, 6, 7]]))["embedding"])
        np.testing.assert_allclose(alone, found[:1], atol=1e-5)


def test_encoder_decoders_read_two_texts():
    with pytest.raises(ValueError, match="reads two texts"):
        models.sentence_encoder(models.BART(**SIZES))
