"""From Cho to the Transformer: against the papers' equations, and what they write."""

import functools
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import decoding, models
from kerasattn.plotting import attention_of
from kerasattn.testing import check_model
from kerasattn.testing.arrays import run
from kerasattn.testing.checks import shake

SIZES = dict(vocabulary_size=13, hidden_dim=6, embedding_dim=4)
DEEP = dict(SIZES, num_layers=2)
FAMILY = {
    "cho": (models.RNNEncoderDecoder, dict(SIZES, readout_dim=5)),
    "sutskever": (models.Sutskever, dict(DEEP, cell="peephole_lstm")),
    "bahdanau": (
        models.Bahdanau,
        dict(SIZES, readout_dim=5, attention_dim=7, initializer_range=None),
    ),
    "global": (models.Luong, dict(DEEP, readout="plain", input_feeding=False, reverse_input=False)),
    "local-m": (models.Luong, dict(DEEP, attention="local-m", window=2, cell="gru")),
    "local-p": (models.Luong, dict(DEEP, attention="local-p", window=2)),
    "conv": (models.ConvS2S, dict(DEEP, max_length=16)),
    "transformer": (
        models.Transformer,
        dict(vocabulary_size=13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=12),
    ),
}
READ = np.array([[5, 6, 7, 8, 9], [9, 3, 2, 0, 0]], "int32")
WRITTEN = np.array([[1, 8, 9], [1, 4, 6]], "int32")
INPUTS = {"token_ids": READ, "decoder_token_ids": WRITTEN}


def array(x):
    return np.asarray(ops.convert_to_numpy(x), "float64")


@functools.cache
def make(name):
    """The family's model, the same for all tests: none may change it."""
    model_class, config = FAMILY[name]
    model = model_class(**config)
    shake(model, size=0.3)
    return model


@pytest.mark.parametrize("name", FAMILY)
def test_models(name, draw_pairs, one_token_at_a_time):
    model_class, config = FAMILY[name]
    whole = name == "local-p"
    if "num_layers" in config and name not in ("local-p", "sutskever"):
        config = dict(config, num_layers=1)  # what two hand on is seen below, and with those
    likewise = "Luong's with a local attention has it"
    skip = {} if whole else dict.fromkeys(["save", "saved_model", "precision"], likewise)
    check_model(
        model_class,
        dict(config, dropout=0.1),
        inputs=draw_pairs,
        decoding=one_token_at_a_time,
        skip={
            **skip,
            "causal": "what is read changes too",
            "jit": "the layers have it, and Bahdanau's is trained under XLA below",
        },
        config_errors=[({"hidden_dim": 0}, "hidden_dim"), ({"dropout": 1.0}, "dropout")],
        lengths=(1, 4, 7) if whole else (1, 3),  # a window has to leave something out
    )


@pytest.mark.parametrize("name", FAMILY)
def test_a_batch_writes_what_each_writes_alone_and_looks_where_the_whole_looks(name):
    model = make(name)
    strategy = decoding.Beam(3) if name in ("bahdanau", "conv") else decoding.Greedy()
    looks = name not in ("cho", "sutskever")
    options = dict(max_new_tokens=4, end_id=None, jit=False, return_attention=looks)
    ids_of = lambda found: found.token_ids if looks else found
    together = model.generate(READ, strategy, **options)
    written = ids_of(together)
    for row, length in enumerate((5, 3)):
        # Beside itself: a batch of the same shape is written by the same graph.
        alone = ids_of(model.generate(READ[[row, row], :length], strategy, **options))
        np.testing.assert_array_equal(alone, written[[row, row]])
    fed = np.concatenate([np.full((2, 1), model.start_id), written[:, :-1]], axis=1)
    inputs = {"token_ids": READ, "decoder_token_ids": fed.astype("int32")}
    if not looks:
        likeliest = run(model, inputs)["lm_logits"].argmax(-1)
        np.testing.assert_array_equal(written, likeliest)
        with pytest.raises(ValueError, match="keeps no attention weights"):
            model.attention_weights(inputs)
        return
    found = together.attention["cross_attention"]
    assert not found[1, ..., 3:].any()  # padding
    expected = model.attention_weights(inputs)["cross_attention"]
    np.testing.assert_allclose(found[..., :5], expected, atol=1e-5)
    if name in ("bahdanau", "conv"):  # those of the others are kept alike
        drawn = attention_of(model, inputs)["cross_attention_0"]
        np.testing.assert_allclose(drawn, expected[:, 0], atol=1e-6)


