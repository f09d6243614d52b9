"""UniVAE: two passes against one sequence, what reaches what, loss, generation, editing, errors."""

import functools

import keras
import numpy as np
import pytest
from keras import ops
from scipy import special

from kerasattn import decoding
from kerasattn.models import UniVAE
from kerasattn.testing import OneSequenceUniVAE, check_model
from kerasattn.testing.checks import check_errors

SIZES = dict(
    vocabulary_size=13,
    num_layers=3,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=12,
    num_latent_layers=2,
    latent_dim=4,
    max_length=7,
    seed=1,
)
KINDS = {
    "vmf": dict(latent="vmf"),
    "gaussian": dict(latent="gaussian"),
    "quantized": dict(latent="quantized", codebook_size=64),
    "plain": dict(latent=None),
    "unreduced": dict(latent=None, latent_dim=None),
    "bert": dict(latent="vmf", backbone="bert", embedding_dim=6),
    "conditioned": dict(latent="vmf", length="conditioned"),
    "guided": dict(latent="vmf", isotropy_weight=0.2, swap_noise=0.3, word_dropout=0.3),
}
IDS = np.array([[2, 5, 6, 7, 8, 9, 3], [2, 5, 3, 0, 0, 0, 0], [2, 9, 10, 11, 3, 0, 0]], "int32")
LENGTHS = np.array([7, 3, 5], "int32")
SHALLOW = dict(num_layers=2, num_latent_layers=1)  # where the depth is not what is tested
# Where one is enough: XLA takes long to compile beside TensorFlow, and JAX longer without it.
QUICK = dict(jit_compile=keras.backend.backend() == "jax")
EAGER = keras.backend.backend() == "tensorflow"  # tracing a graph takes longer than to run it once
all_kinds = pytest.mark.parametrize("kind", KINDS)
tensorflow_only = functools.partial(pytest.mark.skipif, keras.backend.backend() != "tensorflow")


@pytest.fixture(autouse=True)
def _loops(eager_loops):
    """Generation and reading are compiled where a test is about that."""


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def assert_close(found, expected, atol=1e-5):
    np.testing.assert_allclose(array(found), array(expected), atol=atol)


def new(**options):
    """A model with weights away from their start, so that no bias is zero."""
    model = UniVAE(**{**SIZES, **options})
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(array(weight) + 0.4 * rng.normal(size=weight.shape))
    return model


@functools.cache
def univae(kind):
    """The model of a kind that tests share; none may change it."""
    keras.utils.set_random_seed(7)
    model = new(**KINDS[kind])
    if kind == "quantized":  # codes where texts are, so that texts differ in theirs
        texts = np.random.default_rng(2).integers(4, 13, (64, 7))
        for i, quantizer in enumerate(model.quantizers):
            quantizer.codebook.assign(univae("plain").encode(texts)[:, i])
    return model


@functools.cache
def latents_of(kind):
    """Latents that are no text's."""
    shape = univae(kind).latent_shape
    latents = np.random.default_rng(1).normal(size=(len(IDS), *shape)).astype("float32")
    if univae(kind).latent == "vmf":
        latents /= np.linalg.norm(latents, axis=-1, keepdims=True)
    return latents


def starts(kind):
    """What `decoder` takes besides tokens and latents."""
    return {"lengths": LENGTHS} if kind == "conditioned" else {}


def log_softmax(logits):
    logits = array(logits).astype("float64")
    return logits - special.logsumexp(logits, axis=-1, keepdims=True)


def token_losses(model, ids, **inputs):
    """-log p of each next token in float64, and which are real: (batch, length - 1) both."""
    logits = log_softmax(model({"token_ids": ids, **inputs})["lm_logits"])
    losses = -np.take_along_axis(logits[:, :-1], ids[:, 1:, None], axis=2)[..., 0]
    return losses, ids[:, 1:] != 0


# === Two passes against one sequence ===


@all_kinds
def test_two_passes_equal_one_sequence(kind):
    found, expected = univae(kind)(IDS), OneSequenceUniVAE(univae(kind))(IDS)
    for name in ("latents", "lm_logits"):
        assert_close(found[name], expected[name])
    assert_close(found["hidden"], array(expected["hidden"])[:, IDS.shape[1] :])


@pytest.mark.parametrize("kind", ["vmf", "quantized", "unreduced", "conditioned"])
def test_reading_reaches_writing_through_the_latents_alone(kind):
    """Of one sequence, with any one token of the half that is read changed."""
    both, length = OneSequenceUniVAE(univae(kind)), IDS.shape[1]
    written = np.repeat(IDS[:1], 1 + length, axis=0)
    read = written.copy()
    for place in range(length):
        read[1 + place, place] = 12
    held = np.repeat(latents_of(kind)[:1], 1 + length, axis=0)
    logits = array(both(read, latents=held, written_ids=written)["lm_logits"])
    np.testing.assert_allclose(logits[1:], logits[:-1], atol=1e-6)

    taken = both(read, written_ids=written)
    latents, logits = array(taken["latents"]), array(taken["lm_logits"])
    moved = np.abs(latents[1:] - latents[:1]).max((1, 2)) > 1e-4
    changed = np.abs(logits[1:] - logits[:1]).max((1, 2)) > 1e-4
    np.testing.assert_array_equal(changed, moved)
    assert moved.any() if kind == "quantized" else moved.all()  # a code may stay the same


