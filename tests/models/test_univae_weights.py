"""UniVAE's checkpoints: the published reference, RoFormer to start from, its own."""

import json

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

from kerasattn.models import RoFormer, UniVAE
from kerasattn.weights.tables.univae import special_ids

SIZES = dict(
    num_layers=3, num_heads=2, hidden_dim=16, intermediate_dim=32, num_latent_layers=2, latent_dim=4
)

SHALLOW = dict(num_layers=2, num_latent_layers=1)  # where the first kind has shown the depth


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def by_path(model):
    return {weight.path: array(weight.value) for weight in model.weights}


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for path, value in ours.items():
        np.testing.assert_array_equal(value, theirs[path], err_msg=path)


# === The published reference ===


@pytest.fixture(scope="module")
def reference(golden):
    folder = golden("univae_reference")
    return UniVAE.from_pretrained(folder), np.load(folder / "golden.npz"), folder


def test_sizes_come_from_the_config(reference):
    model, _, folder = reference
    settings = json.loads((folder / "config.json").read_text())["settings"]
    config = model.get_config()
    for ours, theirs in (
        ("vocabulary_size", "vocab_size"),
        ("num_layers", "num_hidden_layers"),
        ("num_heads", "num_attention_heads"),
        ("hidden_dim", "hidden_size"),
        ("intermediate_dim", "intermediate_size"),
        ("num_latent_layers", "num_latent_layers"),
        ("latent_dim", "z_dim"),
        ("max_length", "maxlen"),
        ("kappa", "kappa"),
    ):
        assert config[ours] == settings[theirs]
    assert (config["layer_norm_epsilon"], config["head_norm_epsilon"]) == (1e-7, 1e-12)
    assert (config["pad_id"], config["cls_id"], config["sep_id"]) == (0, 2, 3)


def test_every_tensor_of_the_reference_is_where_it_belongs(reference):
    model, _, folder = reference
    tensors = np.load(folder / "weights.npz")
    weights = by_path(model)
    names = [n for n in tensors if n.startswith("keras/") and "ReParameterization" not in n]
    assert len(weights) == len(names)
    for path, name in (
        ("latent_in_2/kernel", "In-Projection-2/kernel"),
        ("latent_out_3/bias", "Out-Projection-3/bias"),
        ("block_1/self_attention/key/bias", "Transformer-1-MultiHeadSelfAttention/k_dense/bias"),
        ("head/bias", "MLM-Bias/beta"),
    ):
        np.testing.assert_array_equal(weights[path], tensors[f"keras/{name}"])