@pytest.mark.parametrize("name", ["sutskever", "local-m"])
def test_each_beam_has_the_states_of_its_own_text(name):
    """All hypotheses have the log-probabilities that the whole tells of them."""
    model, options = make(name), dict(end_id=None, return_scores=True, jit=False)
    found = model.generate(READ, decoding.Beam(4, 0.0, num_return=4), 4, **options)
    told = found.token_ids.reshape(8, 4)
    fed = np.concatenate([np.full((8, 1), model.start_id), told[:, :-1]], axis=1).astype("int32")
    inputs = {"token_ids": np.repeat(READ, 4, axis=0), "decoder_token_ids": fed}
    log_probs = np.log(softmax(run(model, inputs)["lm_logits"]))
    scores = np.take_along_axis(log_probs, told[..., None], axis=2).sum((1, 2))
    np.testing.assert_allclose(found.scores.ravel(), scores, atol=1e-4)


@pytest.mark.parametrize("name", FAMILY)
def test_what_is_written_later_changes_nothing_before(name):
    """Of two rows that differ in the last token, which changes what is told there."""
    fed = np.array([[1, 8, 9], [1, 8, 5]], "int32")
    logits = run(make(name), {"token_ids": READ[[1, 1]], "decoder_token_ids": fed})["lm_logits"]
    np.testing.assert_allclose(logits[0, :2], logits[1, :2], atol=1e-6)
    assert np.abs(logits[0, 2] - logits[1, 2]).max() > 1e-4


# === The papers' equations, with numpy ===
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def weights_under(model, prefix):
    """Weights by what their paths end in."""
    found = {w.path.split("/", 1)[1]: array(w) for w in model.weights if w.path.startswith(prefix)}
    assert found, prefix
    return found


def gru(w, cell, x, h):
    """Cho's, appendix A: the state is reset before the product; z of Keras keeps the old state."""
    kernel, recurrent, bias = (w[f"{cell}/{n}"] for n in ("kernel", "recurrent_kernel", "bias"))
    n = len(h)
    z, r = (
        sigmoid(x @ kernel[:, s] + h @ recurrent[:, s] + bias[s])
        for s in (slice(0, n), slice(n, 2 * n))
    )
    s = slice(2 * n, 3 * n)
    new = np.tanh(x @ kernel[:, s] + (r * h) @ recurrent[:, s] + bias[s])
    return z * h + (1 - z) * new


def lstm(w, cell, x, h, c):
    kernel, recurrent, bias = (w[f"{cell}/{n}"] for n in ("kernel", "recurrent_kernel", "bias"))
    i, f, new, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
    return sigmoid(o) * np.tanh(c), c


def maxout(w, x):
    return (x @ w["kernel"] + w["bias"]).reshape(-1, 2).max(-1)


