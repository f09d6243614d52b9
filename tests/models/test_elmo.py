"""ELMo against its authors' equations, of files in their layout that are written here."""

import json

import h5py
import keras
import numpy as np
import pytest
from keras import ops

import kerasattn
from kerasattn.models import ELMo
from kerasattn.testing import check_model
from kerasattn.tokenizers import elmo_characters

OPTIONS = {  # as the published ones, but for their sizes
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 4,
        "cell_clip": 0.7,
        "proj_clip": 0.5,
        "dim": 6,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 3], [2, 4]],
        "n_highway": 2,
        "embedding": {"dim": 3},
        "n_characters": 262,
        "max_characters_per_token": 12,
    },
}
TINY = dict(max_characters=5, character_dim=3, filters=[[1, 3], [2, 3]], num_highways=1)
TINY |= dict(num_layers=2, hidden_dim=5, projection_dim=3)
SENTENCES = [["Ein", "Fluß", "im", "Überschwemmungsgebiet"], ["no", "words"], ["a"]]


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def draw_weights():
    """All that the published file has, by its paths there."""
    random = np.random.default_rng(0)
    normal = lambda *shape: random.normal(0, 0.8, shape).astype("float32")
    weights = {"char_embed": normal(261, 3), "CNN_proj/W_proj": normal(7, 4)}
    weights["CNN_proj/b_proj"] = normal(4)
    for i, (width, number) in enumerate(OPTIONS["char_cnn"]["filters"]):
        weights[f"CNN/W_cnn_{i}"] = normal(1, width, 3, number)
        weights[f"CNN/b_cnn_{i}"] = normal(number)
    for i in range(2):
        for part in ("carry", "transform"):
            weights[f"CNN_high_{i}/W_{part}"] = normal(7, 7)
            weights[f"CNN_high_{i}/b_{part}"] = normal(7)
        for direction in range(2):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            weights[f"{cell}/W_0"] = normal(8, 24)  # input and state together
            weights[f"{cell}/B"] = normal(24)
            weights[f"{cell}/W_P_0"] = normal(6, 4)
    return weights


@pytest.fixture
def published(tmp_path):
    """A function that writes a folder of options and weights, changed by names."""

    def write(options=OPTIONS, start="elmo_tiny_", **changes):
        (tmp_path / f"{start}options.json").write_text(json.dumps(options))
        with h5py.File(tmp_path / f"{start}weights.hdf5", "w") as file:
            for name, value in {**draw_weights(), **changes}.items():
                if value is not None:
                    file[name] = value
        return tmp_path

    return write


# === The authors' equations, with numpy ===
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def characters_of(word, size=12):
    """bilm-tf's ids, without the 1 that batches add."""
    if isinstance(word, int):
        inside = [word]
    else:
        inside = list(word.encode())[: size - 2]
    return np.array([258, *inside, 259] + [260] * (size - 2 - len(inside)))


def vector_of(word, w):
    """The vector of a word, of its characters."""
    x, found = w["char_embed"][characters_of(word)], []
    for i, (width, _) in enumerate(OPTIONS["char_cnn"]["filters"]):
        kernel = w[f"CNN/W_cnn_{i}"][0]
        places = [np.tensordot(x[j : j + width], kernel, 2) for j in range(len(x) - width + 1)]
        found.append(np.maximum(np.max(np.add(places, w[f"CNN/b_cnn_{i}"]), axis=0), 0))
    x = np.concatenate(found)
    for i in range(2):
        high = {k: w[f"CNN_high_{i}/{k}"] for k in ("W_carry", "b_carry", "W_transform")}
        carry = sigmoid(x @ high["W_carry"] + high["b_carry"])
        changed = x @ high["W_transform"] + w[f"CNN_high_{i}/b_transform"]
        x = carry * np.maximum(changed, 0) + (1 - carry) * x
    return x @ w["CNN_proj/W_proj"] + w["CNN_proj/b_proj"]


