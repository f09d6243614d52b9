"""Classifiers and readers: what every model passes, and that they learn."""

import keras
import numpy as np
import pytest

from kerasattn import models
from kerasattn.testing import check_model

RANDOM = np.random.default_rng(0)
READS = {"causal": "reads both ways", "decoding": "does not write"}
FEW = dict.fromkeys(("saved_model", "jit"), "Keras' recurrent layers, tried in captioners")
ONCE = dict.fromkeys(("save", "saved_model", "jit"), "as that of the readers that are tried whole")
SIZES = dict(vocabulary_size=11, embedding_dim=4, hidden_dim=6, dropout=0.0)


def ids(*shape):
    return RANDOM.integers(1, 11, shape).astype("int32")


def pair(batch, length):
    return {"token_ids": ids(batch, length), "query_ids": ids(batch, 2)}


def classes(batch, length):
    return RANDOM.integers(0, 3, batch)


@pytest.mark.parametrize("pooling", ["attention", "last"])
def test_model_rnn_classifier(pooling):
    check_model(
        models.RNNClassifier,
        dict(num_classes=3, pooling=pooling, attention_dim=3, **SIZES),
        targets=classes,
        config_errors=[({"pooling": "mean"}, "pooling must be"), ({"hidden_dim": 5}, "even")],
        skip={
            **READS,
            **ONCE,
            "precision": "the layers' own tests have it",
            **({"config": "that of the other pooling"} if pooling == "last" else {}),
        },
        lengths=(1, 3),
    )


def test_model_han():
    check_model(
        models.HAN,
        dict(num_classes=3, attention_dim=3, **SIZES),
        lambda batch, length: {"token_ids": ids(batch, length, 2)},
        targets=classes,
        config_errors=[({"hidden_dim": 5}, "even"), ({"num_classes": 0}, "num_classes")],
        skip={**READS, **FEW, "padding": "of sentences and words: below"},
        lengths=(1, 3),
    )
    model = models.HAN(11, 3, 4, 6, 3)
    document = ids(1, 2, 3)
    document[0, 1, 2] = 0
    wide = np.pad(document, [(0, 0), (0, 2), (0, 1)])  # more sentences, longer ones
    marked = {"token_ids": np.where(wide, wide, 7), "padding_mask": wide != 0}
    found, same, told = model(document), model(wide), model(marked)
    for name, output in found.items():
        cut = tuple(slice(n) for n in output.shape)
        np.testing.assert_allclose(same[name][cut], output, atol=1e-6)
        np.testing.assert_allclose(told[name], same[name], atol=1e-6)


def test_model_rnn_reader():
    check_model(
        models.RNNReader,
        dict(num_classes=3, **SIZES),
        pair,
        targets=classes,
        errors=[({"token_ids": ids(2, 3)}, "needs query_ids")],
        skip={**READS, **ONCE, "precision": "the layers' own tests have it"},
        lengths=(1, 3),
    )


def test_model_aoa_reader():
    check_model(
        models.AoAReader,
        SIZES,
        pair,
        targets=lambda batch, length: np.full(batch, 3),
        config_errors=[({"hidden_dim": 5}, "even")],
        skip={
            **READS,
            **ONCE,
            "fit": "test_aoa_reader_learns_32_questions has it",
            "precision": "the layers' own tests have it",
        },
        lengths=(1, 3),
    )
    model, inputs = models.AoAReader(**SIZES), pair(2, 5)
    outputs = {name: np.array(keras.ops.convert_to_numpy(x)) for name, x in model(inputs).items()}
    for row, place in np.ndindex(2, 5):
        same = inputs["token_ids"][row] == inputs["token_ids"][row, place]
        expected = outputs["attention_weights"][row, same].sum()
        np.testing.assert_allclose(outputs["token_probs"][row, place], expected, rtol=1e-5)
    y = inputs["token_ids"][:, 2]
    loss = float(model.compute_loss(inputs, y, model(inputs)))
    np.testing.assert_allclose(loss, -np.log(outputs["token_probs"][:, 2]).mean(), rtol=1e-5)
    with pytest.raises(ValueError, match=r"needs y, int \(batch,\)"):
        model.compute_loss(inputs, y[:, None], model(inputs))


