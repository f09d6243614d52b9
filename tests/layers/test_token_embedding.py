import keras
import numpy as np
import pytest

from kerasattn.layers import FeedForward, LanguageModelHead, TokenEmbedding
from kerasattn.testing import check_layer, reload

RANDOM = np.random.default_rng(0)


def ids(batch, length):
    return RANDOM.integers(0, 11, size=(batch, length)).astype("int32")


@pytest.mark.parametrize("embedding_dim", [None, 3])
def test_layer(embedding_dim):
    check_layer(
        TokenEmbedding,
        {"vocabulary_size": 11, "hidden_dim": 6, "embedding_dim": embedding_dim},
        ids,
        errors=[(np.ones((1, 2), "float32"), "must be integers, got dtype float32")],
        config_errors=[({"vocabulary_size": 0}, "at least 1, got 0")],
        skip=dict.fromkeys(("save", "jit", "saved_model"), "BERT, with it inside, has it")
        if embedding_dim
        else dict.fromkeys(("save", "precision", "jit", "saved_model"), "the narrow table has it"),
        lengths=(1, 4),
    )


def test_reads_rows_and_projects_back():
    table = RANDOM.normal(size=(11, 6)).astype("float32")
    embedding = TokenEmbedding(11, 6)
    embedding.build()
    embedding.set_weights([table])
    x = embedding(np.array([[3, 0]]))
    np.testing.assert_array_equal(x, table[[3, 0]][None])
    np.testing.assert_allclose(embedding(x, reverse=True), table[[3, 0]][None] @ table.T, atol=1e-5)


def test_factorized():
    embedding = TokenEmbedding(11, 6, embedding_dim=2, name="token_embedding")
    x = embedding(ids(2, 3))
    assert [(w.path, tuple(w.shape)) for w in embedding.weights] == [
        ("token_embedding/embeddings", (11, 2)),
        ("token_embedding/projection/kernel", (2, 6)),
        ("token_embedding/projection/bias", (6,)),
    ]
    assert tuple(x.shape) == (2, 3, 6)
    assert tuple(embedding(np.ones((2, 3, 2), "float32"), reverse=True).shape) == (2, 3, 11)
    with pytest.raises(
        ValueError, match=r"as wide as the table, \(..., 2\), got shape \(2, 3, 6\)"
    ):
        embedding(x, reverse=True)


@pytest.mark.parametrize("policy", ["float32", "float16", "mixed_float16", "mixed_bfloat16"])
def test_logits_are_float32(policy):
    embedding = TokenEmbedding(11, 6, dtype=policy)
    x = embedding(ids(2, 3))
    assert keras.backend.standardize_dtype(x.dtype) == embedding.compute_dtype
    logits = embedding(x, reverse=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"


def surgery(tie, activation):
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    embedding = TokenEmbedding(11, 6, name="token_embedding")
    x = FeedForward(8, name="feed_forward")(embedding(token_ids))
    if tie == "head":
        logits = LanguageModelHead(embedding, activation, name="head")(x)
    else:
        logits = embedding(x, reverse=True)
    return keras.Model({"token_ids": token_ids}, {"logits": logits})


@pytest.mark.parametrize("tie, activation", [("head", "gelu"), ("call", None)])
def test_stays_tied_when_loaded(tmp_path, tie, activation):
    model = surgery(tie, activation)
    # Each weight of its own, so that a swap shows.
    model.set_weights([RANDOM.normal(size=w.shape) for w in model.get_weights()])
    paths = [w.path for w in model.weights]
    assert paths.count("token_embedding/embeddings") == 1
    assert sum(tuple(w.shape) == (11, 6) for w in model.weights) == 1
    inputs = {"token_ids": ids(2, 5)}
    expected = np.asarray(model(inputs)["logits"])

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [w.path for w in loaded.weights] == paths
    np.testing.assert_allclose(loaded(inputs)["logits"], expected, rtol=1e-5, atol=1e-6)
    other = reload.predict(tmp_path / "model.keras", inputs)
    np.testing.assert_allclose(other["logits"], expected, rtol=1e-5, atol=1e-6)

    # Still one table: a change of it changes both ends.
    embedding = loaded.get_layer("token_embedding")
    x = np.asarray(loaded.get_layer("feed_forward").weights[0])
    embedding.embeddings.assign(embedding.embeddings * 0)
    logits = np.asarray(loaded(inputs)["logits"])
    assert np.ptp(logits, axis=(0, 1)).max() == 0, x
    if tie == "head":
        assert loaded.get_layer("head").embedding is embedding