def read(sequence, w, direction):
    """What each LSTM of a direction tells, of TensorFlow's LSTMCell with num_proj."""
    layers = []
    for layer in range(2):
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        c, h, told = np.zeros(6), np.zeros(4), []
        for x in sequence:
            z = np.concatenate([x, h]) @ w[f"{cell}/W_0"] + w[f"{cell}/B"]
            i, j, f, o = np.split(z, 4)
            c = np.clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), -0.7, 0.7)
            h = np.clip((sigmoid(o) * np.tanh(c)) @ w[f"{cell}/W_P_0"], -0.5, 0.5)
            told.append(h + x if layer else h)
        sequence = told
        layers.append(np.array(told))
    return layers


def layers_of(words, w):
    """The three layers of one sentence: (3, words, 8)."""
    x = np.array([vector_of(word, w) for word in (256, *words, 257)])
    backward = [told[::-1] for told in read(x[::-1], w, 1)]
    pairs = zip([x, *read(x, w, 0)], [x, *backward], strict=True)
    return np.array([np.concatenate(pair, axis=-1)[1:-1] for pair in pairs])


def test_a_published_file_gives_the_authors_numbers(published):
    """Of sentences in one padded batch, each as if it was alone; whichever way it is loaded."""
    model = kerasattn.from_pretrained(published())
    assert type(model) is ELMo
    ids, w = elmo_characters(SENTENCES, max_characters=12), draw_weights()
    hidden, mixed = model.hidden_states(ids), array(model(ids)["hidden"])
    for row, words in enumerate(SENTENCES):
        expected = layers_of(words, w)
        found = np.stack([array(x)[row, : len(words)] for x in hidden])
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(mixed[row, : len(words)], expected.mean(0), atol=1e-5)
    model.get_layer("scalar_mix").set_weights([np.array([-50.0, -50.0, 50.0]), np.array(2.0)])
    last = array(model(ids)["hidden"])[0]
    np.testing.assert_allclose(last, 2 * layers_of(SENTENCES[0], w)[2], atol=1e-5)
    with pytest.raises(ValueError, match="no format of folders to write"):
        model.save_pretrained("anywhere")


def test_words_become_the_authors_characters():
    ids = elmo_characters([["Fluß", "x" * 60], ["<S>"]], max_characters=50)
    np.testing.assert_array_equal(ids[0, 0], characters_of("Fluß", 50) + 1)
    np.testing.assert_array_equal(ids[0, 1], [259, *[121] * 48, 260])
    np.testing.assert_array_equal(ids[1, 0], characters_of(256, 50) + 1)
    assert not ids[1, 1].any() and ids.dtype == "int32"
    assert elmo_characters([["a", "b"]], length=1).shape == (1, 1, 50)
    assert elmo_characters([["\ud800a"]])[0, 0, :3].tolist() == [259, 98, 260]
    with pytest.raises(ValueError, match="a list of words"):
        elmo_characters(["a sentence"])
    with pytest.raises(ValueError, match="max_characters must be at least 3"):
        elmo_characters([["a"]], max_characters=2)


def test_files_that_do_not_fit_are_refused(published, tmp_path):
    cases = [
        ({"CNN_proj/b_proj": None}, "1 missing in the file:\n  projection/bias"),
        ({"CNN_high_0/W_carry": None}, "W_transform\\+W_carry"),
        ({"CNN_high_0/W_carry": np.ones((7, 3))}, "W_transform\\+W_carry"),
        ({"char_embed": np.ones((260, 3), "f4")}, "char_embed: \\(260, 3\\) in the file"),
        ({"more": np.ones(3, "f4")}, "1 in the file but not in the model:\n  more"),
        ({"CNN/b_cnn_0": ["a", "b", "c"]}, "expected numbers"),
        ({"CNN_proj/b_proj": h5py.ExternalLink("other.h5", "b")}, "missing in the file"),
        ({"CNN_proj/b_proj": h5py.Empty("f4")}, "cannot be read as a checkpoint"),
    ]
    for changes, match in cases:
        with pytest.raises(ValueError, match=match):
            ELMo.from_pretrained(published(**changes))
    weights = tmp_path / "elmo_tiny_weights.hdf5"
    with h5py.File(weights, "a") as file:
        del file["CNN_proj/b_proj"]
        file.create_dataset("CNN_proj/b_proj", (10**9,), "f4", chunks=(1000,))
    with pytest.raises(ValueError, match="which are not there"):
        ELMo.from_pretrained(tmp_path)

    published()
    whole = weights.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"no HDF5"):
        weights.write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
            ELMo.from_pretrained(tmp_path)
    weights.unlink()
    with pytest.raises(ValueError, match="in no format known here"):
        ELMo.from_pretrained(tmp_path)

    changed = lambda part, **values: {**OPTIONS, part: {**OPTIONS[part], **values}}
    bad = [
        (changed("char_cnn", n_characters=261), "n_characters must be 262"),
        (changed("char_cnn", filters=[[13, 2]]), "at least 13 characters"),
        (changed("char_cnn", activation="gelu"), 'activation is "relu" or "tanh"'),
        (changed("lstm", dim=0), "hidden_dim must be an int of at least 1"),
        ({**OPTIONS, "lstm": {}}, "KeyError"),
        ({**OPTIONS, "bidirectional": False}, "bidirectional must be true"),
        ({"lstm": {}}, "in no format known here"),
    ]
    for options, match in bad:
        with pytest.raises(ValueError, match=match):
            ELMo.from_pretrained(published(options))
    with pytest.raises(ValueError, match="several configs"):
        ELMo.from_pretrained(published(start="elmo_other_"))