@all_kinds
def test_every_latent_reaches_the_writing_and_no_later_token_does(kind):
    """Of latents that are no text's, with which the writing is that of one sequence, too."""
    latents = latents_of(kind)

    def logits(ids, latents):
        inputs = {"decoder_token_ids": ids, "latents": latents, **starts(kind)}
        return array(univae(kind).decoder(inputs))

    expected = logits(IDS, latents)
    assert_close(expected, OneSequenceUniVAE(univae(kind))(IDS, latents=latents)["lm_logits"])
    for layer in range(len(latents[0])):
        other = latents.copy()
        other[:, layer] = -other[:, layer]
        assert np.abs(logits(IDS, other) - expected).max(axis=2).min() > 1e-5
    for places in ((1, 2, 3), (4, 5, 6)):  # of each row, where it is another from
        later = np.arange(IDS.shape[1]) >= np.array(places)[:, None]
        found = logits(np.where(later, 12, IDS), latents)
        np.testing.assert_allclose(found[~later], expected[~later], atol=1e-6)
        assert all(
            np.abs(found - expected)[row, place:].max() > 1e-4 for row, place in enumerate(places)
        )


@all_kinds
def test_padding_changes_nothing(kind):
    """Nor what stands under a mask; the sentence alone, cut to its length, reads the same."""
    model, real = univae(kind), IDS != 0
    found = {name: array(x) for name, x in model(IDS).items()}
    masked = model({"token_ids": np.where(real, IDS, 12), "padding_mask": real})
    assert_close(masked["latents"], found["latents"])
    assert_close(array(masked["lm_logits"])[real], found["lm_logits"][real])
    row, length = 1, LENGTHS[1]
    alone = model(IDS[row : row + 1, :length])
    assert_close(found["latents"][row], alone["latents"][0])
    assert_close(found["lm_logits"][row, :length], alone["lm_logits"][0])
    row, length = 2, LENGTHS[2]
    assert_close(model.encode(IDS[row : row + 1, :length])[0], found["latents"][row])


def test_where_writing_starts():
    """At max_length whatever is read; or right after what is read, so that it tells the length."""
    for kind, same in (("vmf", True), ("conditioned", False)):
        model, inputs = univae(kind), {"decoder_token_ids": IDS, "latents": latents_of(kind)}
        both = OneSequenceUniVAE(model)
        at = [both(IDS, latents_of(kind), start=np.full(3, n))["lm_logits"] for n in (7, 4)]
        for n, expected in zip((7, 4), at, strict=True):
            if kind == "conditioned":
                inputs["lengths"] = np.full(3, n)
            found = array(model.decoder(inputs))
            assert np.allclose(found, array(expected), atol=1e-5) == (n == 7 or not same)


def test_attention_of_a_written_half():
    model = univae("vmf")
    inputs = {"decoder_token_ids": IDS, "latents": latents_of("vmf")}
    weights = [array(w) for w in model.decoder_attention(inputs)]
    assert [w.shape for w in weights] == [(3, 2, 7, 7), (3, 2, 7, 8), (3, 2, 7, 8)]
    for attended in weights:
        np.testing.assert_allclose(attended.sum(-1), 1, atol=1e-5)
        own = attended[..., -7:]
        assert (own * np.triu(np.ones((7, 7)), 1) == 0).all()
        assert (own[1, :, :, 3:] == 0).all()
    assert weights[1][..., 0].min() > 0  # the latent is open to every query


def test_hidden_states():
    model = univae("vmf")
    hidden = [array(h) for h in model.hidden_states(IDS)]
    assert [h.shape for h in hidden] == [(3, 7, 8)] * (3 + 4)  # the last block is not read
    np.testing.assert_allclose(hidden[-1], array(model(IDS)["hidden"]), atol=1e-6)
    both = array(OneSequenceUniVAE(model)(IDS)["hidden"])
    np.testing.assert_allclose(hidden[-1], both[:, 7:], atol=1e-5)


# === Loss and training ===


def evaluated(model, ids):
    """The loss and metrics of one batch."""
    if not model.compiled:
        model.compile("sgd", run_eagerly=EAGER, **QUICK)
    model.reset_metrics()
    return model.test_on_batch(ids, return_dict=True)


def test_the_loss_is_over_real_tokens():
    """[SEP] counts, what follows does not; nor more padding, nor what stands under a mask."""
    model = univae("plain")
    losses, real = token_losses(model, IDS)
    results = evaluated(model, IDS)
    assert results["loss"] == pytest.approx(losses[real].mean(), abs=1e-5)
    assert results["perplexity"] == pytest.approx(np.exp(losses[real].mean()), rel=1e-5)
    short = evaluated(model, IDS[1:, :5])["loss"]
    assert short == pytest.approx(losses[1:][real[1:]].mean(), abs=1e-5)
    masked = {"token_ids": np.where(IDS == 0, 12, IDS), "padding_mask": IDS != 0}
    assert evaluated(model, masked)["loss"] == pytest.approx(results["loss"], abs=1e-5)


def test_sample_weight():
    """Weights of sentences and of tokens: sum(w l) / sum(w), and 0 where nothing is left (C28)."""
    model = univae("plain")
    losses, real = token_losses(model, IDS)
    assert evaluated(model, np.zeros_like(IDS))["loss"] == 0

    def loss(sample_weight):
        options = dict(sample_weight=sample_weight, batch_size=3, verbose=0, return_dict=True)
        return model.evaluate(IDS, **options)["loss"]

    sentences = np.array([2.0, 0.0, 0.5])
    tokens = np.random.default_rng(0).random(IDS.shape)
    for given, weights in (
        (sentences, sentences[:, None] * real),
        (tokens, tokens[:, 1:] * real),
    ):
        expected = (losses * weights).sum() / weights.sum()
        assert loss(given) == pytest.approx(expected, abs=1e-5)
    assert loss(np.zeros(3)) == 0


