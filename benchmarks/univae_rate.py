"""How much a UniVAE's code carries, against what samples of the prior are worth.

    python benchmarks/univae_rate.py [--steps 600] [--output univae-rate] [--small]

Trains the example's UniVAE on short sentences, shortly, at several rates: with another kappa,
another latent_dim, another number of latent layers. The more bits a code carries, the more
sentences are rebuilt, and the more of the prior is left without a sentence: samples get worse.
Writes univae_rate.png and univae_rate.json into the output folder; the last line is the JSON.
"""

import argparse
import importlib.util
import json
import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from matplotlib import ticker

from kerasattn.plotting.figures import new_figure
from kerasattn.training import evaluation
from kerasattn.training.checkpoint import ResumableCheckpoint
from kerasattn.training.ngram import CharacterNGram

SHORT = dict(max_length=10, one_length=True)  # sentences of 4 to 8 characters: learned in minutes
# One setting at a time is moved away from the example's defaults.
SERIES = {
    "kappa": (16.0, 64.0, 512.0),
    "latent_dim": (8, 16),
    "num_latent_layers": (1, 2),
}
SMALL = dict(kappa=(16.0,), latent_dim=(), num_latent_layers=())


def example():
    """The module examples/univae.py: its data, model and training are used as they are."""
    path = Path(__file__).parent.parent / "examples" / "univae.py"
    spec = importlib.util.spec_from_file_location("univae_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(univae, settings, sentences, ngram):
    """Trains at one setting: bits of the code, share of sentences rebuilt, samples' perplexity."""
    training, held_out = sentences
    keras.utils.set_random_seed(settings["seed"])
    tokenizer = univae.make_tokenizer(settings, training)
    token_ids = [
        ids
        for ids in tokenizer.encode_ragged(training)
        if settings["min_length"] <= len(ids) <= settings["max_length"]
    ]
    model = univae.build_model(settings, tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ResumableCheckpoint(Path(folder, "training.npz"), every=10**9)
        univae.train(model, token_ids, settings, checkpoint, keep_settings=lambda: None)
        if checkpoint.interrupted:
            raise KeyboardInterrupt
    rebuild = [s for s in held_out if 4 <= len(s) <= settings["max_length"] - 2]
    latents, lengths = evaluation.read(model, rebuild)
    texts = evaluation.write(model, latents, lengths)
    samples = evaluation.write(
        model,
        model.sample(settings["num_samples"], settings["seed"]),
        np.resize(lengths, settings["num_samples"]),
    )
    return {
        **{name: settings[name] for name in SERIES},
        "bits": evaluation.rate_bits(model, rebuild)["total"],
        **evaluation.reconstruction_scores(rebuild, texts),
        "perplexity_ratio": ngram.perplexity(samples) / ngram.perplexity(rebuild),
    }


def draw(points, steps):
    """Sentences rebuilt against samples' perplexity, and both against the rate."""
    figure = new_figure(13, 4.2)
    both, rebuilt, sampled = figure.subplots(1, 3)
    for name in SERIES:
        row = sorted((p for p in points if name in p["varied"]), key=lambda p: p[name])
        bits, exact, ratio = (
            [p[k] for p in row] for k in ("bits", "exact_match", "perplexity_ratio")
        )
        both.plot(ratio, exact, "o-", label=name)
        for point in row:
            if len(point["varied"]) > 1:
                continue  # of all lines: its settings are the example's
            text = f" {point[name]:g}"
            both.annotate(text, (point["perplexity_ratio"], point["exact_match"]), fontsize=7)
        rebuilt.plot(bits, exact, "o-", label=name)
        sampled.plot(bits, ratio, "o-", label=name)
    perplexity = "samples' perplexity, times held-out text's"
    both.set(xlabel=perplexity, ylabel="rebuilt exactly", title=f"{steps} steps", xscale="log")
    rebuilt.set(xlabel="bits of the code", ylabel="rebuilt exactly")
    sampled.set(xlabel="bits of the code", ylabel=perplexity, yscale="log")
    for axis in (both.xaxis, sampled.yaxis):
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(ticker.NullFormatter())
    for axes in (both, rebuilt, sampled):
        axes.grid(alpha=0.3)
    both.legend()
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", default="univae-rate", help="folder to write into")
    parser.add_argument("--steps", type=int, help="training steps at each rate (default 600)")
    parser.add_argument("--small", action="store_true", help="tiny models, to see that it runs")
    options = parser.parse_args(arguments)
    univae = example()
    output = Path(options.output)
    with univae.one_line_errors():
        univae.check_writable(output)
    base = {**univae.DEFAULTS, **SHORT, "start_from": None, "steps": 600, "num_samples": 1000}
    base |= univae.SMALL if options.small else {}
    base["steps"] = options.steps or base["steps"]
    base["warmup_steps"] = min(base["warmup_steps"], base["steps"] // 4)
    base["latent"] = "vmf"
    sentences = univae.read_corpus(base)
    ngram = CharacterNGram(sentences[0])

    variants = [
        (name, value)
        for name, values in (SMALL if options.small else SERIES).items()
        for value in values
    ]
    points = [{**measure(univae, base, sentences, ngram), "varied": list(SERIES)}]
    for name, value in variants:
        if value == base[name] or (name == "num_latent_layers" and value >= base["num_layers"]):
            continue
        points.append(
            {**measure(univae, {**base, name: value}, sentences, ngram), "varied": [name]}
        )

    columns = (*SERIES, "bits", "exact_match", "character_accuracy", "perplexity_ratio")
    print("\n" + "".join(f"{column:>19}" for column in columns))
    for point in sorted(points, key=lambda p: p["bits"]):
        print("".join(f"{point[column]:19.3f}" for column in columns))
    draw(points, base["steps"]).savefig(output / "univae_rate.png")
    result = {"steps": base["steps"], "points": points}
    (output / "univae_rate.json").write_text(json.dumps(result, indent=2))
    print("\n" + json.dumps(result))
    return result


if __name__ == "__main__":
    main()
