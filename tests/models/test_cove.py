"""CoVe against its paper's equations, and what it hands on to other tasks."""

import functools

import numpy as np
import pytest
from keras import ops

from kerasattn.models import CoVe, load_model
from kerasattn.testing import check_model
from kerasattn.testing.arrays import run
from kerasattn.testing.checks import shake

SIZES = dict(vocabulary_size=13, num_layers=2, hidden_dim=6, embedding_dim=4)
READ = np.array([[5, 6, 7, 8, 9], [9, 3, 2, 0, 0]], "int32")
WRITTEN = np.array([[1, 8, 9], [1, 4, 6]], "int32")


def array(x):
    return np.asarray(ops.convert_to_numpy(x), "float64")


@functools.cache
def make():
    """The same for all tests: none may change it."""
    model = CoVe(**SIZES)
    shake(model, size=0.4)
    return model


def test_model(draw_pairs, one_token_at_a_time):
    likewise = "Luong's of the same parts has it"
    check_model(
        CoVe,
        dict(SIZES, num_layers=1, dropout=0.1, trainable_embeddings=True),
        inputs=draw_pairs,
        decoding=one_token_at_a_time,
        skip={
            **dict.fromkeys(["saved_model", "precision", "jit"], likewise),
            "causal": "what is read changes too",
        },
        config_errors=[({"hidden_dim": 5}, "must be even"), ({"dropout": 1.0}, "dropout")],
        lengths=(1, 3),
    )


# === The paper's equations, with numpy ===
def softmax(x):
    x = np.exp(x - x.max())
    return x / x.sum()


def weights_under(model, prefix):
    return {w.path.split("/", 1)[1]: array(w) for w in model.weights if w.path.startswith(prefix)}


def lstm(w, cell, x, h, c):
    z = x @ w[f"{cell}/kernel"] + h @ w[f"{cell}/recurrent_kernel"] + w[f"{cell}/bias"]
    i, f, new, o = np.split(z, 4)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
    return sigmoid(o) * np.tanh(c), c


def mt_lstm(model, x):
    """What two pairs of LSTMs make of one text's vectors, and their last states."""
    states = []
    for i in range(2):
        told, last = [], []
        for direction, sequence in (("forward", x), ("backward", x[::-1])):
            w, h, c, one = weights_under(model, f"{direction}_{i}/"), np.zeros(3), np.zeros(3), []
            for vector in sequence:
                h, c = lstm(w, "cell", vector, h, c)
                one.append(h)
            told.append(one if direction == "forward" else one[::-1])
            last.append((h, c))
        x = np.concatenate(told, axis=-1)
        states.append([np.concatenate(pair) for pair in zip(*last, strict=True)])
    return x, states


def test_the_decoder_is_its_equations():
    model = make()
    table = array(model.get_layer("token_embedding").embeddings)
    decoder_table = array(model.get_layer("decoder_token_embedding").embeddings)
    w, head = weights_under(model, "decoder/"), weights_under(model, "head/")
    inputs = {"token_ids": READ, "decoder_token_ids": WRITTEN}
    logits, looked = array(model(inputs)["lm_logits"]), model.attention_weights(inputs)
    for row in range(2):
        source, states = mt_lstm(model, table[READ[row][READ[row] != 0]])
        told = np.zeros(6)
        for step, token in enumerate(WRITTEN[row]):
            x = np.concatenate([decoder_table[token], told])
            for i in range(2):
                states[i] = lstm(w, f"cell_{i}", x, *states[i])
                x = states[i][0]
            asked = x @ w["attention/kernel"] + w["attention/bias"]
            weights = softmax(source @ asked)
            seen = np.concatenate([weights @ source, x])
            told = np.tanh(seen @ w["readout/kernel"] + w["readout/bias"])
            expected = told @ head["kernel"] + head["bias"]
            np.testing.assert_allclose(logits[row, step], expected, atol=1e-5)
            found = looked["cross_attention"][row, 0, 0, step]
            np.testing.assert_allclose(found[: len(source)], weights, atol=1e-5)
            assert not found[len(source) :].any()


def test_it_writes_what_the_whole_tells():
    model, options = make(), dict(max_new_tokens=3, end_id=None, jit=False)
    written = model.generate(READ, **options)
    alone = model.generate(READ[[1, 1], :3], **options)
    np.testing.assert_array_equal(alone, written[[1, 1]])
    fed = np.concatenate([np.full((2, 1), model.start_id), written[:, :-1]], axis=1)
    inputs = {"token_ids": READ, "decoder_token_ids": fed.astype("int32")}
    np.testing.assert_array_equal(written, run(model, inputs)["lm_logits"].argmax(-1))


def test_features_are_word_vectors_beside_their_context(tmp_path):
    """Of the model's own words and of others, padded or not; also of a file."""
    model, random = make(), np.random.default_rng(0)
    others = random.normal(size=(20, 4)).astype("float32")
    own = array(model.get_layer("token_embedding").embeddings)
    ids = np.array([[19, 3, 14, 7], [12, 1, 0, 0]], "int32")
    for features, table, read in (
        (model.encoder, own, READ),
        (model.features(others), others, ids),
    ):
        found = array(features(read)["hidden"])
        for row, tokens in zip(found, read, strict=True):
            x = table[tokens[tokens != 0]]
            expected = np.concatenate([x, mt_lstm(model, x)[0]], axis=-1)
            np.testing.assert_allclose(row[: len(x)], expected, atol=1e-5)
    told = array(model({"token_ids": READ, "decoder_token_ids": WRITTEN})["encoder_hidden"])
    np.testing.assert_allclose(array(model.encoder(READ)["hidden"])[0, :, 4:], told[0], atol=1e-6)

    features.save(tmp_path / "features.keras")
    loaded = load_model(tmp_path / "features.keras")
    np.testing.assert_array_equal(array(loaded(ids)["hidden"]), found)
    assert not any("embedding" in w.path for w in loaded.trainable_weights)
    with pytest.raises(ValueError, match=r"vectors must be \(words, 4\)"):
        model.features(others[:, :3])
    with pytest.raises(ValueError, match="ids from 0 to 19"):
        features([[20]])
    with pytest.raises(ValueError, match="at least one step"):
        features(np.zeros((1, 0), "int32"))


def test_vectors_that_are_read_stay_unless_they_are_trained():
    model = CoVe(**{**SIZES, "num_layers": 1})  # above, those of trainable_embeddings=True move
    model.load_vectors([5, 6], np.ones((2, 4)))
    table = model.get_layer("token_embedding").embeddings
    np.testing.assert_array_equal(array(table)[5:7], 1.0)
    assert table.path not in {w.path for w in model.trainable_weights}
