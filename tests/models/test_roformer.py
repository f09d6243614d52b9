"""RoFormer: the numbers of others, its masks, and its weights there and back."""

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

HUGGINGFACE = ["models/roformer_mlm", "models/roformer_mlm_emb16"]
TENSORFLOW = pytest.param(
    "tf_checkpoints/roformer_tf",
    marks=pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="TensorFlow checkpoints need TensorFlow"
    ),
)
SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def shaken(model, seed=0):
    """Weights away from their start, so that no bias is zero."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(array(weight.value) + 0.3 * rng.normal(size=weight.shape))
    return model


def case_of(golden, case):
    """A golden case's inputs, in our names, and its outputs."""
    inputs, outputs = (
        {k.rsplit("/", 1)[1]: v for k, v in golden.items() if k.startswith(f"{case}/{side}/")}
        for side in ("in", "out")
    )
    token_ids = inputs["input_ids"].astype("int32")
    ours = {
        "token_ids": token_ids,
        "padding_mask": inputs.get("attention_mask", np.ones_like(token_ids)).astype(bool),
    }
    if "token_type_ids" in inputs:
        ours["segment_ids"] = inputs["token_type_ids"].astype("int32")
    return ours, inputs.get("labels"), outputs


# === The numbers of Hugging Face ===


@pytest.mark.parametrize("name", [*HUGGINGFACE, TENSORFLOW])
def test_golden(golden, name):
    folder = golden(name)
    model = RoFormer.from_pretrained(folder)
    numbers = load_file(folder / "golden.safetensors")
    for case in ("padded", "labels", "nomask"):
        inputs, labels, expected = case_of(numbers, case)
        real = inputs["padding_mask"]
        outputs = model(inputs)
        hidden = model.hidden_states(inputs)
        assert len(hidden) == 4
        actual = {f"hidden_states.{i}": x for i, x in enumerate(hidden)}
        actual |= {"last_hidden_state": outputs["hidden"], "logits": outputs["mlm_logits"]}
        if labels is not None:
            actual["loss"] = model.compute_loss(inputs, labels, outputs)
        for key, value in expected.items():
            found = array(actual[key])
            if key != "loss":
                found, value = found[real], value[real]
            np.testing.assert_allclose(found, value, rtol=0, atol=1e-4, err_msg=f"{case} {key}")


# === Weights ===


@pytest.mark.parametrize("name", HUGGINGFACE)
def test_saving_gives_the_file_back_bit_for_bit(golden, name, tmp_path):
    folder = golden(name)
    model = RoFormer.from_pretrained(folder)
    model.save_pretrained(tmp_path)
    before, after = (load_file(f / "model.safetensors") for f in (folder, tmp_path))
    assert before.keys() == after.keys()
    for key, value in before.items():
        assert value.dtype == after[key].dtype
        np.testing.assert_array_equal(value, after[key], err_msg=key)
    theirs, ours = (json.loads((f / "config.json").read_text()) for f in (folder, tmp_path))
    different = {key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]}
    assert not different and {"model_type", "architectures", "layer_norm_eps"} <= ours.keys()


@pytest.mark.parametrize("name", [TENSORFLOW])
def test_from_tensorflow_to_hugging_face(golden, name, tmp_path):
    model = RoFormer.from_pretrained(golden(name))
    model.save_pretrained(tmp_path)
    again = RoFormer.from_pretrained(tmp_path)
    for ours, theirs in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(array(ours.value), array(theirs.value))


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
    assert same_weights(RoFormer.from_pretrained(path), original)


def test_shards(original, folder):
    path, _, tensors = folder
    names = sorted(tensors)
    where = {name: f"model-{1 + i % 2}-of-2.safetensors" for i, name in enumerate(names)}
    for shard in set(where.values()):
        save_file({n: tensors[n] for n in names if where[n] == shard}, path / shard)
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    assert same_weights(RoFormer.from_pretrained(path), original)


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
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 20, (2, 8))
    segments = np.array([[0, 0, 0, 0, 1, 1, 1, 1]] * 2)
    inputs = {"token_ids": ids, "segment_ids": segments}

    def changes(application, place):
        """At which positions the output changes if one token does."""
        model = shaken(RoFormer(20, **SIZES, application=application))
        changed = ids.copy()
        changed[:, place] = ids[:, place] % 19 + 1
        a, b = model(inputs)["hidden"], model(inputs | {"token_ids": changed})["hidden"]
        return np.abs(array(a) - array(b)).max(axis=(0, 2)) > 1e-6

    np.testing.assert_array_equal(changes("encoder", 5), [True] * 8)
    np.testing.assert_array_equal(changes("lm", 2), [False] * 2 + [True] * 6)
    np.testing.assert_array_equal(changes("unilm", 5), [False] * 5 + [True] * 3)
    np.testing.assert_array_equal(changes("unilm", 2), [True] * 8)


