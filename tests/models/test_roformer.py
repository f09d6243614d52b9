"""RoFormer: the numbers of others, its masks, and its weights there and back."""

import functools
import json

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file, save_file

from kerasattn.models.registry import MODELS
from kerasattn.models.roformer import RoFormer
from kerasattn.testing import check_model
from kerasattn.testing.arrays import run
from kerasattn.weights.tables import roformer as tables

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def shaken(model, seed=0):
    """Weights away from their start, so that no bias is zero."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(array(weight.value) + 0.3 * rng.normal(size=weight.shape))
    return model


@functools.cache
def model_of(application):
    """One that all tests share, which none may change."""
    return shaken(RoFormer(30, **SIZES, application=application))


# === Weights; tests/models/test_golden.py has the numbers of others ===


@pytest.fixture
def folder(golden, tmp_path):
    """A copy of a golden folder to change, and its tensors."""
    source = golden("models/roformer_mlm_emb16")
    config = json.loads((source / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path, config, load_file(source / "model.safetensors")


@pytest.fixture(scope="module")
def original(golden):
    return RoFormer.from_pretrained(golden("models/roformer_mlm_emb16"))


def same_weights(model, original):
    """Whether the weights are equal, bit for bit, where the model has them."""
    values = {weight.path: array(weight.value) for weight in original.weights}
    return all(np.array_equal(array(w.value), values[w.path]) for w in model.weights)


def test_other_ways_of_publishing_the_same_weights(original, folder):
    path, _, tensors = folder
    legacy = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"): value
        for key, value in tensors.items()
        if "embed_positions" not in key
    }
    assert legacy.keys() != tensors.keys()
    legacy["roformer.embeddings.position_ids"] = np.arange(64)[None]
    legacy["cls.predictions.decoder.weight"] = tensors["roformer.embeddings.word_embeddings.weight"]
    legacy["cls.predictions.decoder.bias"] = legacy.pop("cls.predictions.bias")
    save_file(legacy, path / "model.safetensors")
    assert same_weights(RoFormer.from_pretrained(path), original)


def test_the_bare_encoder(original, folder):
    path, config, tensors = folder
    bare = {
        key.removeprefix("roformer."): value
        for key, value in tensors.items()
        if key.startswith("roformer.")
    }
    save_file(bare, path / "model.safetensors")
    with pytest.raises(ValueError, match=r"missing.*\n.*head/"):
        RoFormer.from_pretrained(path)
    (path / "config.json").write_text(json.dumps(config | {"architectures": ["RoFormerModel"]}))
    model = RoFormer.from_pretrained(path)
    assert list(model.output) == ["hidden"] and same_weights(model, original)
    model.save_pretrained(path)
    assert load_file(path / "model.safetensors").keys() == bare.keys()


def test_what_does_not_fit_is_said(folder, caplog):
    path, config, tensors = folder
    with pytest.raises(ValueError, match=r"holds config.json"):
        RoFormer.from_pretrained(path)
    extra = tensors | {"classifier.weight": np.ones((2, 2), "float32")}
    del extra["roformer.encoder.layer.1.attention.self.key.bias"]
    save_file(extra, path / "model.safetensors")
    message = r"block_1/self_attention/key/bias.*roformer.*key.bias(.|\n)*classifier.weight"
    with pytest.raises(ValueError, match=message):
        RoFormer.from_pretrained(path)
    RoFormer.from_pretrained(path, strict=False)
    assert "classifier.weight" in caplog.text
    with pytest.raises(ValueError, match=r"\(155, 16\).*\(100, 16\)|\(100, 16\).*\(155, 16\)"):
        RoFormer.from_pretrained(path, vocabulary_size=100)

    (path / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
    with pytest.raises(ValueError, match=r"model_type 'bert'"):
        RoFormer.from_pretrained(path)
    (path / "config.json").write_text(json.dumps(config | {"hidden_act": "mish9"}))
    with pytest.raises(ValueError, match=r"'mish9' is not known"):
        RoFormer.from_pretrained(path)
    (path / "config.json").write_text(json.dumps(config | {"hidden_size": "wide"}))
    with pytest.raises(ValueError, match=r"config.json"):
        RoFormer.from_pretrained(path)
    with pytest.raises(ValueError, match=r"is not a folder"):
        RoFormer.from_pretrained(path / "nowhere")


def test_arguments_that_do_not_exist(folder):
    path, _, tensors = folder
    save_file(tensors, path / "model.safetensors")
    with pytest.raises(ValueError, match=r"there are no arguments num_hed"):
        RoFormer.from_pretrained(path, num_hed=2)


def test_sizes_and_epsilon_come_from_the_config(folder):
    path, config, tensors = folder
    save_file(tensors, path / "model.safetensors")
    changed = config | {"layer_norm_eps": 1e-5, "hidden_dropout_prob": 0.25, "hidden_act": "relu"}
    (path / "config.json").write_text(json.dumps(changed))
    model = RoFormer.from_pretrained(path, name="mine")
    assert model.name == "mine"
    got = model.get_config()
    assert (got["layer_norm_epsilon"], got["dropout"], got["activation"]) == (1e-5, 0.25, "relu")
    assert model.get_layer("embedding_norm").epsilon == 1e-5
    assert model.get_layer("block_0").self_attention_norm.epsilon == 1e-5
    model.save_pretrained(path)
    saved = json.loads((path / "config.json").read_text())
    assert {k: saved[k] for k in changed if k in saved} == {
        k: v for k, v in changed.items() if k in saved
    }


@pytest.mark.parametrize("application", ["encoder", "lm", "unilm"])
@pytest.mark.parametrize("heads", [("mlm",), ()])
def test_the_config_gives_the_arguments_back(tmp_path, application, heads):
    values = dict(
        vocabulary_size=20,
        **SIZES,
        embedding_dim=8,
        max_length=40,
        num_segments=3,
        application=application,
        heads=heads,
        num_classes=2,
        classifier_dropout=0.4,
        activation="gelu_tanh",
        dropout=0.2,
        attention_dropout=0.3,
        layer_norm_epsilon=1e-6,
        initializer_range=0.1,
        rotary_value=False,
        pad_id=1,
    )
    config = json.loads(json.dumps(tables.CONFIG.config(values)))
    assert tables.CONFIG.arguments(config, tmp_path) == values


def test_the_registry():
    assert MODELS["roformer"] is RoFormer


# === Masks ===


def test_applications():
    """At which positions the outputs change if the token at position 2, or 5, does."""
    ids = np.random.default_rng(0).integers(1, 20, 8)
    rows = np.tile(ids, (3, 1))
    rows[[1, 2], [2, 5]] = ids[[2, 5]] % 19 + 1
    inputs = {"token_ids": rows, "segment_ids": np.array([[0, 0, 0, 0, 1, 1, 1, 1]] * 3)}

    def changes(application):
        hidden = run(model_of(application), inputs)["hidden"]
        return np.abs(hidden[1:] - hidden[0]).max(axis=-1) > 1e-6

    np.testing.assert_array_equal(changes("encoder"), np.ones((2, 8), bool))
    np.testing.assert_array_equal(changes("lm"), np.arange(8) >= [[2], [5]])
    np.testing.assert_array_equal(changes("unilm"), np.arange(8) >= [[0], [5]])


@pytest.mark.parametrize("application", ["encoder", "lm", "unilm"])
def test_padding_changes_nothing_wherever_it_stands(application):
    model = model_of(application)
    ids, segments = np.array([5, 6, 7, 8]), np.array([0, 0, 1, 1])
    alone = {"token_ids": ids[None], "segment_ids": segments[None]}
    expected = run(model, alone)["hidden"][0]
    columns = np.array([[0, 1, 2, 3], [2, 3, 4, 5], [0, 1, 4, 5], [0, 2, 4, 6]] * 2)
    rows = np.arange(8)[:, None]
    # Anything may stand at padding that is marked as such.
    padded = np.repeat([[0] * 8, [9] * 8], 4, axis=0)
    padded_segments, real = np.zeros((8, 8), "int32"), np.zeros((8, 8), bool)
    padded[rows, columns], padded_segments[rows, columns], real[rows, columns] = ids, segments, True
    inputs = {"token_ids": padded, "segment_ids": padded_segments, "padding_mask": real}
    found = run(model, inputs)["hidden"][rows, columns]
    np.testing.assert_allclose(found, np.tile(expected, (8, 1, 1)), atol=1e-5)


def greedy(model, sources, length, steps):
    """UniLM's decoding by hand: each source padded to a length, then the target."""
    source = np.array([row + [0] * (length - len(row)) for row in sources])
    target = np.full((len(sources), 1), 3)
    logits = []
    for _ in range(steps):
        ids = np.concatenate([source, target], axis=1)
        segments = np.concatenate([np.zeros_like(source), np.ones_like(target)], axis=1)
        out = run(model, {"token_ids": ids, "segment_ids": segments})["lm_logits"][:, -1]
        logits.append(out)
        best = np.argmax(out[:, 4:], axis=-1) + 4  # no special token
        target = np.concatenate([target, best[:, None]], axis=1)
    return target, np.stack(logits, axis=1)