def test_the_reference_reads(reference):
    model, golden, _ = reference
    half = golden["token_ids"][:, : golden["token_ids"].shape[1] // 2]
    latents = model.encode(half)
    np.testing.assert_allclose(latents.reshape(len(half), -1), golden["mus"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", ["mus", "z_random", "z_unnormalised"])
def test_the_reference_writes(reference, kind):
    model, golden, _ = reference
    ids = golden["token_ids"][:, golden["token_ids"].shape[1] // 2 :]
    latents = golden[kind].reshape(len(ids), *model.latent_shape)
    name = kind.removeprefix("z_")
    logits = model.decoder({"decoder_token_ids": ids, "latents": latents}, training=False)
    probabilities = array(ops.softmax(logits))
    np.testing.assert_allclose(probabilities, golden[f"probs_{name}"], rtol=0, atol=1e-4)

    # Over real tokens: row i predicts token i + 1.
    real = golden["real_target_mask"][:, 1:].astype(bool)
    chosen = np.take_along_axis(probabilities[:, :-1], ids[:, 1:, None], axis=2)[..., 0]
    loss = -np.log(chosen.astype("float64"))[real].mean()
    assert loss == pytest.approx(float(golden[f"loss_real_tokens_{name}"]), abs=1e-4)


@pytest.mark.parametrize("kind", ["mus", "z_random", "z_unnormalised"])
def test_the_reference_generates(reference, kind):
    model, golden, _ = reference
    latents = golden[kind].reshape(-1, *model.latent_shape)
    latents = latents / np.linalg.norm(latents, axis=-1, keepdims=True)
    expected = golden[f"gen_{kind.removeprefix('z_')}_topk1"]
    ids = model.generate(latents, max_new_tokens=expected.shape[1] - 1)
    np.testing.assert_array_equal(ids, np.where(expected < 0, model.pad_id, expected))


# === From RoFormer ===


def test_from_a_roformer_folder(tmp_path, caplog):
    roformer = RoFormer(
        20, num_layers=3, num_heads=2, hidden_dim=16, intermediate_dim=32, embedding_dim=8
    )
    roformer.save_pretrained(tmp_path)
    tokens = ["[PAD]", "[MASK]", "a", "[CLS]", "\u2028", "[SEP]"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    model = UniVAE.from_pretrained(tmp_path, num_latent_layers=2, latent_dim=4, max_length=8)
    weights = by_path(model)
    assert "newly initialized" in caplog.text and "latent_in_1/kernel" in caplog.text
    same(by_path(roformer), {k: v for k, v in weights.items() if not k.startswith("latent_")})
    config = model.get_config()
    assert (config["pad_id"], config["cls_id"], config["sep_id"]) == (0, 3, 5)
    assert (config["max_length"], config["embedding_dim"]) == (8, 8)


def test_a_loss_that_no_checkpoint_has_may_be_asked_for(golden, tmp_path):
    """The weight of the isotropy loss is a variable, which starts at what is asked for."""
    sizes = dict(num_latent_layers=2, latent_dim=4, max_length=8)
    UniVAE(20, **SIZES, max_length=6).save_pretrained(tmp_path / "own")
    for folder, options in (
        (golden("models/roformer_mlm_emb16"), sizes),
        (golden("univae_reference"), {}),
        (tmp_path / "own", {}),
    ):
        model = UniVAE.from_pretrained(folder, isotropy_weight=0.2, **options)
        (layer,) = (x for x in model.layers if hasattr(x, "isotropy_weight"))
        assert float(array(layer.isotropy_weight)) == pytest.approx(0.2)
    model.save_pretrained(tmp_path / "with")
    without = UniVAE.from_pretrained(tmp_path / "with", isotropy_weight=0.0)
    assert {*by_path(model)} - {*by_path(without)} == {"isotropy/isotropy_weight"}


def test_special_ids_of_lines(tmp_path):
    assert special_ids(tmp_path) == {}
    (tmp_path / "vocab.txt").write_text("[PAD]\r\na\r\n[SEP]\r\n", newline="")
    assert special_ids(tmp_path) == {"pad_id": 0, "sep_id": 2}


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow checkpoints need TensorFlow"
)
def test_from_a_tensorflow_folder(golden, reference):
    # The reference's own starting point has all of its weights but the projections.
    folder = golden("univae_reference")
    config = json.loads((folder / "bert_config.json").read_text())
    form = UniVAE.formats[-1]
    arguments = form.arguments(config, folder)
    options = dict(num_latent_layers=2, latent_dim=8, max_length=12, isotropy_weight=0.2)
    model = UniVAE(**arguments, **options)
    from kerasattn.weights import load_weights

    with form.open(folder) as source:
        report = load_weights(model, form.table, source, fresh=form.fresh)
    new = ("latent_", "isotropy/")
    assert all(path.startswith(new) for path in report.fresh)
    body = {k: v for k, v in by_path(model).items() if not k.startswith(new)}
    same(body, {k: v for k, v in by_path(reference[0]).items() if not k.startswith("latent_")})


# === Its own ===


@pytest.mark.parametrize(
    "options",
    [
        dict(latent="vmf", embedding_dim=8, length="conditioned", isotropy_weight=0.2),
        dict(SHALLOW, latent="gaussian", backbone="bert", kl_weight=0.5),
        dict(SHALLOW, latent="quantized", codebook_size=7),
        dict(SHALLOW, latent=None, latent_dim=None),
    ],
    ids=["vmf", "gaussian", "quantized", "plain"],
)
def test_its_own_folder_gives_all_back(tmp_path, options, caplog):
    model = UniVAE(20, **{**SIZES, "max_length": 6, **options})
    rng = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    model.save_pretrained(tmp_path)
    again = UniVAE.from_pretrained(tmp_path)
    assert again.get_config() == model.get_config() and not caplog.text
    same(by_path(model), by_path(again))
    tensors = load_file(tmp_path / "model.safetensors")
    assert "roformer.encoder.layer.0.attention.self.query.weight" in tensors
    with pytest.raises(ValueError, match="model_type 'univae'"):
        RoFormer.from_pretrained(tmp_path)


def test_a_config_may_not_name_objects_of_others(tmp_path):
    UniVAE(20, **SIZES, max_length=6).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    hostile = {"module": "os", "class_name": "system", "config": "true", "registered_name": None}
    path.write_text(json.dumps(config | {"tokenizer": hostile}))
    with pytest.raises(ValueError, match="objects of kerasattn alone"):
        UniVAE.from_pretrained(tmp_path)
    path.write_text(json.dumps(config | {"wings": 2}))
    with pytest.raises(ValueError, match=r"No UniVAE can be built from .*config.json"):
        UniVAE.from_pretrained(tmp_path)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tokenizers need TensorFlow")
def test_the_tokenizer_comes_along(tmp_path):
    from kerasattn.tokenizers import CharacterTokenizer

    tokenizer = CharacterTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
    UniVAE(7, **SIZES, max_length=6, tokenizer=tokenizer).save_pretrained(tmp_path)
    assert UniVAE.from_pretrained(tmp_path).tokenizer.vocabulary == tokenizer.vocabulary