@pytest.mark.parametrize("application", ["encoder", "lm", "unilm"])
def test_padding_changes_nothing_wherever_it_stands(application):
    model = shaken(RoFormer(20, **SIZES, application=application))
    ids, segments = np.array([[5, 6, 7, 8]]), np.array([[0, 0, 1, 1]])
    expected = array(model({"token_ids": ids, "segment_ids": segments})["hidden"])[0]
    for columns in ([0, 1, 2, 3], [2, 3, 4, 5], [0, 1, 4, 5], [0, 2, 4, 6]):
        padded, padded_segments = np.zeros((2, 1, 8), "int32")
        padded[:, columns] = ids
        padded_segments[:, columns] = segments
        # Anything may stand at padding that is marked as such.
        for filling in (0, 9):
            filled = np.where(padded == 0, filling, padded)
            inputs = {"token_ids": filled, "segment_ids": padded_segments}
            inputs["padding_mask"] = padded != 0
            found = array(model(inputs)["hidden"])[0, columns]
            np.testing.assert_allclose(found, expected, atol=1e-5)


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
    model = shaken(RoFormer(30, **SIZES, application="unilm"))
    sources = [[2, 7, 8], [2, 9, 10, 11, 12]]
    together, logits = greedy(model, sources, length=5, steps=4)
    for row, source in enumerate(sources):
        alone, alone_logits = greedy(model, [source], length=len(source), steps=4)
        np.testing.assert_array_equal(together[row : row + 1], alone)
        np.testing.assert_allclose(logits[row : row + 1], alone_logits, atol=1e-5)


def test_c14_left_padding():
    model = shaken(RoFormer(30, **SIZES, application="lm"))
    padded = array(model(np.array([[0, 0, 5, 6, 7]]))["lm_logits"])[0, -1]
    alone = array(model(np.array([[5, 6, 7]]))["lm_logits"])[0, -1]
    np.testing.assert_allclose(padded, alone, atol=1e-5)


# === Training and saving ===


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
        model = shaken(RoFormer(20, **SIZES, application=application))
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
    model = RoFormer(20, **SIZES)
    assert float(model.compute_loss(inputs, nothing, model(inputs))) == 0
    with pytest.raises(ValueError, match="labels y"):
        model.compute_loss(inputs, None, model(inputs))


@pytest.mark.parametrize("application", ["encoder", "lm", "unilm"])
def test_fit(application):
    keras.utils.set_random_seed(0)
    model = RoFormer(20, **SIZES, application=application, embedding_dim=8, seed=1)
    jit = keras.backend.backend() == "jax"  # which takes longer without it, TensorFlow with it
    model.compile(keras.optimizers.Adam(0.02), jit_compile=jit)
    ids = np.random.default_rng(0).integers(1, 20, (8, 6))
    inputs = {"token_ids": ids, "segment_ids": np.array([[0, 0, 1, 1, 1, 1]] * 8)}
    y = ids if application == "encoder" else None
    losses = model.fit(inputs, y, epochs=24, batch_size=8, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


def test_keras_file(tmp_path):
    model = shaken(RoFormer(20, **SIZES, application="lm", embedding_dim=8, pad_id=1))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    ids = np.array([[5, 6, 7, 1]])
    for key, value in model(ids).items():
        np.testing.assert_array_equal(array(value), array(again(ids)[key]))


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
        RoFormer(20, **SIZES, application="unilm")(np.array([[1, 2]]))


def test_ids_out_of_range():
    model = RoFormer(20, **SIZES)
    with pytest.raises(ValueError, match="token_ids takes ids from 0 to 19, got 20"):
        model(np.array([[20]]))
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
        skip={"decoding": "has no step function"},
    )