def test_c13_unilm_decodes_a_batch_as_each_alone():
    model = model_of("unilm")
    sources = [[2, 7, 8], [2, 9, 10, 11, 12]]
    together, logits = greedy(model, sources, length=5, steps=2)
    for row, source in enumerate(sources):
        alone, alone_logits = greedy(model, [source], length=len(source), steps=2)
        np.testing.assert_array_equal(together[row : row + 1], alone)
        np.testing.assert_allclose(logits[row : row + 1], alone_logits, atol=1e-5)


def test_c14_left_padding():
    model = model_of("lm")
    padded = run(model, {"token_ids": np.array([[0, 0, 5, 6, 7]])})["lm_logits"][0, -1]
    alone = run(model, {"token_ids": np.array([[5, 6, 7]])})["lm_logits"][0, -1]
    np.testing.assert_allclose(padded, alone, atol=1e-5)


# === Losses and precision ===


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_losses_count_what_they_should():
    ids = np.array([[5, 6, 7, 8], [5, 6, 0, 0]])
    segments = np.array([[0, 0, 1, 1], [0, 1, 0, 0]])
    inputs = {"token_ids": ids, "segment_ids": segments}
    labels = np.array([[-100, 9, -100, 4], [-100, -100, -100, -100]])
    counted = {
        "encoder": [(0, 1, 9), (0, 3, 4)],  # row, position, label
        "lm": [(0, 0, 6), (0, 1, 7), (0, 2, 8), (1, 0, 6)],
        "unilm": [(0, 1, 7), (0, 2, 8), (1, 0, 6)],
    }
    for application, tokens in counted.items():
        model = model_of(application)
        outputs = model(inputs)
        logits = outputs["mlm_logits" if application == "encoder" else "lm_logits"]
        logs = log_softmax(array(logits).astype("float64"))
        y = labels if application == "encoder" else None
        losses = [-logs[token] for token in tokens]
        loss = float(model.compute_loss(inputs, y, outputs))
        assert loss == pytest.approx(np.mean(losses), abs=1e-5)
        weights = np.array([2.0, 0.5])
        loss = float(model.compute_loss(inputs, y, outputs, sample_weight=weights))
        expected = np.average(losses, weights=[weights[row] for row, _, _ in tokens])
        assert loss == pytest.approx(expected, abs=1e-5)
    nothing = np.full((2, 4), -100)
    model = model_of("encoder")
    outputs = model(inputs)
    assert float(model.compute_loss(inputs, nothing, outputs)) == 0
    with pytest.raises(ValueError, match="labels y"):
        model.compute_loss(inputs, None, outputs)


