"""Taggers: what every model passes, and that they learn tags, keep to rules, and are saved."""

import keras
import numpy as np
import pytest

from kerasattn import models
from kerasattn.data.tagging import Lexicon, TaggingScheme
from kerasattn.testing import check_model
from kerasattn.testing.checks import shake

RANDOM = np.random.default_rng(0)
SCHEME = TaggingScheme("BIOES", ["A"])
BOTH_WAYS = {"causal": "reads both ways", "decoding": "tags at once"}


def tags(batch, length):
    return RANDOM.integers(0, SCHEME.num_tags, (batch, length))


def allowed(batch, length):
    return np.tile(SCHEME.encode(["S-A", "O"]), (batch, length))[:, :length]


def token_ids(batch, length):
    return {"token_ids": RANDOM.integers(1, 11, (batch, length)).astype("int32")}


def bilstm_inputs(batch, length):
    return {
        **token_ids(batch, length),
        "character_ids": RANDOM.integers(1, 6, (batch, length, 8)).astype("int32"),
        "feature_ids": RANDOM.integers(1, 9, (batch, length, 9)).astype("int32"),
    }


def lattice_inputs(batch, length):
    words = RANDOM.integers(0, 4, (batch, length, 2))
    for slot in range(2):
        words[:, : slot + 1, slot] = 0
    return {**token_ids(batch, length), "word_ids": words.astype("int32")}


def transformer(dtype=None, **options):
    bert = models.BERT(
        11,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=6,
        max_length=8,
        heads=(),
        dropout=0.0,
        dtype=dtype,
    )
    return models.TransformerCRF(bert, dtype=dtype, **options)


def test_model_bilstm_crf():
    check_model(
        models.BiLSTMCRF,
        dict(
            vocabulary_size=11,
            num_tags=5,
            embedding_dim=4,
            hidden_dim=6,
            character_vocabulary_size=6,
            character_dim=3,
            character_filters=2,
            num_features=8,
            dropout=0.0,
            constraints=SCHEME.constraints(),
        ),
        bilstm_inputs,
        targets=lambda batch, length: np.tile(SCHEME.encode(["S-A", "O"]), (batch, length))[
            :, :length
        ],
        pad_values={"token_ids": 0},
        config_errors=[({"hidden_dim": 5}, "must be even"), ({"num_tags": 0}, "num_tags")],
        skip=BOTH_WAYS
        | {"saved_model": "CRFDecode's and the captioners' have it", "jit": "ops' tests have it"},
        lengths=(1, 4),
    )


def test_model_lattice_lstm_crf():
    check_model(
        models.LatticeLSTMCRF,
        dict(
            vocabulary_size=11,
            num_words=3,
            num_tags=5,
            max_word_length=3,
            embedding_dim=4,
            word_dim=3,
            hidden_dim=6,
            dropout=0.0,
        ),
        lattice_inputs,
        targets=tags,
        pad_values={"token_ids": 0, "word_ids": 0},
        config_errors=[({"max_word_length": 1}, "at least 2"), ({"hidden_dim": 5}, "even")],
        skip=BOTH_WAYS
        | dict.fromkeys(("precision", "jit", "saved_model"), "the layer's own test has it")
        | {"save": "the next test has it", "fit": "the next test has it"},
        lengths=(1, 4),
    )


def test_model_transformer_crf():
    check_model(
        transformer,
        dict(num_tags=5, dropout=0.0),
        lambda batch, length: {
            "token_ids": RANDOM.integers(1, 11, (batch, length)).astype("int32")
        },
        targets=tags,
        errors=[({"token_ids": np.ones((1, 9), "int32")}, "positions for 8 tokens")],
        untrained={"*self_attention/key/bias": "the softmax does not feel it"},
        skip=BOTH_WAYS | dict.fromkeys(("saved_model", "precision", "jit"), "as its encoder's"),
        lengths=(1, 4),
    )
    with pytest.raises(ValueError, match="positions for 8 tokens"):
        transformer(num_tags=5).tag(np.ones((1, 9), "int32"))
    gpt = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="must be a model of the zoo"):
        models.TransformerCRF(gpt, 5)