RANDOM = np.random.default_rng(1)


def draw(batch, length):
    return {"character_ids": RANDOM.integers(1, 262, (batch, length, 5)).astype("int32")}


@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # for the mix
def test_model():
    check_model(
        ELMo,
        dict(TINY, num_layers=1, vocabulary_size=7, normalize=True, dropout=0.1),
        inputs=draw,
        targets=lambda batch, length: np.ones((batch, length), "int32"),
        pad_values={"character_ids": 0},
        untrained={"scalar_mix/*": "the loss is of the LSTMs' own logits"},
        errors=[({"character_ids": np.full((1, 2, 5), 262)}, "ids from 0 to 261")],
        config_errors=[
            ({"projection_dim": 0}, "projection_dim"),
            ({"activation": "gelu"}, "activation is"),
            ({"max_characters": 2}, "max_characters must be at least 3"),
        ],
        skip={
            "causal": "reads both ways",
            "decoding": "an encoder",
            "jit": "loops of the same kind have it, of taggers and cells",
        },
        lengths=(1, 3),
    )


def test_a_word_is_told_by_the_others_alone():
    """No characters of its own reach its logits, those of its neighbours do; the loss is theirs."""
    model = ELMo(**TINY, vocabulary_size=7)
    ids = draw(1, 4)["character_ids"]
    other = ids.copy()
    other[0, 1] = 1 + ids[0, 1] % 261
    before, after = model(ids), model(other)
    for name, reached in (("lm_logits", [2, 3]), ("backward_lm_logits", [0])):
        change = np.abs(array(before[name]) - array(after[name])).max((0, 2))
        assert np.flatnonzero(change > 1e-7).tolist() == reached, name

    y, total = np.array([[3, 4, -100, 6]]), 0.0
    for name in ("lm_logits", "backward_lm_logits"):
        logits = array(before[name])[0].astype("float64")
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        total -= np.mean([log_probs[i, y[0, i]] for i in (0, 1, 3)]) / 2
    found = float(model.compute_loss({"character_ids": ids}, y, before))
    np.testing.assert_allclose(found, total, rtol=1e-5)
    with pytest.raises(ValueError, match="needs words y"):
        model.compute_loss({"character_ids": ids}, None, before)
    model.compile(jit_compile=False)
    with pytest.raises(ValueError, match="from 0 to 6, got 7"):
        model.train_on_batch(ids, np.array([[3, 4, -100, 7]]))


def test_the_mix_alone_is_trained_below_a_task():
    model = ELMo(**TINY)
    model.freeze_reader()
    judged = keras.layers.Dense(1)(model.output["hidden"])
    task = keras.Model(model.input, judged)
    frozen = [array(w) for w in model.non_trainable_weights]
    task.compile(keras.optimizers.SGD(1.0), "mse", run_eagerly=True)
    task.train_on_batch({**draw(2, 3), "padding_mask": np.ones((2, 3), bool)}, np.ones((2, 3, 1)))
    assert len(task.trainable_weights) == 4
    assert np.abs(array(model.get_layer("scalar_mix").scalars)).min() > 0
    for weight, value in zip(model.non_trainable_weights, frozen, strict=True):
        np.testing.assert_array_equal(array(weight), value)