def test_the_gaussian_pays_its_divergence():
    """KL = 0.5 sum(mean² + var - 1 - log var) nats a sentence, spread over the tokens."""
    model, terms = univae("gaussian"), []
    losses, real = token_losses(model, IDS)
    hidden = [array(h)[:, 0].astype("float64") for h in model.hidden_states(IDS)]
    for i in (1, 2):
        layer = model.get_layer(f"latent_in_{i}")
        x = hidden[i] @ array(layer.kernel) + array(layer.bias)
        mean, log_var = x[:, :4], x[:, 4:]
        terms.append(0.5 * (mean**2 + np.exp(log_var) - 1 - log_var).mean(axis=0))
    terms = np.concatenate(terms)  # (2 * 4,)
    free = float(np.median(terms))
    options = dict(latent="gaussian", kl_weight=0.3, free_bits=free / np.log(2))
    other = UniVAE(**{**SIZES, **options})
    for mine, its in zip(other.trainable_weights, model.trainable_weights, strict=True):
        mine.assign(array(its))
    for one, cost in ((model, terms.sum()), (other, 0.3 * np.maximum(terms, free).sum())):
        results = evaluated(one, IDS)
        expected = losses[real].mean() + cost * len(IDS) / real.sum()
        assert results["loss"] == pytest.approx(expected, abs=1e-4)
        assert results["kl"] == pytest.approx(terms.sum(), abs=1e-4)


@pytest.mark.parametrize("kind", ["gaussian", "quantized", "guided"])
def test_rows_of_padding_cost_nothing(kind):
    """Nor do they move a codebook: what fills up a batch is no sentence."""
    filled = np.concatenate([IDS, np.zeros((5, 7), "int32")])
    masked = {"token_ids": np.where(filled == 0, 12, filled), "padding_mask": filled != 0}
    expected = evaluated(univae(kind), IDS)
    for ids in (filled, masked):
        for name, value in evaluated(univae(kind), ids).items():
            assert value == pytest.approx(expected[name], abs=1e-5), name
    assert np.isfinite(list(evaluated(univae(kind), filled[3:]).values())).all()
    if kind == "quantized":
        model, books = new(**KINDS[kind], dropout=0.0), []
        before = [array(variable).copy() for variable in model.variables]
        for ids in (IDS, filled):
            for variable, value in zip(model.variables, before, strict=True):
                variable.assign(value)
            for _ in range(2):
                model(ids, training=True)
            # Of codes that stand at one place either may be taken: compare what they hold in all.
            books.append([array(q.sums).sum(axis=0) for q in model.quantizers])
        assert np.abs(books[0]).max() > 0.1
        np.testing.assert_allclose(books[1], books[0], atol=1e-5)


def test_the_isotropy_of_latents_is_paid():
    """weight × divergence of the sentences' means, in evaluation as in training."""
    from kerasattn.ops.isotropy import isotropy_divergence

    model = univae("guided")
    losses, real = token_losses(model, IDS)
    cost = 0.2 * float(isotropy_divergence(model.encode(IDS)))
    assert evaluated(model, IDS)["loss"] == pytest.approx(losses[real].mean() + cost, abs=1e-5)


def test_a_loss_of_ones_own():
    """What `compile` is given is what is trained on."""
    model = new(latent=None, **SHALLOW)

    def loss(y, logits):
        return ops.mean(logits, axis=(1, 2))

    model.compile("sgd", {"lm_logits": loss}, run_eagerly=EAGER, **QUICK)
    y = {"lm_logits": IDS}
    found = model.evaluate(IDS, y, verbose=0, return_dict=True)["loss"]
    assert found == pytest.approx(array(model(IDS)["lm_logits"]).mean(), abs=1e-5)


def test_the_start_of_all_tables_is_as_wide_as_asked():
    model = UniVAE(**{**SIZES, "vocabulary_size": 500}, backbone="bert", initializer_range=0.5)
    for name in ("token_embedding", "position_embedding"):
        assert 0.3 < array(model.get_layer(name).weights[0]).std() < 0.6


def test_c51_the_divergence_is_a_sum_over_dimensions():
    """Means of 1 and variances of 1: 0.5 nats a dimension, whatever the batch; finite at ±100."""
    model = new(latent="gaussian", **SHALLOW)
    layer = model.get_layer("latent_in_1")
    layer.kernel.assign(np.zeros(layer.kernel.shape))
    layer.bias.assign([1.0] * 4 + [0.0] * 4)
    for batch in (1, 3):
        assert evaluated(model, np.repeat(IDS[:1], batch, 0))["kl"] == pytest.approx(2.0, abs=1e-5)
    for log_var in (-100, 100):
        layer.bias.assign([1.0] * 4 + [log_var] * 4)
        assert np.isfinite(evaluated(model, IDS)["loss"])