@pytest.mark.parametrize("name", ["cho", "bahdanau"])
def test_cho_and_bahdanau_by_their_equations(name):
    model = make(name)
    table = array(model.get_layer("token_embedding").embeddings)
    decoder_table = array(model.get_layer("decoder_token_embedding").embeddings)
    decoder, readout = weights_under(model, "decoder/"), weights_under(model, "readout/")
    start, head = weights_under(model, "start/"), weights_under(model, "head/")
    logits = array(model(INPUTS)["lm_logits"])
    for row in range(2):
        text = table[READ[row][READ[row] != 0]]

        def run(prefix, sequence):
            h, all_h = np.zeros(6), []
            for x in sequence:
                h = gru(weights_under(model, prefix), "cell", x, h)
                all_h.append(h)
            return np.array(all_h)

        if name == "cho":
            summary = weights_under(model, "summary/")
            c = np.tanh(run("encoder/", text)[-1] @ summary["kernel"] + summary["bias"])
            s = np.tanh(c @ start["kernel"] + start["bias"])
        else:
            back = run("backward/", text[::-1])[::-1]
            annotations = np.concatenate([run("forward/", text), back], axis=-1)
            s = np.tanh(back[0] @ start["kernel"] + start["bias"])
        for step, token in enumerate(WRITTEN[row]):
            y = decoder_table[token]
            if name == "bahdanau":
                energy = np.tanh(
                    s @ decoder["attention/query_kernel"]
                    + annotations @ decoder["attention/key_kernel"]
                )
                c = softmax((energy @ decoder["attention/vector"])[:, 0]) @ annotations
            s = gru(decoder, "cell_0", np.concatenate([y, c]), s)
            t = maxout(readout, np.concatenate([s, y, c]))
            expected = t @ head["kernel"] + head["bias"]
            np.testing.assert_allclose(logits[row, step], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["global", "local-p"])
def test_luong_by_his_equations(name):
    model = make(name)
    config = model.get_config()
    table = array(model.get_layer("token_embedding").embeddings)
    decoder_table = array(model.get_layer("decoder_token_embedding").embeddings)
    decoder, head = weights_under(model, "decoder/"), weights_under(model, "head/")
    logits = array(model(INPUTS)["lm_logits"])
    for row in range(2):
        x = table[READ[row][READ[row] != 0]]
        x, states = (x[::-1] if config["reverse_input"] else x), []
        for layer in range(2):
            w, h, c, told = weights_under(model, f"encoder_{layer}/"), np.zeros(6), np.zeros(6), []
            for one in x:
                h, c = lstm(w, "cell", one, h, c)
                told.append(h)
            x = np.array(told)
            states.append((h, c))
        source = x[::-1] if config["reverse_input"] else x
        attentional, length = np.zeros(6), len(source)
        for step, token in enumerate(WRITTEN[row]):
            x = decoder_table[token]
            if config["input_feeding"]:
                x = np.concatenate([x, attentional])
            for layer in range(2):
                states[layer] = lstm(decoder, f"cell_{layer}", x, *states[layer])
                x = states[layer][0]
            scores = source @ (x @ decoder["attention/kernel"])
            weights = softmax(scores)
            if name == "local-p":
                hidden = np.tanh(x @ decoder["attention/place_kernel"])
                p = length * sigmoid(hidden @ decoder["attention/place_vector"])
                far = np.arange(length) - p
                near = np.abs(far) <= 2
                weights = np.where(near, softmax(np.where(near, scores, -np.inf)), 0)
                weights = weights * np.exp(-(far**2) / (2 * 1.0**2))
            seen = np.concatenate([weights @ source, x])
            attentional = seen
            if name == "local-p":
                attentional = np.tanh(seen @ decoder["readout/kernel"])
            expected = attentional @ head["kernel"] + head["bias"]
            np.testing.assert_allclose(logits[row, step], expected, atol=1e-5)


def test_the_first_vectors_of_the_transformer_and_its_smoothed_loss():
    model = make("transformer")
    table = array(model.get_layer("token_embedding").embeddings)
    angles = np.arange(5)[:, None] / 10000 ** (np.arange(0, 8, 2) / 8)
    encoding = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(5, 8)
    expected = table[READ] * np.sqrt(8) + encoding
    np.testing.assert_allclose(array(model.hidden_states(INPUTS)[0]), expected, atol=1e-5)
    outputs, labels = model(INPUTS), np.array([[8, 9, 2], [4, 6, -100]])
    np.testing.assert_allclose(
        array(outputs["lm_logits"]), array(outputs["hidden"]) @ table.T, atol=1e-4
    )
    log_probs = np.log(softmax(array(outputs["lm_logits"])))
    target = 0.9 * np.eye(13)[np.maximum(labels, 0)] + 0.1 / 13
    losses = -(target * log_probs).sum(-1)[labels != -100]
    found = float(model.compute_loss(INPUTS, labels, outputs))
    np.testing.assert_allclose(found, losses.mean(), rtol=1e-5)


