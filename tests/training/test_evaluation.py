"""The evaluation of models that turn text into latents and back, on a model that is known."""

import math

import keras
import numpy as np
import pytest
from scipy import stats

if keras.backend.backend() != "tensorflow":
    pytest.skip("tokenizers need TensorFlow", allow_module_level=True)

from kerasattn.models import UniVAE
from kerasattn.tokenizers import CharacterTokenizer
from kerasattn.training import evaluation
from kerasattn.training.report import to_markdown

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
    entropy = stats.vonmises_fisher([1, 0, 0, 0], 9.0).entropy()
    expected = (area - entropy) / math.log(2)
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


class Counts:
    """Its perplexity is the number of texts."""

    def perplexity(self, texts):
        return float(len(texts))


def test_samples_against_sentences():
    """Three samples, one of them empty, against two sentences: all worked out by hand."""
    scores = evaluation.sample_scores(["ab", "ab", ""], ["ab", "x"], ["abc", "de"], Counts())
    expected = {
        "perplexity": 3.0,
        "perplexity_held_out": 2.0,
        "perplexity_ratio": 3 / 2,
        "distinct_2": 1 / 2,  # ab, ab of the first two samples
        "distinct_2_held_out": 1.0,  # ab, bc, de
        "distinct_2_ratio": 1 / 2,
        "copies": 2 / 3,
        "different": 2 / 3,
        "empty": 1 / 3,
        "mean_length": 4 / 3,
        "mean_length_held_out": 5 / 2,
        "length_deviation": math.sqrt(8) / 3,
        "length_deviation_held_out": 1 / 2,
        "length_total_variation": (1 / 3 + 1 / 6 + 1 / 2) / 2,  # of the shares of 0, 2 and 3
        "length_kolmogorov_smirnov": 1 / 2,
    }
    assert scores.keys() == expected.keys()
    for name, value in expected.items():
        assert scores[name] == pytest.approx(value), name


def test_the_perplexity_of_a_token():
    """A model that says the same of every token: 2 ** its mean number of bits."""
    model = model_of(None)
    tokenizer = model.tokenizer
    table = model.get_layer("token_embedding").embeddings
    table.assign(np.zeros(table.shape))
    bits = np.random.default_rng(0).permutation(tokenizer.vocabulary_size) + 1.0
    model.get_layer("head").bias.assign(-bits * math.log(2))
    model.compile("sgd", run_eagerly=True)
    total = math.log2((2.0**-bits).sum())
    tokens = [i for ids in tokenizer.encode_ragged(TEXTS) for i in ids[1:]]
    expected = 2 ** np.mean([bits[i] + total for i in tokens])
    assert evaluation.token_perplexity(model, TEXTS) == pytest.approx(expected, rel=1e-4)


def test_the_way_between_two_sentences_of_middle_length(halves):
    halves.interpolate = lambda a, b, steps: np.linspace(a, b, steps)
    latents, _ = evaluation.read(halves, TEXTS)
    texts = ["kurz", *TEXTS[1:]]
    path = evaluation.interpolation(halves, texts, latents, np.array([3, 6, 5, 9]), steps=3)
    # 5.5 is the middle: the nearest are 6 and 5, the earlier one first.
    assert [path[0], path[-1]] == [TEXTS[1], TEXTS[2]]
    assert [path[1], path[-2]] == [TEXTS[1], TEXTS[2]] and len(path) == 5


def test_the_page_says_what_was_found():
    kept = dict(content=0.75, function_words=0.5, punctuation=1.0, length=0.25, pattern=0.125)
    other = {**kept, "content": 0.5, "pattern": 0.25}
    report = {
        **dict(exact_match=0.5, character_accuracy=0.625, bleu=33.0, perplexity=1.5),
        "samples": dict.fromkeys(
            ("perplexity", "perplexity_held_out", "perplexity_ratio", "distinct_2_ratio", "copies",
             "mean_length", "mean_length_held_out", "length_total_variation"), 2.0),
        "rate_bits": {"total": None},
        "latent_use": [0.1, 0.3],
        "replacements": {"lower half": kept, "top layer": other},
        "speed": dict(training_tokens_per_second=1234.5, generated_tokens_per_second=10.0),
        "seconds": {"training": 99.0},
        "sentences": dict(training=1200, trained_on=800, held_out=100, rebuilt=90),
        "parameters": 1_000_000,
        "settings": {"kappa": 32.0},
    }  # fmt: skip
    texts = {
        **dict(samples=["a|b"], originals=["long enough"], rebuilt=["long enough!"]),
        **{name: [[f"{name} {i}" for i in range(6)]] for name in ("lower half", "top layer")},
        "path": ["from", "between", "to"],
    }
    page = to_markdown(report, texts, ["map.png"])
    for line in (
        "1,200 sentences, 800 of them of a length that was trained on, 100 held out, 90 of these "
        "rebuilt; 1,000,000 parameters, 2 latents.",
        "| rebuilt exactly (greedy) | 0.500 |",
        "| rate of the code, bits | - |",
        "| training tokens per second | 1,234.5 |",
        "| 1 | a\\|b |",
        "| long enough | long enough! |",
        "| long enough | lower half 0 | lower half 1 |",
        "so does this model. It keeps 75% of the content and 12% of the pattern",
        "| 2 | 0.300 |",
        "| 1 | between |",
        "![map](map.png)",
        "kappa 32.0",
    ):
        assert line in page, line