def test_the_spheres_divergence_is_reported_and_not_paid():
    """kappa A + log C(kappa) + log area, with scipy's Bessel functions, for both layers."""
    results = evaluated(univae("vmf"), IDS)
    losses, real = token_losses(univae("vmf"), IDS)
    assert results["loss"] == pytest.approx(losses[real].mean(), abs=1e-5)
    nu, kappa = 4 / 2 - 1, 32.0
    mean_length = special.ive(nu + 1, kappa) / special.ive(nu, kappa)
    log_bessel = np.log(special.ive(nu, kappa)) + kappa
    log_density = nu * np.log(kappa) - 2 * np.log(2 * np.pi) - log_bessel
    log_area = np.log(2 * np.pi**2)  # of the sphere in 4 dimensions
    expected = 2 * (kappa * mean_length + log_density + log_area)
    assert results["kl"] == pytest.approx(expected, rel=1e-4)


def test_latents_in_training_are_draws():
    model = univae("vmf")
    means = array(model(IDS)["latents"])
    draws = [array(model(IDS, training=True)["latents"]) for _ in range(2)]
    for latents in (means, *draws):
        np.testing.assert_allclose(np.linalg.norm(latents, axis=-1), 1, atol=1e-5)
    assert np.abs(draws[0] - draws[1]).max() > 1e-3
    # The lowest layer's mean does not depend on draws: dropout aside, kappa says how far they go.
    still = new(latent="vmf", dropout=0.0, kappa=1e4, **SHALLOW)
    near = np.sum(
        array(still(IDS, training=True)["latents"]) * array(still(IDS)["latents"]), axis=-1
    )
    assert near[:, 0].min() > 0.999
    codes = array(univae("quantized")(IDS)["latents"])
    for i, quantizer in enumerate(univae("quantized").quantizers):
        book = array(quantizer.codebook)
        assert all((np.abs(book - z).max(-1) < 1e-6).any() for z in codes[:, i])


def test_fit():
    """compile(optimizer), fit(token_ids): the loss falls, in bfloat16 too."""
    keras.utils.set_random_seed(3)
    options = {"dropout": 0.0, "dtype": "mixed_bfloat16"}
    model = UniVAE(**{**SIZES, **SHALLOW, **KINDS["quantized"], **options})
    model.compile(keras.optimizers.Adam(0.03), **QUICK)
    losses = model.fit(IDS, batch_size=3, epochs=25, verbose=0).history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < 0.7 * losses[0]
    assert all(w.dtype == "float32" for w in model.trainable_weights)


def trained(steps, **options):
    keras.utils.set_random_seed(5)
    model = UniVAE(**{**SIZES, **SHALLOW, "dropout": 0.0})
    model.compile(keras.optimizers.SGD(0.5), **options)
    return model, [float(model.train_on_batch(IDS)[0]) for _ in range(steps)]


def test_compiled_training_is_compiled_and_equal():
    """With draws too: a seed gives the same ones to a compiled step."""
    model, losses = trained(20, jit_compile="auto")
    assert model.jit_compile
    eager, plain = trained(3, jit_compile=False, run_eagerly=EAGER)
    assert not eager.jit_compile
    np.testing.assert_allclose(losses[:3], plain, atol=1e-4)
    assert losses[-1] < losses[0]
    # The step that `fit` runs is a compiled function inside Keras' own.
    parts = [cell.cell_contents for cell in model.train_function.__closure__]
    if keras.backend.backend() == "tensorflow":
        steps = [part.__wrapped__ for part in parts if hasattr(part, "__wrapped__")]
        (step,) = [s for s in steps if hasattr(s, "experimental_get_compiler_ir")]
        assert "ENTRY" in step.experimental_get_compiler_ir((IDS,))(stage="hlo")
    else:
        assert any(hasattr(part, "lower") for part in parts)  # what jax.jit returns


@tensorflow_only(reason="tf.data")
def test_fit_on_a_dataset():
    import tensorflow as tf

    model = UniVAE(**{**SIZES, **SHALLOW, "latent": None})
    model.compile("sgd", run_eagerly=True, jit_compile=False)
    dataset = tf.data.Dataset.from_tensor_slices(IDS).batch(2, drop_remainder=True)
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()


# === Generation ===


GENERATES = ["vmf", "unreduced", "bert", "conditioned"]


def written(kind, strategy, **options):
    model = univae(kind)
    lengths = LENGTHS if kind == "conditioned" else None
    return model.generate(
        latents_of(kind), strategy, lengths, return_scores=True, as_text=False, **options
    )


def teacher_forced(kind, ids):
    """Log-probabilities of each next token of what was generated, and which of them count."""
    inputs = {"decoder_token_ids": ids, "latents": latents_of(kind), **starts(kind)}
    logs = log_softmax(univae(kind).decoder(inputs))[:, :-1]
    ended = np.cumsum(ids[:, 1:] == 3, axis=1) - (ids[:, 1:] == 3) > 0
    return logs, ~ended


@pytest.mark.parametrize("kind", GENERATES)
def test_greedy_with_a_cache_equals_all_at_once(kind):
    ids, scores = written(kind, decoding.Greedy())
    assert ids.shape == (3, 7) and ids.dtype == np.int32 and (ids[:, 0] == 2).all()
    logs, real = teacher_forced(kind, ids)
    best = np.where(real, logs.argmax(-1), 0)
    np.testing.assert_array_equal(ids[:, 1:], best)
    np.testing.assert_allclose(scores, (logs.max(-1) * real).sum(-1), atol=1e-4)
    if kind == "conditioned":
        both = OneSequenceUniVAE(univae(kind))
        np.testing.assert_array_equal(both.generate(latents_of(kind), start=LENGTHS), ids)