# === Writing ===
def test_bahdanau_writes_by_looking_ahead_and_the_likeliest_of_all():
    """The strategies that look at more than a row's next token; others are those of any model."""
    model = make("bahdanau")
    ahead = decoding.Contrastive(0.5, top_k=3)
    found = model.generate(READ, ahead, 3, return_scores=True, end_id=None, jit=False)
    assert np.isfinite(found.scores).all() and found.token_ids.max() < 13

    every = decoding.Exhaustive(length_penalty=0.0)
    found = model.generate(READ, every, 2, return_scores=True, end_id=None, jit=False)
    pairs = np.array(list(itertools.product(range(13), repeat=2)))
    fed = np.stack([np.full(len(pairs), model.start_id), pairs[:, 0]], axis=1).astype("int32")
    for row in range(2):
        read = READ[[row] * len(pairs)]
        logits = run(model, {"token_ids": read, "decoder_token_ids": fed})["lm_logits"]
        scores = np.take_along_axis(np.log(softmax(logits)), pairs[..., None], 2).sum((1, 2))
        np.testing.assert_array_equal(found.token_ids[row], pairs[scores.argmax()])
        np.testing.assert_allclose(found.scores[row], scores.max(), atol=1e-4)


@pytest.mark.trains
def test_what_four_pairs_teach_is_written():
    """The targets come back, of texts as long as they are and of others; trained under XLA."""
    pairs = {(5, 6, 7): (7, 6, 5, 8), (8, 9): (3, 3), (4, 10, 11, 12): (4,), (6,): (9, 10, 11)}
    fill = lambda rows: np.array([[*row, *[0] * (5 - len(row))] for row in rows], "int32")
    read, told = fill(pairs), fill([(*target, 2) for target in pairs.values()])
    model = models.Bahdanau(
        13, hidden_dim=24, embedding_dim=8, attention_dim=16, readout_dim=16, initializer_range=None
    )
    labels = np.where(told > 0, told, -100)
    fed = np.asarray(ops.convert_to_numpy(model.shift_right(labels)))
    model.compile(keras.optimizers.Adam(0.02))
    inputs = {"token_ids": read, "decoder_token_ids": fed}

    many = {name: np.tile(x, (80, 1)) for name, x in inputs.items()}
    model.fit(many, np.tile(labels, (80, 1)), 4, shuffle=False, verbose=0)
    np.testing.assert_array_equal(model.generate(read, max_new_tokens=5, jit=False), told)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="attention must be one of"):
        models.Luong(**SIZES, attention="local")
    with pytest.raises(ValueError, match='readout is "tanh" or "plain"'):
        models.Luong(**SIZES, readout="maxout")
    with pytest.raises(ValueError, match="input_feeding needs a readout_dim"):
        models.Luong(**SIZES, num_layers=1, readout="plain")
    with pytest.raises(ValueError, match="cell must be one of"):
        models.Sutskever(**SIZES, cell="rnn")
    with pytest.raises(ValueError, match="label_smoothing must be in"):
        models.Transformer(13, label_smoothing=1.0)
    with pytest.raises(ValueError, match="at most 16 tokens"):
        make("conv").generate(np.ones((1, 17), "int32"))
    with pytest.raises(ValueError, match="decoder_token_ids takes at least one step"):
        make("cho")({"token_ids": READ, "decoder_token_ids": WRITTEN[:, :0]})


def test_scores_by_location_read_no_more_than_they_have_numbers_for():
    model = models.Luong(**SIZES, num_layers=1, score="location", max_source_length=5)
    assert model.generate(READ, max_new_tokens=2, jit=False).shape == (2, 2)  # no bucket of 8
    six = np.ones((2, 6), "int32")
    with pytest.raises(ValueError, match="token_ids takes at most 5 tokens"):
        model.generate(six)
    with pytest.raises(ValueError, match="token_ids takes at most 5 tokens"):
        model({"token_ids": six, "decoder_token_ids": WRITTEN})