def sentences(number):
    """Texts of letters, whose names are 'ab' and what stands between a 'c' and a 'd'."""
    texts, spans = [], []
    for _ in range(number):
        text, found = "", []
        for kind in RANDOM.integers(0, 3, 2):
            part = ["ab", "c" + "e" * int(RANDOM.integers(1, 4)) + "d", "be"][kind]
            if kind < 2:
                found.append((len(text), len(text) + len(part), "A"))
            text += part
        texts.append(text)
        spans.append(found)
    return texts, spans


def test_learns_keeps_to_the_rules_and_goes_on_when_loaded(tmp_path):
    texts, spans = sentences(72)  # the last batch of 32 is not full
    length = max(map(len, texts))
    ids = np.array([[" abcde".index(c) for c in text.ljust(length)] for text in texts], "int32")
    y = np.zeros(ids.shape, "int32")
    for row, (text, found) in enumerate(zip(texts, spans)):
        y[row, : len(text)] = SCHEME.encode(SCHEME.to_tags(found, len(text)))
    lexicon = Lexicon(["ab", "be"], max_word_length=2)
    inputs = {"token_ids": ids, "word_ids": lexicon.ending_at(texts, length)}
    model = models.LatticeLSTMCRF(
        6,
        lexicon.num_words,
        SCHEME.num_tags,
        max_word_length=2,
        embedding_dim=8,
        word_dim=8,
        hidden_dim=16,
        constraints=SCHEME.constraints(),
        dropout=0.0,
    )
    model.compile(keras.optimizers.Adam(0.02), jit_compile=False)  # `test_model`s compile
    before = np.asarray(model(inputs)["tags"])
    losses = model.fit(inputs, y, batch_size=32, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.1 * losses[0]
    model.run_eagerly = keras.backend.backend() == "tensorflow"  # once: no graph is worth it
    found = model.tag(inputs)
    assert (found == y)[ids > 0].mean() > 0.97 and not found[ids == 0].any()
    for rows in (before, found):
        for row, text in zip(rows, texts):
            assert SCHEME.is_valid(SCHEME.decode(row[: len(text)]))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(inputs)["tags"]), found)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)


def test_without_a_crf_the_loss_is_that_of_each_tag_and_the_rules_hold():
    rules = SCHEME.constraints()
    model = models.BiLSTMCRF(
        11, 5, embedding_dim=4, hidden_dim=6, constraints=rules, use_crf=False, dropout=0.0
    )
    shake(model, size=1.0)
    for weight in model.get_layer("tag_scores").weights:  # no tag is the likeliest everywhere
        weight.assign(weight * (0 if weight.name == "bias" else 5))
    ids = np.random.default_rng(1).integers(1, 11, (200, 6))
    ids[::2, 4:] = 0
    y = np.where(ids > 0, tags(200, 6), -100)
    outputs = model(ids)
    model.compile(jit_compile=False)
    logits = np.asarray(keras.ops.convert_to_numpy(outputs["token_logits"]), "float64")
    losses = (
        np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, y[..., None] % 5, -1)[..., 0]
    )
    expected = np.where(ids > 0, losses, 0).sum() / 200
    np.testing.assert_allclose(model.compute_loss(ids, y, outputs), expected, rtol=1e-5)
    assert not any("crf" in weight.path.split("/") for weight in model.trainable_variables)
    found = np.asarray(keras.ops.convert_to_numpy(outputs["tags"]))
    assert (found != logits.argmax(-1))[ids > 0].any()
    for row, real in zip(found, ids > 0):
        assert SCHEME.is_valid(SCHEME.decode(row[real]))


def test_pretrained_vectors():
    model = models.BiLSTMCRF(9, 3, embedding_dim=2, hidden_dim=2, trainable_embeddings=False)
    before = np.asarray(model.get_layer("token_embedding").embeddings)
    model.load_vectors([3, 5], [[1, 2], [3, 4]])
    table = np.asarray(model.get_layer("token_embedding").embeddings)
    assert table[[3, 5]].tolist() == [[1, 2], [3, 4]]
    np.testing.assert_array_equal(np.delete(table, [3, 5], 0), np.delete(before, [3, 5], 0))
    assert not any("token_embedding" in w.path for w in model.trainable_variables)
    with pytest.raises(ValueError, match="1 vectors of 2 numbers"):
        model.load_vectors([3], [[1, 2, 3]])
    with pytest.raises(ValueError, match="takes ids from 0 to 8"):
        model.load_vectors([9], [[1, 2]])
    model.compile()
    with pytest.raises(ValueError, match="needs tags y"):
        model.compute_loss(np.ones((1, 2)), None, {})