def test_sampling_and_beams_are_scored_as_the_whole_is():
    ids, scores = written("vmf", decoding.Sampling(top_k=5), seed=3)
    logs = assert_scored(ids, scores)
    again, _ = written("vmf", decoding.Sampling(top_k=5), seed=3, max_new_tokens=2)
    np.testing.assert_array_equal(again, ids[:, :3])
    chosen = np.take_along_axis(logs, ids[:, 1:, None], axis=2)[..., 0]
    real = teacher_forced("vmf", ids)[1]
    assert (chosen >= np.sort(logs, axis=-1)[..., -5] - 1e-6)[real].all()

    several, scores = written("vmf", decoding.Beam(3, length_penalty=0.0, num_return=2))
    assert several.shape == (3, 2, 7) and scores.shape == (3, 2)
    assert (several[:, 0] != several[:, 1]).any(axis=1).all()
    assert (scores[:, 0] >= scores[:, 1]).all()
    for i in range(2):
        assert_scored(several[:, i], scores[:, i])


def assert_scored(ids, scores):
    """The scores of what was written are those of all tokens at once; returns the logs of all."""
    logs, real = teacher_forced("vmf", ids)
    chosen = np.take_along_axis(logs, ids[:, 1:, None], axis=2)[..., 0]
    np.testing.assert_allclose(scores, (chosen * real).sum(-1), atol=1e-4)
    return logs


def test_other_ways_of_writing():
    model, latents = univae("vmf"), latents_of("vmf")
    write = functools.partial(model.generate, latents, max_new_tokens=4)
    greedy = write()
    np.testing.assert_array_equal(write(decoding.Contrastive(alpha=0.0, top_k=2)), greedy)
    streamed = np.stack(list(write(stream=True)), axis=1)
    np.testing.assert_array_equal(streamed, greedy[:, 1 : 1 + streamed.shape[1]])

    options = dict(
        forced=[[5], [6], [7]],
        limits=[4, 1, 4],
        stop=[[[8]], [[9, 9]], [[10]]],
        banned=[4],
        min_new_tokens=2,
        processors=[decoding.NoRepeatNgram(2)],
    )
    together = write(**options)
    assert together[:, 1].tolist() == [5, 6, 7] and not (together == 4).any()
    assert not together[1, 2:].any() and not (together[:, 1:3] == 3).any()
    np.testing.assert_array_equal(write(**options, batch_size=2), together)


def test_compiled_generation_is_equal_and_reads_the_weights_of_now(monkeypatch):
    """Compiled once; what training changes is seen."""
    model = new(latent="vmf", **SHALLOW)
    plain = model.generate(model.encode(IDS))
    monkeypatch.undo()  # of `eager_loops`
    for name in ("_encode", "_step_decoder") if EAGER else ():
        vars(model).pop(name)
    latents = model.encode(IDS)
    before = model.generate(latents)
    np.testing.assert_array_equal(before, plain)
    model.get_layer("head").bias.assign(np.eye(13)[12] * 100)
    after = model.generate(latents)
    assert (after[:, 1:] == 12).all() and not (before[:, 1:] == 12).all()
    (loop,) = vars(model)["_step_decoder"]._compiled_loops.values()
    assert loop.traces == 1


def test_any_number_of_sentences_a_batch_at_a_time():
    model = univae("vmf")
    latents = model.encode(IDS)
    np.testing.assert_allclose(model.encode(IDS, batch_size=2), latents, atol=1e-6)
    assert model.encode(IDS[:0]).shape == (0, 2, 4)
    with pytest.raises(ValueError, match="nothing to encode"):
        model.encode([])
    write = functools.partial(model.generate, max_new_tokens=3)
    ids = write(latents)
    np.testing.assert_array_equal(write(latents, batch_size=2), ids)
    assert write(latents[:0]).shape == (0, 4)
    assert model.generate(latents[:0]).shape == (0, 7)
    np.testing.assert_array_equal(model.reconstruct(IDS)[:, :4], ids)


def test_conditioned_on_the_length():
    model, latents = univae("conditioned"), latents_of("conditioned")
    for lengths in (4, np.array([4, 4, 4])):
        ids = model.generate(latents, lengths=lengths, max_new_tokens=1)
        inputs = {"decoder_token_ids": ids, "latents": latents, "lengths": np.full(3, 4)}
        logs = log_softmax(model.decoder(inputs))[:, :-1].argmax(-1)
        np.testing.assert_array_equal(ids[:, 1], logs[:, 0])
    own = model.generate(model.encode(IDS), lengths=LENGTHS)
    np.testing.assert_array_equal(model.reconstruct(IDS), own)
    for wrong, message in (
        (None, "needs lengths"),
        (1, r"from 2 to max_length = 7"),
        (8, r"from 2 to max_length = 7"),
        ([4, 4], r"ints \(3,\)"),
        (4.0, "takes an int"),
    ):
        with pytest.raises(ValueError, match=message):
            model.generate(latents, lengths=wrong)
    with pytest.raises(ValueError, match='lengths needs a model of length="conditioned"'):
        univae("vmf").generate(latents, lengths=4)


@pytest.mark.parametrize("steps", [-1, 2.5, "3"])
def test_numbers_of_tokens_that_are_none(steps):
    with pytest.raises(ValueError, match="max_new_tokens must be an int of at least 0"):
        univae("vmf").generate(latents_of("vmf"), max_new_tokens=steps)


