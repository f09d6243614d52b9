"""From Cho to the Transformer: against the papers' equations, and what they write."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import decoding, models
from kerasattn.plotting import attention_of
from kerasattn.testing import check_model
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


def make(name, **changes):
    model_class, config = FAMILY[name]
    model = model_class(**{**config, **changes})
    shake(model, size=0.3)
    return model


@pytest.mark.parametrize("name", FAMILY)
def test_models(name, draw_pairs, one_token_at_a_time):
    model_class, config = FAMILY[name]
    whole = name == "local-p"
    likewise = "Luong's with a local attention has it"
    skip = {} if whole else dict.fromkeys(["jit", "save", "saved_model", "precision"], likewise)
    if name in ("conv", "transformer"):
        del skip["jit"]
    check_model(
        model_class,
        dict(config, dropout=0.1),
        inputs=draw_pairs,
        decoding=one_token_at_a_time,
        skip={**skip, "causal": "what is read changes too"},
        config_errors=[({"hidden_dim": 0}, "hidden_dim"), ({"dropout": 1.0}, "dropout")],
    )


@pytest.mark.parametrize("name", FAMILY)
def test_a_batch_writes_what_each_writes_alone_and_looks_where_the_whole_looks(name):
    model = make(name)
    strategy = decoding.Beam(3) if name in ("bahdanau", "local-p", "conv") else decoding.Greedy()
    options = dict(strategy=strategy, max_new_tokens=4, end_id=None, jit=False)
    looks = name not in ("cho", "sutskever")
    together = model.generate(READ, **options, return_attention=looks)
    written = together.token_ids if looks else together
    for row, length in enumerate((5, 3)):
        alone = model.generate(READ[row : row + 1, :length], **options)
        np.testing.assert_array_equal(alone[0], written[row])
    fed = np.concatenate([np.full((2, 1), model.start_id), written[:, :-1]], axis=1)
    inputs = {"token_ids": READ, "decoder_token_ids": fed.astype("int32")}
    if not looks:
        with pytest.raises(ValueError, match="keeps no attention weights"):
            model.attention_weights(inputs)
        return
    found = together.attention["cross_attention"]
    assert not found[1, ..., 3:].any()  # padding
    expected = model.attention_weights(inputs)["cross_attention"]
    np.testing.assert_allclose(found[..., :5], expected, atol=1e-5)
    if name != "transformer":  # which has more attentions, and by other names
        drawn = attention_of(model, inputs)["cross_attention_0"]
        np.testing.assert_allclose(drawn, expected[:, 0], atol=1e-6)


def test_padding_that_is_read_changes_nothing_and_what_comes_later_neither():
    for name in FAMILY:
        model, real = make(name), READ != 0
        expected = array(model({**INPUTS, "padding_mask": real})["lm_logits"])
        overwritten = {**INPUTS, "token_ids": np.where(real, READ, 7), "padding_mask": real}
        overwritten["decoder_token_ids"] = np.where(np.arange(3) < 2, WRITTEN, 5)
        found = array(model(overwritten)["lm_logits"])
        np.testing.assert_allclose(found[:, :2], expected[:, :2], atol=1e-6, err_msg=name)
        assert np.abs(found[:, 2] - expected[:, 2]).max() > 1e-4, name


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
def test_bahdanau_writes_with_every_strategy():
    model = make("bahdanau")
    for strategy in (
        decoding.Greedy(),
        decoding.Sampling(0.8, top_k=5),
        decoding.Beam(2, num_return=2),
        decoding.Contrastive(0.5, top_k=3),
        decoding.Exhaustive(),
    ):
        steps = 2 if isinstance(strategy, decoding.Exhaustive) else 4
        found = model.generate(READ, strategy, steps, return_scores=True, seed=3, jit=False)
        ids = found.token_ids.reshape(-1, steps)
        assert np.isfinite(found.scores).all() and ids.max() < 13
        if isinstance(strategy, decoding.Exhaustive):  # no other two tokens are likelier
            greedy = model.generate(READ, max_new_tokens=2, return_scores=True, jit=False)
            assert (found.scores >= greedy.scores - 1e-5).all()


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
