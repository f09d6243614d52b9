"""What a model that turns text into latents and back is worth, in numbers.

`model` is a `UniVAE`, or has its methods. Everything is written in batches of one size, so that
one compiled loop serves the whole evaluation.
"""

import math
import time

import keras
import numpy as np

from kerasattn.ops import gaussian
from kerasattn.training import metrics
from kerasattn.training.ngram import CharacterNGram
from kerasattn.training.patterns import mean_kept

BATCH = 256


def read(model, sentences, batch_size=BATCH):
    """The latents' means of strings, and their lengths in tokens.

    Returns:
        latents (batch, num_latent_layers, latent_dim), lengths (batch,) with [CLS] and [SEP].
    """
    token_ids = model.tokenizer.encode(list(sentences), max_length=model.max_length)
    more = -len(token_ids) % batch_size
    latents = model.encode(np.concatenate([token_ids, token_ids[:1].repeat(more, 0)]), batch_size)
    return latents[: len(token_ids)], np.sum(token_ids != model.pad_id, axis=1).astype("int32")


def write(model, latents, lengths, batch_size=BATCH, **options):
    """The strings that latents stand for; `lengths` (batch,) is used where the model wants it."""
    more = -len(latents) % batch_size
    padded = np.concatenate([latents, np.repeat(latents[:1], more, axis=0)])
    if model.length == "conditioned":
        lengths = np.asarray(lengths, "int32")
        options["lengths"] = np.concatenate([lengths, np.repeat(lengths[:1], more)])
    texts = model.generate(padded, batch_size=batch_size, as_text=True, **options)
    return texts[: len(latents)]


def prior(model, latents, seed=0):
    """A function (n, seed) -> latents: the model's prior, or what stands in for it.

    A plain autoencoder has none: each layer's latent is then that of a text drawn from `latents`.
    """
    if model.latent is not None:
        return model.sample

    def draw(n, seed=seed):
        rng = np.random.default_rng(seed)
        rows = rng.integers(len(latents), size=(n, latents.shape[1]))
        return latents[rows, np.arange(latents.shape[1])]

    return draw


def replace(latents, layers, draw, seed):
    """Latents (batch, layers, dim) where those of some layers are drawn anew."""
    latents = latents.copy()
    latents[:, layers] = draw(len(latents), seed)[:, layers]
    return latents


# === Numbers ===


def reconstruction_scores(originals, rebuilt):
    """exact_match and character_accuracy, from 0 to 1, and bleu of characters, from 0 to 100."""
    return {
        "exact_match": metrics.exact_match(originals, rebuilt),
        "character_accuracy": metrics.character_accuracy(originals, rebuilt),
        "bleu": metrics.bleu(originals, rebuilt),
    }


def sample_scores(samples, training, held_out, ngram, alike=None, split=list, seed=0):
    """How samples compare with sentences that people wrote.

    Args:
        samples, training, held_out: lists of str.
        ngram: a `CharacterNGram` of the training sentences.
        alike: the held-out sentences of lengths that the model was trained on, with which lengths
            and distinct-2 are compared; None for all.
        split: from a string to its tokens, for distinct-2.
        seed: int, of the choice of held-out sentences, as many as samples, for distinct-2.
    """
    alike = alike or held_out
    size = min(len(samples), len(alike))
    rng = np.random.default_rng(seed)
    some = [alike[i] for i in rng.choice(len(alike), size, replace=False)]
    lengths, usual = [len(s) for s in samples], [len(s) for s in alike]
    scores = {
        "perplexity": ngram.perplexity(samples),
        "perplexity_held_out": ngram.perplexity(held_out),
        "distinct_2": metrics.distinct_n(samples[:size], 2, split),
        "distinct_2_held_out": metrics.distinct_n(some, 2, split),
        "copies": metrics.copied(samples, training),
        "different": len(set(samples)) / len(samples),
        "empty": samples.count("") / len(samples),
        "mean_length": float(np.mean(lengths)),
        "mean_length_held_out": float(np.mean(usual)),
        "length_deviation": float(np.std(lengths)),
        "length_deviation_held_out": float(np.std(usual)),
    }
    scores["perplexity_ratio"] = scores["perplexity"] / scores["perplexity_held_out"]
    distinct = scores["distinct_2_held_out"]
    scores["distinct_2_ratio"] = scores["distinct_2"] / distinct if distinct else None
    distances = metrics.distribution_distances(lengths, usual)
    return {**scores, **{f"length_{name}": value for name, value in distances.items()}}


def rate_bits(model, sentences):
    """How many bits the latents carry of a text.

    The divergence of the posterior from the prior: a constant for vMF, a mean over the sentences
    for Gaussian latents. For quantized latents log2 of the codebook, and the entropy of
    the codes, each layer by itself. An autoencoder without noise has no such number.

    Returns:
        dict of `total` (bits or None) and `layers` (a list, lowest first), and for the quantized
        kind `entropy`, a list of bits.
    """
    layers = [model.get_layer(f"latent_{i}") for i in model.latent_layers if model.latent]
    if model.latent is None:
        return {"total": None, "layers": None}
    if model.latent == "vmf":
        bits = [float(layer.kl(model.latent_shape[1])) / math.log(2) for layer in layers]
    elif model.latent == "gaussian":
        parts = keras.Model(model.inputs, [layer.input for layer in layers])
        token_ids = model.tokenizer.encode(list(sentences), max_length=model.max_length)
        inputs = {"token_ids": token_ids, "padding_mask": token_ids != model.pad_id}
        found = parts.predict(inputs, batch_size=BATCH, verbose=0)
        bits = [float(np.mean(gaussian.kl(*pair[:2]))) / math.log(2) for pair in found]
    else:
        bits = [math.log2(layer.codebook_size) for layer in layers]
    scores = {"total": sum(bits), "layers": bits}
    if model.latent == "quantized":
        latents, _ = read(model, sentences)
        scores["entropy"] = []
        for i, layer in enumerate(layers):
            counts = np.bincount(np.asarray(layer.codes(latents[:, i])))
            share = counts[counts > 0] / counts.sum()
            scores["entropy"].append(float(-(share * np.log2(share)).sum()))
    return scores


