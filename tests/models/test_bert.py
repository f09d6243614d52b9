"""BERT, and what all encoders have from the same parts: heads, losses, masks, the front door."""

import functools
import json

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file, save_file

import kerasattn
from kerasattn.models import BERT, MODELS
from kerasattn.testing import check_model

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
IDS = np.array([[2, 7, 8, 9, 3], [2, 5, 3, 0, 0]])


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def shaken(model, seed=0):
    """Weights away from their start, so that no bias is zero."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(array(weight.value) + 0.3 * rng.normal(size=weight.shape))
    return model


def cross_entropy(logits, labels):
    """In float64, one a label."""
    logits = array(logits).astype("float64").reshape(-1, logits.shape[-1])
    logits -= logits.max(-1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    labels = np.asarray(labels).reshape(-1)
    return -logs[np.arange(len(labels)), labels]


@functools.cache
def with_all_heads():
    """One that all tests share, which none may change."""
    names = ("mlm", "nsp", "sop", "class", "token", "span")
    return shaken(BERT(20, **SIZES, heads=names, num_classes=4))


# === Heads ===


def test_every_head_on_one_encoder():
    model = with_all_heads()
    shapes = {name: tuple(x.shape) for name, x in model(IDS).items()}
    assert shapes == {
        "hidden": (2, 5, 16),
        "pooled": (2, 16),
        "mlm_logits": (2, 5, 20),
        "nsp_logits": (2, 2),
        "sop_logits": (2, 2),
        "class_logits": (2, 4),
        "token_logits": (2, 5, 4),
        "start_logits": (2, 5),
        "end_logits": (2, 5),
    }
    assert set(BERT(20, **SIZES, heads=())(IDS)) == {"hidden"}
    # CASES C36, C72: a text of no tokens has outputs too.
    none = model(IDS[:, :0])
    assert {name: tuple(x.shape) for name, x in none.items()} == {
        name: (2, 0, *shape[2:]) if shape[1] == 5 else shape for name, shape in shapes.items()
    }
    assert np.all(np.isfinite(array(none["class_logits"])))


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(application="seq2seq"), r"application.*'seq2seq'"),
        (dict(heads=("nlp",)), r"heads are some of .*'nlp'"),
        (dict(heads="mlm"), r"heads are some of"),
        (dict(heads=("token", "discriminator")), "both give token_logits"),
        (dict(num_heads=3), "num_heads = 3"),
        (dict(heads=("class",), num_classes=0), "num_classes must be an int of at least 1"),
    ],
)
def test_settings_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        BERT(20, **{**SIZES, **options})


def test_more_tokens_than_positions():
    model = BERT(20, **SIZES, max_length=4)
    with pytest.raises(ValueError, match="positions for 4 tokens, got 5"):
        model(IDS)
    with pytest.raises(ValueError, match="position_ids takes ids from 0 to 3, got 4"):
        model({"token_ids": IDS[:, :2], "position_ids": np.array([[0, 4], [0, 1]])})


# === Losses ===


def test_losses_of_several_heads_are_added():
    model = with_all_heads()
    outputs = model(IDS)
    mlm = np.array([[-100, 4, -100, -100, 6], [-100] * 5])
    token = np.array([[0, 1, 2, 0, 1], [2, 0, 1, -100, -100]])
    pairs, classes, start, end = [1, 0], [2, 1], [1, 0], [3, 2]
    labels = {
        "mlm_logits": mlm,
        "nsp_logits": pairs,
        "class_logits": classes,
        "token_logits": token,
        "start_logits": start,
        "end_logits": end,
    }
    labels = {name: np.asarray(value) for name, value in labels.items()}
    real = token != -100
    expected = {
        "mlm_logits": cross_entropy(outputs["mlm_logits"][0], [0, 4, 0, 0, 6])[[1, 4]].mean(),
        "nsp_logits": cross_entropy(outputs["nsp_logits"], pairs).mean(),
        "class_logits": cross_entropy(outputs["class_logits"], classes).mean(),
        "token_logits": cross_entropy(array(outputs["token_logits"])[real], token[real]).mean(),
        "start_logits": cross_entropy(outputs["start_logits"], start).mean() / 2,
        "end_logits": cross_entropy(outputs["end_logits"], end).mean() / 2,
    }
    for name in labels:
        loss = model.compute_loss(IDS, {name: labels[name]}, outputs)
        assert float(loss) == pytest.approx(expected[name], abs=1e-5)
    loss = model.compute_loss(IDS, labels, outputs)
    assert float(loss) == pytest.approx(sum(expected.values()), abs=1e-4)
    weighted = cross_entropy(outputs["nsp_logits"], pairs) @ [3, 1] / 4
    loss = model.compute_loss(
        IDS, {"nsp_logits": labels["nsp_logits"]}, outputs, np.array([3.0, 1.0])
    )
    assert float(loss) == pytest.approx(weighted, abs=1e-5)
    with pytest.raises(ValueError, match="Several heads are trained: give y as a dict"):
        model.compute_loss(IDS, mlm, outputs)
    with pytest.raises(ValueError, match=r"labels y for \['mlm'\]"):
        model.compute_loss(IDS, {"mlm": mlm}, outputs)
    with pytest.raises(ValueError, match="needs labels y for mlm_logits or"):
        model.compute_loss(IDS, None, outputs)


def test_losses_of_numbers_and_of_replaced_words():
    model = shaken(BERT(20, **SIZES, heads=("class",), num_classes=1))
    outputs = model(IDS)
    values = np.array([0.5, -2.0])
    expected = np.mean((array(outputs["class_logits"])[:, 0] - values) ** 2)
    assert float(model.compute_loss(IDS, values, outputs)) == pytest.approx(expected, abs=1e-5)

    model = shaken(BERT(20, **SIZES, heads=("discriminator",)))
    outputs = model(IDS)
    replaced = np.array([[0, 1, 0, 0, 1], [0, 1, 0, 1, 1]])
    logits = array(outputs["token_logits"]).astype("float64")
    each = np.log1p(np.exp(logits)) - replaced * logits
    expected = each[IDS != 0].mean()
    assert float(model.compute_loss(IDS, replaced, outputs)) == pytest.approx(expected, abs=1e-5)


def test_fit_and_predict_with_a_dict_of_labels():
    model = BERT(20, **SIZES, heads=("mlm", "nsp"), seed=0)
    model.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    labels = {"mlm_logits": IDS, "nsp_logits": np.array([0, 1])}
    losses = model.fit(IDS, labels, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    model.run_eagerly = keras.backend.backend() == "tensorflow"  # a graph takes longer than a step
    assert model.predict(IDS, verbose=0)["nsp_logits"].shape == (2, 2)


# === Masks and positions ===


def test_unilm_is_a_mask():
    ids, segments = np.array([[2, 7, 8, 3, 9, 3]]), np.array([[0, 0, 0, 0, 1, 1]])
    encoder = shaken(BERT(20, **SIZES))
    unilm = BERT(20, **SIZES, application="unilm")
    unilm.set_weights(encoder.get_weights())
    mask = np.tril(np.ones((6, 6), bool))
    mask[:4, :4] = True
    inputs = {"token_ids": ids, "segment_ids": segments}
    expected = encoder({**inputs, "attention_mask": mask[None]})
    actual = unilm(inputs)
    np.testing.assert_allclose(array(actual["lm_logits"]), array(expected["mlm_logits"]), atol=1e-5)
    with pytest.raises(ValueError, match="needs segment_ids"):
        unilm(ids)


@pytest.mark.parametrize("family", ["bert", "roberta", "nezha", "distilbert"])
def test_padding_may_stand_between_segments(family):
    segments = {} if family == "distilbert" else {"num_segments": 2}
    model = MODELS[family](20, **SIZES, **segments, application="unilm", pad_id=0, heads=())
    shaken(model)
    ids, segments = np.array([[5, 6, 7, 8]]), np.array([[0, 0, 1, 1]])
    expected = array(model({"token_ids": ids, "segment_ids": segments})["hidden"])[0]
    columns = [0, 1, 4, 5]
    padded, padded_segments = np.zeros((2, 1, 6), "int32")
    padded[:, columns] = ids
    padded_segments[:, columns] = segments
    inputs = {"token_ids": padded, "segment_ids": padded_segments}
    found = array(model(inputs)["hidden"])[0, columns]
    np.testing.assert_allclose(found, expected, atol=1e-5)


# === The front door ===


@pytest.fixture
def folder(golden, tmp_path):
    """A copy of a golden folder to change, its config and its tensors."""
    source = golden("models/bert_seqcls")
    config = json.loads((source / "config.json").read_text())
    tensors = load_file(source / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path, config, tensors


def test_other_heads_are_asked_for(folder, caplog):
    path, _, _ = folder
    model = kerasattn.from_pretrained(path)
    assert model.get_config()["heads"] == ["class"] and model.get_config()["num_classes"] == 3
    assert not caplog.records
    other = kerasattn.from_pretrained(path, heads=("token", "pooled"), num_classes=5)
    assert tuple(other(IDS)["token_logits"].shape) == (2, 5, 5)
    assert "newly initialized" in caplog.text and "token_classifier/output/kernel" in caplog.text
    assert "pooler" not in caplog.text and "encoder.layer" not in caplog.text
    for name in ("hidden", "pooled"):
        np.testing.assert_array_equal(array(other(IDS)[name]), array(model(IDS)[name]))
    with pytest.raises(ValueError, match=r"classifier/output/kernel: \(32, 5\) in the model"):
        kerasattn.from_pretrained(path, num_classes=5)
    # The same names, but those of another head: not the weights of this one.
    model = kerasattn.from_pretrained(path, heads=("token",), seed=1)
    kernel = array(model.get_layer("token_classifier").output_dense.kernel)
    assert not np.array_equal(kernel, load_file(path / "model.safetensors")["classifier.weight"].T)
    other.save_pretrained(path)
    again = kerasattn.from_pretrained(path)
    assert again.get_config() == other.get_config()


def test_heads_of_a_file_whose_config_does_not_say(folder):
    path, config, _ = folder
    del config["architectures"]
    (path / "config.json").write_text(json.dumps(config))
    # A class of the sequence and classes of tokens have the same names: neither is guessed.
    assert kerasattn.from_pretrained(path).get_config()["heads"] == ["pooled"]


def test_the_bare_encoder(folder):
    path, config, tensors = folder
    expected = kerasattn.from_pretrained(path)
    bare = {k.removeprefix("bert."): v for k, v in tensors.items() if k.startswith("bert.")}
    save_file(bare, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config | {"architectures": ["BertModel"]}))
    model = kerasattn.from_pretrained(path)
    np.testing.assert_array_equal(array(model(IDS)["pooled"]), array(expected(IDS)["pooled"]))
    model.save_pretrained(path)
    assert load_file(path / "model.safetensors").keys() == bare.keys()


def test_folders_of_no_family(folder):
    path, config, _ = folder
    with pytest.raises(ValueError, match="is not a folder"):
        kerasattn.from_pretrained(path / "nowhere")
    (path / "config.json").write_text(json.dumps(config | {"model_type": "bort"}))
    message = r"no family known here of model_type 'bort': it holds config.json.*There are bert"
    with pytest.raises(ValueError, match=message):
        kerasattn.from_pretrained(path)
    relative = config | {"position_embedding_type": "relative_key"}
    (path / "config.json").write_text(json.dumps(relative))
    with pytest.raises(ValueError, match="'relative_key' is not supported"):
        kerasattn.from_pretrained(path)


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        BERT,
        dict(
            vocabulary_size=11,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            max_length=8,
            heads=("mlm", "nsp"),
        ),
        targets=lambda batch, length: {
            "mlm_logits": np.ones((batch, length), "int32"),
            "nsp_logits": np.ones((batch,), "int32"),
        },
        untrained={"*self_attention/key/bias": "the softmax does not feel it"},
        skip={"causal": "reads both ways", "decoding": "has no step function"},
    )
