"""Answers questions about stories with a memory network of one, two and three hops, and an LSTM.

    pip install -e '.[examples]'
    python examples/memory_network.py --output memory-network

Stories of the kinds of bAbI's tasks 1, 2 and 3 are made (people walk about and carry things), and
1,000 questions about them train each model; 1,000 others test it. --data takes a folder of bAbI's
own files instead. As in the paper, a memory network is trained several times, and the one of the
lowest training loss is kept. The report has the share of wrong answers, and pictures of where each
hop looks.

Source: https://arxiv.org/abs/1503.08895 (Sukhbaatar et al. 2015), section 4.
"""

import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn.data import babi_file, generate_stories, story_arrays, story_vocabulary
from kerasattn.models import MemoryNetwork
from kerasattn.plotting import hops_grid
from kerasattn.training.memory import keep_memory
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    settle,
    write_whole,
)

DEFAULTS = dict(
    questions=1000,
    epochs=100,
    linear_epochs=20,
    restarts=1,
    hidden_dim=20,
    batch_size=32,
    learning_rate=0.3,
    max_sentences=50,
    reader_epochs=20,
    seed=0,
)
SMALL = dict(questions=40, epochs=2, linear_epochs=1, restarts=1, hidden_dim=8, reader_epochs=1)
SETTINGS = [
    ("questions", int, "of training, and as many of the test"),
    ("epochs", int, "of each memory network"),
    ("linear_epochs", int, "of those without softmax, of more than one hop"),
    ("restarts", int, "trainings of each memory network, of which one is kept"),
    ("hidden_dim", int, "numbers of a vector"),
    ("batch_size", int, "questions of a step"),
    ("learning_rate", float, "at the beginning; it halves three times"),
    ("max_sentences", int, "the last so many of a story"),
    ("reader_epochs", int, "of the LSTM"),
    ("seed", int, "of all draws"),
]


# === Data ===
def read(task, settings):
    """Questions of training and of the test."""
    if settings.data is None:
        made = generate_stories(task, 2 * settings.questions + 5, settings.seed)
        # Of other stories: a story's questions stand beside each other.
        return made[: settings.questions], made[-settings.questions :]
    found = []
    for split in ("train", "test"):
        paths = sorted(settings.data.glob(f"qa{task}_*_{split}.txt"))
        if not paths:
            raise ValueError(f"{settings.data} has no file qa{task}_*_{split}.txt.")
        found.append(babi_file(paths[0])[: settings.questions])
    return found


def as_one_text(inputs, most=200):
    """Stories as one row of words, the last so many, for a reader that has no memory."""
    rows = []
    for story in inputs["story_ids"]:
        words = story[story > 0][-most:]
        rows.append(np.pad(words, (0, most - len(words))))
    return {"token_ids": np.stack(rows), "query_ids": inputs["question_ids"]}


