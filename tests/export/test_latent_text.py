"""SavedModels of strings to latents and back."""

import types

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels need TensorFlow", allow_module_level=True)

import tensorflow as tf

from kerasattn import decoding
from kerasattn.export import export_latent_text
from kerasattn.models import UniVAE
from kerasattn.tokenizers import WordPieceTokenizer

TEXTS = ["where are you going?", "how are you", "what is it?", "I am going", "you?"]
SIZES = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=16, num_latent_layers=1)


@pytest.fixture(autouse=True)
def _loops(eager_loops):
    """Of the model that the exported one is compared with."""


@pytest.fixture(scope="module")
def model():
    """The likeliest of its ids are those that no token stands for."""
    tokenizer = WordPieceTokenizer.build(TEXTS * 2, vocabulary_size=60)
    known = len(tokenizer.vocabulary)
    model = UniVAE(
        known + 4,
        **SIZES,
        latent_dim=4,
        max_length=10,
        length="conditioned",
        initializer_range=0.5,
        tokenizer=tokenizer,
    )
    model.get_layer("head").bias.assign([0.0] * known + [100.0] * 4)
    return model


def test_equal_to_the_model_for_any_batch(model, tmp_path):
    export_latent_text(model, tmp_path / "saved")
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    latents = model.encode(TEXTS)
    np.testing.assert_allclose(loaded.encode(tf.constant(TEXTS)), latents, atol=1e-5)
    lengths = np.array([4, 6, 8, 10, 5], "int32")
    texts = model.generate(latents, lengths=lengths)
    for rows in (slice(0, 5), slice(2, 3), slice(0, 0)):
        found = loaded.decode(tf.constant(latents[rows]), tf.constant(lengths[rows]))
        assert [text.decode() for text in found.numpy()] == texts[rows]
    signature = loaded.signatures["decode"]
    assert set(signature.structured_input_signature[1]) == {"latents", "lengths"}
    assert set(loaded.signatures["encode"].structured_outputs) == {"latents"}


def test_draws_by_a_seed(model, tmp_path, monkeypatch):
    """By `decode` as it is traced for any batch: the test before writes and loads one."""
    modules = []
    monkeypatch.setattr(tf.saved_model, "save", lambda module, *_: modules.append(module))
    export_latent_text(model, tmp_path, strategy=decoding.Sampling(temperature=3.0))
    (module,) = modules
    latents = tf.constant(model.sample(6, seed=0))

    def draw(latents, seed):
        lengths = tf.fill([len(latents)], 8)
        return module.decode(latents, lengths, tf.constant(seed)).numpy().tolist()

    once = draw(latents, 1)
    assert once == draw(latents, 1) != draw(latents, 2)
    assert draw(latents[:2], 1) == once[:2]  # a row is the same in any batch
    names = [spec.name for spec in module.decode.input_signature]
    assert names == ["latents", "lengths", "seed"]


def test_what_cannot_be_exported(model, tmp_path):
    with pytest.raises(ValueError, match="one sentence a latent"):
        export_latent_text(model, tmp_path, strategy=decoding.Beam(2, num_return=2))
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="can't be made"):
        export_latent_text(model, tmp_path / "file" / "folder")
    with pytest.raises(ValueError, match="tokenizer"):
        export_latent_text(types.SimpleNamespace(tokenizer=None), tmp_path)