def test_no_more_tokens_than_positions():
    """A table of 14 positions, and writing that starts at 7."""
    model, latents = univae("bert"), latents_of("bert")
    options = dict(limits=[1, 1, 1])  # there is room for more, which is not used
    assert model.generate(latents, max_new_tokens=7, **options).shape == (3, 8)
    with pytest.raises(ValueError, match=r"14 positions, .* starts at 7: .* at most 7, got 8"):
        model.generate(latents, max_new_tokens=8)
    model = univae("vmf")  # no end to turn
    assert model.generate(latents_of("vmf"), max_new_tokens=8, **options).shape == (3, 9)


def test_counts_that_are_none():
    for wrong, name in (
        (lambda: univae("vmf").sample(-1), "n"),
        (lambda: univae("vmf").encode(IDS, batch_size=0), "batch_size"),
        (lambda: univae("vmf").generate(latents_of("vmf"), batch_size=-2), "batch_size"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be an int of at least"):
            wrong()


def test_latents_off_the_sphere_are_refused():
    latents = latents_of("vmf") * np.array([1.0, 2.0], "float32")[:, None]
    for use in (univae("vmf").generate, functools.partial(univae("vmf").resample, layers=[0])):
        with pytest.raises(ValueError, match="unit vectors, got norms from 1 to 2"):
            use(latents)
    assert univae("gaussian").generate(latents, max_new_tokens=1).shape == (3, 2)


def test_lengths_are_for_strings():
    model, latents = univae("conditioned"), latents_of("conditioned")
    for use in (
        lambda: model.interpolate(latents[0], latents[1], lengths=4),
        lambda: model.resample(latents, [0], lengths=4),
    ):
        with pytest.raises(ValueError, match="lengths is for strings"):
            use()


# === The prior, and ways between ===


def test_samples_of_the_sphere():
    model = univae("vmf")
    latents = model.sample(4000, seed=1)
    assert latents.shape == (4000, 2, 4) and latents.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(latents, axis=-1), 1, atol=1e-5)
    assert np.abs(latents.mean(0)).max() < 5 * (0.25 / 4000) ** 0.5
    np.testing.assert_allclose((latents**2).mean(0), 0.25, atol=0.03)
    np.testing.assert_array_equal(model.sample(4000, seed=1), latents)
    assert np.abs(model.sample(5, seed=2) - latents[:5]).max() > 0.1
    assert model.sample(0).shape == (0, 2, 4)


def test_samples_of_the_normal_and_of_nothing():
    latents = univae("gaussian").sample(4000, seed=1)
    assert np.abs(latents.mean(0)).max() < 5 / 4000**0.5
    np.testing.assert_allclose(latents.std(0), 1, atol=0.06)
    for kind in ("plain", "unreduced"):
        with pytest.raises(ValueError, match="no prior to sample from"):
            univae(kind).sample(3)


def test_codes():
    """A sentence is num_latent_layers codes; samples are codes as often as they were used."""
    model = new(**KINDS["quantized"])
    latents = model.encode(IDS)
    codes = [array(q.codes(latents[:, i])) for i, q in enumerate(model.quantizers)]
    for i, quantizer in enumerate(model.quantizers):
        np.testing.assert_allclose(array(quantizer.lookup(codes[i])), latents[:, i], atol=1e-6)
        quantizer.counts.assign(np.eye(64)[5] * 3 + np.eye(64)[9 + i])
    samples = model.sample(2000, seed=0)
    for i, quantizer in enumerate(model.quantizers):
        drawn = array(quantizer.codes(samples[:, i]))
        assert set(drawn) == {5, 9 + i}
        assert abs((drawn == 5).mean() - 0.75) < 0.05
    np.testing.assert_array_equal(model.sample(2000, seed=0), samples)


def test_interpolation():
    model = univae("vmf")
    a, b = latents_of("vmf")[:2]
    path = model.interpolate(a, b, steps=5)
    assert path.shape == (5, 2, 4)
    np.testing.assert_allclose(path[[0, -1]], [a, b], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(path, axis=-1), 1, atol=1e-5)
    angles = np.arccos(np.clip(np.sum(path[1:] * path[:-1], axis=-1), -1, 1))  # (4, 2)
    np.testing.assert_allclose(
        angles, np.arccos(np.sum(a * b, axis=-1))[None] / 4 + 0 * angles, atol=1e-3
    )
    for end in (a, -a):  # no way at all, and every way alike
        path = model.interpolate(a, end, steps=5)
        np.testing.assert_allclose(np.linalg.norm(path, axis=-1), 1, atol=1e-5)
        np.testing.assert_allclose(path[[0, -1]], [a, end], atol=1e-6)
    straight = univae("gaussian").interpolate(a, b, steps=3)
    np.testing.assert_allclose(straight, [a, (a + b) / 2, b], atol=1e-6)
    with pytest.raises(ValueError, match="at least 2, got 1"):
        model.interpolate(a, b, steps=1)
    with pytest.raises(ValueError, match="latents take numbers"):
        model.interpolate(a, b[:1])


def test_resampling():
    model, latents = univae("vmf"), latents_of("vmf")
    original = latents.copy()
    for chosen, kept in ((0, 1), (-1, 0), (1, 0)):
        found = model.resample(latents, [chosen], seed=4)
        np.testing.assert_array_equal(found[:, kept], latents[:, kept])
        assert np.abs(found[:, chosen] - latents[:, chosen]).max(-1).min() > 1e-3
        np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1, atol=1e-5)
        np.testing.assert_array_equal(model.resample(latents, [chosen], seed=4), found)
    np.testing.assert_array_equal(latents, original)
    np.testing.assert_array_equal(model.resample(latents, []), latents)
    for wrong in ([2], [-3], 7, "0", [0.5], None, [[0]], [True]):
        with pytest.raises(ValueError, match=r"layers from -2 to 1"):
            model.resample(latents, wrong)