def characters(batch, length):
    return {
        **pair(batch, length),
        "character_ids": RANDOM.integers(1, 5, (batch, length, 5)).astype("int32"),
        "query_character_ids": RANDOM.integers(1, 5, (batch, 2, 5)).astype("int32"),
    }


def test_model_bidaf():
    check_model(
        models.BiDAF,
        dict(
            vocabulary_size=11,
            embedding_dim=3,
            hidden_dim=2,
            character_vocabulary_size=5,
            character_dim=2,
            character_filters=2,
            kernel_size=3,
            num_highways=1,
            dropout=0.0,
        ),
        characters,
        targets=lambda batch, length: np.zeros((batch, 2), "int32"),
        errors=[(pair(2, 3), "needs character_ids and query_character_ids")],
        skip={**READS, **FEW, "precision": "the layers' own tests have it"},
        lengths=(1, 3),
    )


def test_rows_that_count_for_nothing_and_labels_that_would_be_stretched():
    model = models.RNNReader(num_classes=3, **SIZES)
    inputs = pair(4, 3)
    outputs = model(inputs)
    best = np.array(keras.ops.convert_to_numpy(outputs["class_logits"])).argmax(axis=-1)
    y = np.where(np.arange(4) == 1, -100, best)
    assert float(model.compute_metrics(inputs, y, outputs)["accuracy"]) == 1
    wrong = np.where(np.arange(4) == 2, (best + 1) % 3, y)
    model.reset_metrics()
    found = model.compute_metrics(inputs, wrong, outputs, np.array([1.0, 5.0, 1.0, 2.0]))
    assert float(found["accuracy"]) == 0.75
    with pytest.raises(ValueError, match="all their axes but the last"):
        model.compute_loss(inputs, y[:, None], outputs)


def test_spans_that_count_for_nothing():
    model = models.BiDAF(11, embedding_dim=3, hidden_dim=2, num_highways=0)
    logits = np.eye(3, dtype="float32")
    outputs = {"start_logits": logits, "end_logits": logits}
    y = np.array([[0, 0], [1, 1], [-100, -100]])
    assert float(model.compute_metrics({}, y, outputs)["exact_match"]) == 1
    with pytest.raises(ValueError, match="first and last words"):
        model.compute_loss({}, np.zeros((3, 3), "int32"), outputs)


def test_a_text_has_a_word():
    tagger = models.BiLSTMCRF(num_tags=3, **SIZES)
    for model in (models.RNNClassifier(num_classes=3, **SIZES), tagger):
        with pytest.raises(ValueError, match=r"at least one step, got the shape \(2, 0\)"):
            model(np.zeros((2, 0), "int32"))


# === Each learns 32 examples to the last ===


def fit(model, inputs, y, epochs, rate=0.02):
    """Ten steps an epoch, which has a cost of its own, each on all rows."""
    model.compile(keras.optimizers.Adam(rate), jit_compile=False)
    many = keras.tree.map_structure(lambda x: np.concatenate([x] * 10), (inputs, y))
    history = model.fit(*many, batch_size=32, epochs=epochs, shuffle=False, verbose=0).history
    model.run_eagerly = True  # a graph of the answers takes longer than they do
    return history


@pytest.mark.trains
def test_han_learns_32_documents():
    documents, labels = ids(32, 3, 3), RANDOM.integers(0, 3, 32)
    documents[::2, 2] = 0
    documents[::3, :, 2] = 0
    model = models.HAN(11, 3, embedding_dim=16, hidden_dim=16, attention_dim=8)
    assert fit(model, documents, labels, 3, 0.04)["accuracy"][-1] == 1


@pytest.mark.trains
def test_aoa_reader_learns_32_questions():
    inputs = pair(32, 5)
    y = inputs["token_ids"][np.arange(32), RANDOM.integers(0, 5, 32)]
    model = models.AoAReader(11, embedding_dim=24, hidden_dim=32, dropout=0.0)
    assert fit(model, inputs, y, 4, 0.04)["loss"][-1] < 0.2
    assert (model.answer(inputs) == y).all()


@pytest.mark.trains
def test_bidaf_learns_32_questions():
    inputs = pair(32, 3)
    y = np.sort(RANDOM.integers(0, 3, (32, 2)), axis=1)
    model = models.BiDAF(11, embedding_dim=16, hidden_dim=12, num_highways=1, dropout=0.0)
    fit(model, inputs, y, 4, 0.04)
    assert (model.answer(inputs) == y).all()