@pytest.mark.parametrize("policy", ["mixed_float16", "float16"])
def test_c27_half_precision_stays_finite(golden, original, policy):
    model = RoFormer.from_pretrained(golden("models/roformer_mlm_emb16"), dtype=policy)
    ids = np.array([[2, 7, 8, 9, 3, 0]])
    outputs = model(ids)
    expected = original(ids)
    assert outputs["mlm_logits"].dtype == expected["mlm_logits"].dtype
    real = slice(0, 5)
    for key, value in outputs.items():
        found = array(ops.cast(value, "float32"))[:, real]
        assert np.isfinite(found).all()
        reference = array(expected[key])[:, real]
        assert np.abs(found - reference).max() < 0.1 * np.abs(reference).max()
    # Constant rows: the variance is 0 and epsilon 1e-12 would be 0 in float16.
    for weight in model.weights:
        if "embeddings" in weight.path:
            weight.assign(np.ones(weight.shape))
    assert all(np.isfinite(array(ops.cast(v, "float32"))).all() for v in model(ids).values())


@pytest.mark.parametrize("policy", ["float16", "mixed_float16"])
def test_c27_a_constant_row_has_norm_zero(policy):
    norm = keras.layers.LayerNormalization(epsilon=1e-12, dtype=policy)
    np.testing.assert_array_equal(array(norm(np.ones((1, 4), "float16"))), np.zeros((1, 4)))


# === Errors ===


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(application="seq2seq"), r"application.*'seq2seq'"),
        (dict(num_heads=3), "num_heads = 3"),
        (dict(num_heads=16), "num_heads = 16"),  # a head of width 1 has no pairs
    ],
)
def test_settings_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        RoFormer(20, **{**SIZES, **options})


def test_unilm_needs_segments():
    with pytest.raises(ValueError, match="needs segment_ids"):
        model_of("unilm")(np.array([[1, 2]]))


def test_ids_out_of_range():
    model = model_of("encoder")
    with pytest.raises(ValueError, match="token_ids takes ids from 0 to 29, got 30"):
        model(np.array([[30]]))
    with pytest.raises(ValueError, match="segment_ids takes ids from 0 to 1, got 2"):
        model({"token_ids": np.array([[1]]), "segment_ids": np.array([[2]])})


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        RoFormer,
        dict(
            vocabulary_size=11,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            embedding_dim=4,
            application="lm",
        ),
        causal=("hidden", "lm_logits"),
        config_errors=[(dict(application="seq2seq"), "application must be one of")],
        skip={
            "decoding": "has no step function",
            "jit": "BERT, of the same parts but positions, is compiled",
            "precision": "test_c27_half_precision_stays_finite",
        },
    )