# === With a tokenizer ===


@tensorflow_only(reason="tokenizers need TensorFlow")
def test_strings(tmp_path):
    from kerasattn.testing import reload
    from kerasattn.tokenizers import CharacterTokenizer

    texts = ["abc", "hg", "b"]
    tokenizer = CharacterTokenizer.build(["abc", "hgfed"])
    assert tokenizer.vocabulary_size == 13
    model = new(tokenizer=tokenizer, length="conditioned", **SHALLOW, max_length=5)
    ids = tokenizer.encode(texts, max_length=5)
    latents = model.encode(texts)
    np.testing.assert_array_equal(latents, model.encode(ids))
    assert model.encode("abc").shape == (1, 1, 4)
    written = model.generate(latents, lengths=5)
    assert all(isinstance(text, str) for text in written)
    as_ids = model.generate(latents, lengths=5, as_text=False)
    assert tokenizer.decode(as_ids) == written
    inside = as_ids[:, 1:][as_ids[:, 1:] != tokenizer.sep_id]  # no text holds other special ones
    assert not np.isin(inside[inside != 0], [1, 2, 4]).any()
    again = model.reconstruct(texts)
    assert again == tokenizer.decode(model.reconstruct(ids))
    assert again == model.generate(latents, lengths=[5, 4, 3])
    path = model.interpolate(latents[0], latents[2], steps=3)
    assert model.interpolate("abc", "b", steps=3) == model.generate(path, lengths=[5, 4, 3])
    assert len(model.interpolate("abc", "b", steps=2, lengths=4)) == 2
    assert len(model.resample(texts, [0], seed=1)) == 3
    with pytest.raises(ValueError, match="Strings need a tokenizer"):
        univae("vmf").encode(texts)
    with pytest.raises(ValueError, match="Strings need a tokenizer"):
        univae("vmf").generate(latents_of("vmf"), as_text=True)

    # Saved, and loaded in a new process and here.
    model.save(tmp_path / "model.keras")
    there = reload.predict(tmp_path / "model.keras", {"token_ids": ids})
    np.testing.assert_allclose(there["latents"], latents, atol=1e-6)
    np.testing.assert_allclose(there["lm_logits"], array(model(ids)["lm_logits"]), atol=1e-5)
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.tokenizer.vocabulary == tokenizer.vocabulary
    assert loaded.get_config() == model.get_config()
    assert loaded.reconstruct(texts) == again


@tensorflow_only(reason="tokenizers need TensorFlow")
def test_only_tokens_are_written_that_can_be_read():
    """A vocabulary rounded up has ids that no token stands for, here the likeliest of all."""
    from kerasattn.tokenizers import CharacterTokenizer

    tokenizer = CharacterTokenizer.build(["abc", "hgfed"])
    model = new(vocabulary_size=40, tokenizer=tokenizer, **SHALLOW)
    model.get_layer("head").bias.assign(np.where(np.arange(40) >= 13, 100.0, 0.0))
    written = model.generate(model.encode(["abc", "b"]), as_text=False)
    assert written.max() < len(tokenizer.vocabulary) == 13


# === As a model ===


def test_model():
    skip = {
        "causal": "what is read reaches all that is written, through the latents",
        "jit": "compiled training and generation are compared with plain ones above",
    }
    if EAGER:
        skip["save"] = "test_strings saves one with a tokenizer, and loads it in a new process"
    options = {"dropout": 0.1, "embedding_dim": 6, "kappa": 20.0, "isotropy_weight": 0.2}
    check_model(
        UniVAE,
        {**SIZES, **SHALLOW, **options},
        decoding=lambda model, inputs: (
            model.generate(model.encode(inputs["token_ids"]), return_scores=True)[1],
            _score(model, inputs["token_ids"]),
        ),
        skip=skip,
        errors=[
            ({"token_ids": np.ones((1, 8), "int32")}, "max_length = 7"),
            ({"token_ids": np.ones((1, 0), "int32")}, "1 to max_length"),
            ({"token_ids": IDS, "decoder_token_ids": IDS}, r"got also \['decoder_token_ids'\]"),
        ],
    )


def _score(model, ids):
    """The score of greedy writing, from all positions at once."""
    latents = model.encode(ids)
    texts = model.generate(latents)
    logs = log_softmax(model.decoder({"decoder_token_ids": texts, "latents": latents}))[:, :-1]
    real = np.cumsum(texts[:, 1:] == 3, axis=1) - (texts[:, 1:] == 3) == 0
    return (logs.max(-1) * real).sum(-1)


