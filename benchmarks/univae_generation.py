"""UniVAE in two passes, with a cache, against UniVAE as one sequence, as its reference runs it.

    python benchmarks/univae_generation.py [--small]

Both forms share their weights, are compiled by XLA and compute the same. The last line is JSON,
how many times as fast ours is:

    generate              tokens per second of `UniVAE.generate`, greedy; against the whole of both
                          halves, with the logits of every position, anew for each token
    generate_last_logits  the same; against the same, but with the logits of one position only
    train_step            one step of training; against logits and loss over both halves
    train_step_sliced     the same; against a form that drops the read half before its logits
"""

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import ops

from kerasattn.models import UniVAE
from kerasattn.testing import OneSequenceUniVAE
from kerasattn.training.losses import token_cross_entropy, weighted_mean

SETTINGS = dict(
    num_layers=6,
    num_heads=4,
    hidden_dim=256,
    intermediate_dim=1024,
    num_latent_layers=4,
    latent_dim=16,
    max_length=32,
    vocabulary_size=4000,  # for generation: the characters of a corpus of sentences
    training_vocabulary_size=21128,  # that of the Chinese checkpoints
    batch_size=64,
    rounds=5,
)
SMALL = dict(
    num_layers=2,
    num_heads=2,
    hidden_dim=32,
    intermediate_dim=64,
    num_latent_layers=1,
    latent_dim=8,
    max_length=4,
    vocabulary_size=100,
    training_vocabulary_size=200,
    batch_size=4,
    rounds=1,
)


class OneSequenceTrainer(keras.Model):
    """UniVAE as one sequence, to be trained: the loss is over the real tokens of the second half.

    Args:
        univae: a `UniVAE`, whose layers it shares.
        sliced: bool, whether to drop the first half before the logits.
    """

    def __init__(self, univae, sliced):
        both = OneSequenceUniVAE(univae)
        token_ids = keras.Input((univae.max_length,), dtype="int32", name="token_ids")
        hidden, _ = both.hidden(token_ids)  # (batch, 2 × length, hidden)
        if sliced:
            hidden = hidden[:, univae.max_length :]
        super().__init__(token_ids, both.logits(hidden))
        self.pad_id, self.sliced = univae.pad_id, sliced

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        target = x if self.sliced else ops.concatenate([x, x], axis=1)
        weights = ops.cast(target != self.pad_id, "float32")[:, 1:]
        if not self.sliced:  # the first half is no target, nor is the [CLS] after it
            second = np.arange(1, target.shape[1]) > x.shape[1]
            weights = weights * second.astype("float32")
        losses = token_cross_entropy(target[:, 1:], y_pred[:, :-1])
        return weighted_mean(losses, weights)


def make_model(settings, vocabulary_size):
    names = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim", "max_length")
    options = {k: settings[k] for k in (*names, "num_latent_layers", "latent_dim")}
    return UniVAE(vocabulary_size, **options, seed=0)


def seconds_of(function):
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def interleaved(functions, rounds):
    """Median seconds of each function; the first call compiles and does not count."""
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(seconds_of(function))
    return {name: statistics.median(values) for name, values in times.items()}


def measure_generation(settings):
    """Seconds for a batch of sentences of full length: no [SEP] comes, so that none ends early."""
    model = make_model(settings, settings["vocabulary_size"])
    never = np.zeros(settings["vocabulary_size"])
    never[model.sep_id] = -1e4
    model.get_layer("head").bias.assign(never)
    both = OneSequenceUniVAE(model)
    latents = model.sample(settings["batch_size"], seed=0)
    same = np.mean(model.generate(latents) == both.generate(latents))
    print(f"Both forms write the same: {same:.1%} of the tokens")
    return interleaved(
        {
            "two passes, cached": lambda: model.generate(latents),
            "one sequence": lambda: both.generate(latents, whole_logits=True),
            "one sequence, logits of one position": lambda: both.generate(latents),
        },
        settings["rounds"],
    )


def measure_training(settings):
    """Seconds of one step on a batch of full length."""
    vocabulary_size = settings["training_vocabulary_size"]
    shape = (settings["batch_size"], settings["max_length"])
    token_ids = np.random.default_rng(0).integers(5, vocabulary_size, shape).astype("int32")
    token_ids[:, 0], token_ids[:, -1] = 2, 3
    functions = {}
    for name, form in (
        ("two passes", lambda univae: univae),
        ("one sequence", lambda univae: OneSequenceTrainer(univae, sliced=False)),
        ("one sequence, sliced", lambda univae: OneSequenceTrainer(univae, sliced=True)),
    ):
        model = form(make_model(settings, vocabulary_size))
        model.compile(keras.optimizers.Adam(1e-4), jit_compile=True)
        if not model.optimizer.built:  # else the first step, which makes these, is traced twice
            model.optimizer.build(model.trainable_variables)
        functions[name] = lambda model=model: model.train_on_batch(token_ids)
    return interleaved(functions, settings["rounds"])


def show(title, times, tokens):
    print(f"\n{title:40}{'seconds':>10}{'tokens/s':>12}{'ours is':>10}")
    ours = next(iter(times.values()))
    for name, seconds in times.items():
        print(f"{name:40}{seconds:10.4f}{tokens / seconds:12,.0f}{seconds / ours:9.2f}x")
    return [round(seconds / ours, 3) for seconds in list(times.values())[1:]]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--rounds", type=int, help="measurements of each form")
    options = parser.parse_args(arguments)
    settings = {**SETTINGS, **(SMALL if options.small else {})}
    settings["rounds"] = options.rounds or settings["rounds"]
    print(", ".join(f"{name} {value}" for name, value in settings.items()))

    steps = settings["batch_size"] * (settings["max_length"] - 1)
    generate, last_logits = show("generation, greedy", measure_generation(settings), steps)
    step, sliced = show("training step", measure_training(settings), steps)
    ratios = {
        "generate": generate,
        "generate_last_logits": last_logits,
        "train_step": step,
        "train_step_sliced": sliced,
    }
    print("\n" + json.dumps(ratios))
    return ratios


if __name__ == "__main__":
    main()