# === Training ===
class Schedule(keras.callbacks.Callback):
    """Puts the softmax in when the linear epochs are over; halves the learning rate three times."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings

    def on_epoch_begin(self, epoch, logs=None):
        settings = self.settings
        halves = 4 * epoch // settings.epochs
        self.model.optimizer.learning_rate.assign(settings.learning_rate * 0.5**halves)
        if epoch == settings.linear_epochs:
            self.model.set_linear(False)


def train_memory_network(vocabulary, hops, training, settings):
    """The one of several trainings whose loss on the training questions is lowest."""
    x, answers = training
    best, lowest = None, float("inf")
    for restart in range(settings.restarts):
        model = MemoryNetwork(
            len(vocabulary),
            hidden_dim=settings.hidden_dim,
            num_hops=hops,
            max_sentences=x["story_ids"].shape[1],
            linear=hops > 1 and settings.linear_epochs > 0,
            seed=settings.seed + restart,
        )
        # The paper's, which sums a batch of 32 where the mean is taken here: 0.01 and 40 there.
        optimizer = keras.optimizers.SGD(settings.learning_rate, global_clipnorm=40 / 32)
        model.compile(optimizer, jit_compile=False if settings.small else "auto")
        options = dict(batch_size=settings.batch_size, verbose=0)
        model.fit(x, answers, epochs=settings.epochs, callbacks=[Schedule(settings)], **options)
        loss = model.evaluate(x, answers, batch_size=1000, verbose=0)[0]
        if best is None or loss < lowest:  # the loss may be no number
            best, lowest = model, min(lowest, loss)
    return best


def train_reader(vocabulary, training, settings, dim=50):
    """An LSTM that reads the story, another that reads the question, and a word by both."""
    x, answers = training
    keras.utils.set_random_seed(settings.seed)
    names = ("token_ids", "query_ids")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    embedding = keras.layers.Embedding(len(vocabulary), dim, mask_zero=True)
    read = [keras.layers.LSTM(dim)(embedding(ids)) for ids in inputs.values()]
    logits = keras.layers.Dense(len(vocabulary))(keras.layers.Concatenate()(read))
    model = keras.Model(inputs, {"answer_logits": logits})
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    jit_compile = False if settings.small else "auto"
    model.compile(keras.optimizers.Adam(0.003), {"answer_logits": loss}, jit_compile=jit_compile)
    options = dict(batch_size=settings.batch_size, verbose=0)
    model.fit(as_one_text(x), answers, epochs=settings.reader_epochs, **options)
    return model


def error(model, inputs, answers):
    """The share of wrong answers."""
    logits = model.predict(inputs, batch_size=250, verbose=0)["answer_logits"]
    return float((logits.argmax(axis=-1) != answers).mean())


# === The report ===
def picture(model, inputs, questions, row):
    """Where the hops look of the sentences of one question; the last twelve of long stories."""
    told = questions[row].sentences[-inputs["story_ids"].shape[1] :]
    one = {name: ids[row : row + 1] for name, ids in inputs.items()}
    outputs = model.predict(one, verbose=0)
    weights = outputs["attention_weights"][0, :, : len(told)]
    sentences = [" ".join(words) for words in told]
    title = f"{' '.join(questions[row].question)}? {questions[row].answer}"
    return hops_grid(weights[:, -12:], sentences[-12:], title)


def table(report):
    """A table in Markdown: a row for each task, a column for each model."""
    names = list(next(iter(report.values()))["errors"])
    lines = [["task", "sentences", *names], ["---"] * (2 + len(names))]
    for task, row in report.items():
        shares = [f"{row['errors'][name]:.1%}" for name in names]
        lines.append([task, f"{row['sentences']:.0f}", *shares])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parse_arguments(arguments=None):
    parser = command_line(__doc__, "memory-network-output", SETTINGS, DEFAULTS)
    parser.add_argument("--tasks", nargs="+", type=int, choices=(1, 2, 3, 5, 6, 15))
    parser.add_argument("--hops", nargs="+", type=int)
    parser.add_argument("--data", type=Path, help="a folder of bAbI's files, such as en/")
    defaults = {**DEFAULTS, "tasks": [1, 2, 3], "hops": [1, 2, 3], "data": None}
    return settle(parser.parse_args(arguments), defaults, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(settings):
    keep_memory()
    least = {**dict.fromkeys(DEFAULTS, 1), "linear_epochs": 0, "seed": 0}
    least.pop("learning_rate")
    check_numbers(vars(settings), least, dict(learning_rate=0))
    if settings.linear_epochs >= settings.epochs:
        raise ValueError(
            f"--linear-epochs must be fewer than --epochs, got {settings.linear_epochs} and "
            f"{settings.epochs}: the softmax comes in behind them."
        )
    check_installed(["matplotlib"], "examples")
    check_writable(settings.output)
    report, figures = {}, {}
    for task in settings.tasks:
        parts = read(task, settings)
        vocabulary = story_vocabulary([*parts[0], *parts[1]])
        longest = max(len(q.sentences) for part in parts for q in part)
        words = max(len(s) for part in parts for q in part for s in (*q.sentences, q.question))
        sizes = min(settings.max_sentences, longest), words
        training, test = (story_arrays(part, vocabulary, *sizes) for part in parts)
        errors, began = {}, time.monotonic()
        reader = train_reader(vocabulary, training, settings)
        errors["LSTM"] = error(reader, as_one_text(test[0]), test[1])
        for hops in settings.hops:
            model = train_memory_network(vocabulary, hops, training, settings)
            name = f"{hops} hop{'s' if hops > 1 else ''}"
            errors[name] = error(model, *test)
            print(f"task {task}, {name}: {errors[name]:.1%} wrong", flush=True)
        row = min(2, len(parts[1]) - 1)
        figures[f"hops-of-task-{task}.png"] = picture(model, test[0], parts[1], row)
        sentences = float(np.mean([len(q.sentences) for q in parts[1]]))
        seconds = time.monotonic() - began
        report[str(task)] = {"sentences": sentences, "errors": errors, "seconds": seconds}
    print(f"\nWrong answers, of {len(test[1]):,}:\n\n{table(report)}\n", flush=True)
    for name, figure in figures.items():
        figure.savefig(settings.output / name)
    write_whole(settings.output / "report.json", report)
    shown = "\n\n".join(f"![{name}]({name})" for name in figures)
    page = f"# Memory networks\n\n{table(report)}\n\n{shown}\n"
    write_whole(settings.output / "report.md", page)
    print(f"See {settings.output / 'report.md'}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