CONFIG_ERRORS = [
    ({"num_latent_layers": 3}, "from 1 to num_layers - 1 = 2, got 3. The first layer cannot"),
    ({"num_latent_layers": 0}, "got 0"),
    ({"latent": "cauchy"}, "latent must be one of .*got 'cauchy'"),
    ({"length": "free"}, "length must be one of .*got 'free'"),
    ({"backbone": "gpt"}, "backbone must be one of .*got 'gpt'"),
    ({"latent_dim": None}, "latent='vmf' needs a latent_dim"),
    ({"num_heads": 3}, "num_heads = 3 must divide hidden_dim = 8"),
    ({"max_length": 1}, "2 or more; got 1"),
    (
        {"backbone": "bert", "max_positions": 13},
        "2 × max_length = 14 positions, max_positions is 13",
    ),
    ({"latent_dim": 1}, "latent_dim"),
    ({"latent_dim": 0}, "latent_dim"),
    ({"kappa": -1.0}, "kappa"),
    ({"kappa": float("nan")}, "kappa"),
    ({"latent": "quantized", "codebook_size": 0}, "codebook_size"),
    ({"latent": "gaussian", "kl_weight": -1.0}, "kl_weight"),
    ({"latent": "gaussian", "free_bits": -1.0}, "free_bits"),
    ({"dropout": 1.0}, "dropout"),
    ({"vocabulary_size": 0}, "vocabulary_size"),
    ({"num_heads": 8}, "head"),  # heads of width 1 have no pairs to turn
    ({"pad_id": 13}, "pad_id"),
    ({"sep_id": 2}, "sep_id"),
]


def test_settings_that_do_not_go():
    check_errors(lambda changes: UniVAE(**{**SIZES, "embedding_dim": 6, **changes}), CONFIG_ERRORS)


ALL_ELSE = {
    "latent": "gaussian",
    "length": "conditioned",
    "backbone": "bert",
    "swap_noise": 0.3,
    "word_dropout": 0.3,
}


@pytest.mark.parametrize("options", [ALL_ELSE, KINDS["quantized"]], ids=["all else", "quantized"])
def test_model_of_another_kind(options):
    seconds = "tried on the first kind"
    skip = {
        **dict.fromkeys(["save", "saved_model", "errors", "decoding"], seconds),
        **dict.fromkeys(["jit", "precision"], "tried on its layers, each by itself"),
        "padding": "tried above, on each kind",
        "causal": "what is read reaches all that is written, through the latents",
    }
    untrained = None
    if options is ALL_ELSE:
        untrained = {"*/key/bias": "without turns it adds the same to all scores of a query"}
    else:
        skip["fit"] = "test_fit trains it"
    config = {**SIZES, **SHALLOW, **options, "dropout": 0.1}
    check_model(UniVAE, config, skip=skip, untrained=untrained, lengths=(1, 7))


BAD_LATENTS = [
    (np.zeros((3, 2, 5)), r"the shape \(batch, 2, 4\), got float64 of the shape \(3, 2, 5\)"),
    (np.zeros((3, 1, 4)), r"got float64 of the shape \(3, 1, 4\)"),
    (np.zeros((2, 4)), r"got float64 of the shape \(2, 4\)"),
    (np.full((1, 2, 4), np.nan), "NaN or infinity"),
    (np.full((1, 2, 4), np.inf), "NaN or infinity"),
    (np.array([[["a"] * 4] * 2]), "latents take numbers"),
]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"strategy": "greedy"}, r"strategy takes Greedy\(\).*got 'greedy'"),
        ({"strategy": decoding.Beam}, r"strategy takes Greedy\(\).*got <class"),
        ({"seed": 1.5}, "seed must be an int of at least 0, got 1.5"),
        ({"seed": -1}, "seed must be an int of at least 0, got -1"),
        ({"as_text": True}, "Strings need a tokenizer"),
    ],
)
def test_ways_of_writing_that_there_are_not(options, message):
    with pytest.raises(ValueError, match=message):
        univae("vmf").generate(univae("vmf").sample(2, seed=0), **options)


@pytest.mark.parametrize("steps", [1, 2.5, "3", None])
def test_steps_of_an_interpolation(steps):
    with pytest.raises(ValueError, match="steps must be an int of at least 2, got"):
        univae("vmf").interpolate(*univae("vmf").sample(2, seed=0), steps)


@pytest.mark.parametrize("seed", [1.5, -1, "x"])
def test_seeds_that_are_none(seed):
    with pytest.raises(ValueError, match="seed must be an int of at least 0, got"):
        univae("vmf").sample(2, seed)


@pytest.mark.parametrize("latents, message", BAD_LATENTS)
def test_latents_that_cannot_be_written(latents, message):
    for method in (univae("vmf").generate, functools.partial(univae("vmf").resample, layers=[0])):
        with pytest.raises(ValueError, match=message):
            method(latents)


@pytest.mark.parametrize(
    "ids, message",
    [
        (np.array([[1.7]]), r"integers of the shape \(batch, length\), got float64"),
        (np.ones((2, 5, 1), "int32"), r"got int32 of the shape \(2, 5, 1\)"),
        (np.ones((5,), "int32"), r"got int32 of the shape \(5,\)"),
        (np.ones((1, 0), "int32"), "1 to max_length = 7 tokens, got 0"),
        (np.ones((1, 8), "int32"), "1 to max_length = 7 tokens, got 8"),
        (np.array([[13]]), "ids from 0 to 12, got 13"),
        (np.array([[-1]]), "ids from 0 to 12, got -1"),
    ],
)
def test_c72_ids_that_cannot_be_read(ids, message):
    for method in (univae("vmf").encode, univae("vmf").reconstruct):
        with pytest.raises(ValueError, match=message):
            method(ids)