def latent_use(model, sentences, draw, seed=0):
    """What each latent layer is worth: the drop in character accuracy when it is drawn anew.

    Returns:
        list of floats, lowest latent layer first.
    """
    latents, lengths = read(model, sentences)
    drops = []
    whole = metrics.character_accuracy(sentences, write(model, latents, lengths))
    for layer in range(latents.shape[1]):
        texts = write(model, replace(latents, [layer], draw, seed), lengths)
        drops.append(whole - metrics.character_accuracy(sentences, texts))
    return drops


def replacement_scores(model, sentences, layers, draw, times=6):
    """Rewrites sentences with the latents of some layers drawn anew, and what is kept of them.

    Returns:
        dict of mean shares, see `patterns.kept`, and the texts: `times` for each sentence.
    """
    latents, lengths = read(model, sentences)
    changed = [replace(latents, layers, draw, seed) for seed in range(times)]
    texts = write(model, np.concatenate(changed), np.tile(lengths, times))
    scores = mean_kept(list(sentences) * times, texts)
    return scores, [texts[i :: len(sentences)] for i in range(len(sentences))]


def token_perplexity(model, sentences):
    """The perplexity of a token of sentences, given those before it and the latents' means."""
    token_ids = model.tokenizer.encode(list(sentences), max_length=model.max_length)
    more = -len(token_ids) % BATCH  # rows of padding count nothing
    token_ids = np.pad(token_ids, [(0, more), (0, 0)], constant_values=model.pad_id)
    return model.evaluate(token_ids, batch_size=BATCH, verbose=0, return_dict=True)["perplexity"]


def interpolation(model, sentences, latents, lengths, steps=9):
    """Two sentences of middle length, and between them what stands on the way, a list of str."""
    middle = np.argsort(np.abs(lengths - np.median(lengths)), kind="stable")
    a, b = middle[0], middle[min(1, len(middle) - 1)]
    path = model.interpolate(latents[a], latents[b], steps)
    between = np.linspace(lengths[a], lengths[b], steps).round()
    return [sentences[a], *write(model, path, between), sentences[b]]


def evaluate(
    model, training, held_out, *, sizes=None, split=list, num_samples=1000, num_edited=200, seed=0
):
    """All of it: the numbers, the texts behind them, the latents.

    Args:
        model: a compiled `UniVAE` with a tokenizer.
        training, held_out: lists of str, as the tokenizer decodes them.
        sizes: (least, most) characters of the held-out sentences to rebuild; None takes all
            that fit the model.
        split: from a string to its tokens, for distinct-2.
        num_samples: int, samples of the prior.
        num_edited: int, sentences whose latents are replaced.
        seed: int.

    Returns:
        scores, a dict for JSON; texts, a dict of lists of str; and the held-out sentences that
        were rebuilt, with their latents.
    """
    token_lengths = [len(ids) for ids in model.tokenizer.encode_ragged(held_out)]
    fitting = [s for s, n in zip(held_out, token_lengths) if n <= model.max_length] or held_out
    least, most = sizes or (1, max(map(len, fitting)))
    sentences = [s for s in fitting if least <= len(s) <= most] or fitting
    # A corpus may be sorted: what is shown, and what is but a part, is drawn from all of it.
    sentences = [sentences[i] for i in np.random.default_rng(seed).permutation(len(sentences))]
    latents, lengths = read(model, sentences)
    draw = prior(model, latents)
    texts = {"originals": sentences[:num_edited]}

    some = np.random.default_rng(seed).choice(lengths, num_samples)  # where lengths are chosen
    texts["samples"] = write(model, draw(num_samples, seed), some)
    began = time.perf_counter()
    texts["rebuilt"] = write(model, latents, lengths)
    seconds = time.perf_counter() - began
    written = sum(len(ids) - 1 for ids in model.tokenizer.encode_ragged(texts["rebuilt"]))
    scores = {
        **reconstruction_scores(sentences, texts["rebuilt"]),
        "perplexity": token_perplexity(model, fitting),
        "samples": sample_scores(
            texts["samples"], training, held_out, CharacterNGram(training), sentences, split, seed
        ),
        "rate_bits": rate_bits(model, sentences),
        "latent_use": latent_use(model, sentences[:500], draw),
        "replacements": {},
        "speed": {"generated_tokens_per_second": written / seconds},
    }

    layers = model.latent_shape[0]
    for name, replaced, times in (
        ("nothing", [], 1),
        ("lower half", list(range(layers // 2)), 6),
        ("top layer", [layers - 1], 6),
        ("everything", list(range(layers)), 1),
    ):
        scores["replacements"][name], texts[name] = replacement_scores(
            model, texts["originals"], replaced, draw, times
        )
    if model.length == "conditioned":
        shortest = min(4, model.max_length)
        choices = np.unique(np.linspace(shortest, model.max_length, 6).astype("int32"))
        columns = [write(model, latents[:6], np.full(len(latents[:6]), n)) for n in choices]
        texts["lengths"] = [int(n) - 2 for n in choices], list(zip(*columns))
    texts["path"] = interpolation(model, sentences, latents, lengths)
    return scores, texts, (sentences, latents)
