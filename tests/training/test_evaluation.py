"""The evaluation of models that turn text into latents and back, on a model that is known."""

import math

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("tokenizers need TensorFlow", allow_module_level=True)

from kerasattn.models import UniVAE
from kerasattn.ops import vmf
from kerasattn.tokenizers import CharacterTokenizer
from kerasattn.training import evaluation

TEXTS = ["佢食咗飯。", "我食緊魚？", "你飲茶", "我飲咗酒。"]


class Halves:
    """Two latents: the first holds the first two tokens of a text, the second the rest."""

    latent, length, max_length, pad_id = "known", "fixed", 8, 0
    latent_shape = (2, 6)

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.calls = []

    def encode(self, token_ids, batch_size):
        first = np.pad(token_ids[:, 1:3], [(0, 0), (0, 4)])
        rest = np.pad(token_ids[:, 3:8], [(0, 0), (0, 1)])
        return np.stack([first, rest], axis=1).astype("float32")

    def generate(self, latents, batch_size, as_text, lengths=None):
        self.calls.append((len(latents), None if lengths is None else len(lengths)))
        ids = np.concatenate([latents[:, 0, :2], latents[:, 1, :5]], axis=1).astype("int32")
        return self.tokenizer.decode(np.pad(ids, [(0, 0), (1, 0)], constant_values=2))

    def sample(self, n, seed=None):
        rows = self.encode(self.tokenizer.encode([TEXTS[1]] * n, max_length=8), n)
        return rows


@pytest.fixture
def halves():
    return Halves(CharacterTokenizer.build(TEXTS))


def test_reading_and_writing_in_whole_batches(halves):
    latents, lengths = evaluation.read(halves, TEXTS)
    assert latents.shape == (4, 2, 6)
    assert lengths.tolist() == [7, 7, 5, 7]
    assert evaluation.write(halves, latents, lengths) == TEXTS
    assert halves.calls == [(256, None)]
    halves.length = "conditioned"
    assert evaluation.write(halves, latents, lengths) == TEXTS
    assert halves.calls[-1] == (256, 256)


def test_replacements(halves):
    scores, texts = evaluation.replacement_scores(halves, TEXTS[:1], [1], halves.sample, times=2)
    assert texts == [["佢食緊魚？"] * 2]  # the first half stays
    # Content 食飯 keeps 食; function words 佢咗 keep 佢; 佢·咗·。 and 佢·緊·？ share 佢··.
    assert scores == {
        "content": 1 / 2,
        "function_words": 1 / 2,
        "punctuation": 0.0,
        "length": 1.0,
        "pattern": pytest.approx(3 / 5),
    }
    scores, _ = evaluation.replacement_scores(halves, TEXTS, [], halves.sample, times=1)
    assert set(scores.values()) == {1.0}


def test_latent_use_is_the_drop_of_accuracy(halves):
    # 佢食咗飯。 with the first two characters of 我食緊魚？ loses one of five, with the rest three.
    assert evaluation.latent_use(halves, TEXTS[:1], halves.sample) == pytest.approx([1 / 5, 3 / 5])


def test_an_autoencoder_draws_from_what_it_read(halves):
    halves.latent = None
    latents, _ = evaluation.read(halves, TEXTS)
    drawn = evaluation.prior(halves, latents)(50, seed=1)
    for layer in range(2):
        found = {tuple(row) for row in drawn[:, layer]}
        assert found <= {tuple(row) for row in latents[:, layer]}
        assert len(found) > 1
    np.testing.assert_array_equal(drawn, evaluation.prior(halves, latents)(50, seed=1))


SIZES = dict(num_layers=3, num_heads=1, hidden_dim=8, intermediate_dim=8, num_latent_layers=2)


def model_of(latent, **options):
    tokenizer = CharacterTokenizer.build(TEXTS)
    return UniVAE(
        tokenizer.vocabulary_size,
        **{**SIZES, **options},
        latent_dim=4,
        latent=latent,
        max_length=8,
        tokenizer=tokenizer,
    )


def test_rates():
    vmf_bits = evaluation.rate_bits(model_of("vmf", kappa=9.0), TEXTS)
    # KL to uniform = E log density ratio = -entropy + log of the sphere's area, in nats.
    area = math.log(2 * math.pi**2)
    expected = (area - float(vmf.entropy(4, 9.0))) / math.log(2)
    assert vmf_bits["layers"] == pytest.approx([expected] * 2, rel=1e-4)
    assert vmf_bits["total"] == pytest.approx(2 * expected, rel=1e-4)

    model = model_of("gaussian")
    for i in (1, 2):  # mean 1 and log variance 0 in every dimension, whatever is read
        kernel, bias = model.get_layer(f"latent_in_{i}").weights
        kernel.assign(np.zeros(kernel.shape))
        bias.assign([1.0] * 4 + [0.0] * 4)
    bits = evaluation.rate_bits(model, TEXTS)
    assert bits["layers"] == pytest.approx([4 * 0.5 / math.log(2)] * 2, rel=1e-5)

    bits = evaluation.rate_bits(model_of("quantized", codebook_size=16), TEXTS)
    assert bits["layers"] == [4.0, 4.0]
    assert all(0 <= entropy <= 2.0 for entropy in bits["entropy"])  # four texts
    assert evaluation.rate_bits(model_of(None), TEXTS) == {"total": None, "layers": None}
