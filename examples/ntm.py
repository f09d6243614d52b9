"""Teaches a neural Turing machine to copy, beside an LSTM of as many parameters.

    pip install -e '.[examples]'
    python examples/ntm.py --output ntm

Both are shown sequences of 1 to 10 random vectors of bits and learn to say them again, and are then
tested on 10,000 others, and on sequences of 20 and of 40 vectors, longer than any in training. The
report has the wrong bits of a sequence, and pictures: the machine's inputs, what it says, writes
and reads, and where its heads are. --initial-memory compares what the memory holds at the
beginning, for the first steps of training, on sequences of up to 3. --task has the paper's two
other tasks.

Source: https://arxiv.org/abs/1410.5401 (Graves, Wayne, Danihelka 2014), section 4.
"""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn.data import associative_recall_task, copy_task, repeat_copy_task
from kerasattn.models import NeuralTuringMachine
from kerasattn.plotting import line_chart, steps_grid
from kerasattn.training.progress import Progress
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    settle,
    write_whole,
)
from kerasattn.training.schedules import WarmupCosine

TASKS = {
    "copy": (copy_task, (1, 10), (20, 40)),
    "repeat-copy": (repeat_copy_task, (1, 5), (8,)),
    "associative-recall": (associative_recall_task, (2, 6), (8, 12)),
}
STAGES = ((0.3, 0.25), (0.6, 0.25), (1.0, 0.5))  # shares of the longest size, and of the steps
MEMORIES = ("constant", "random", "learned")
DEFAULTS = dict(
    steps=3000,
    batch_size=16,
    learning_rate=3e-3,
    num_bits=8,
    units=64,
    num_slots=64,
    slot_dim=16,
    tests=10_000,
    memory_steps=400,
    seed=0,
)
SMALL = dict(
    steps=8, batch_size=8, num_bits=2, units=8, num_slots=8, slot_dim=4, tests=20, memory_steps=4
)
SETTINGS = [
    ("steps", int, "of training, each model"),
    ("batch_size", int, "sequences of a step"),
    ("learning_rate", float, "at its height"),
    ("num_bits", int, "of a vector"),
    ("units", int, "of the machine's controller"),
    ("num_slots", int, "of the memory"),
    ("slot_dim", int, "numbers in a slot"),
    ("tests", int, "sequences to test on, a tenth of them longer ones"),
    ("memory_steps", int, "of training for each --initial-memory, if there are several"),
    ("seed", int, "of all draws"),
]


# === Data ===
class Batches(keras.utils.PyDataset):
    """So many batches of new sequences."""

    def __init__(self, task, sizes, settings, steps, random):
        super().__init__()
        self.task, self.sizes, self.settings = task, sizes, settings
        self.steps, self.random = steps, random

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        settings = self.settings
        return self.task(
            settings.batch_size, self.sizes, num_bits=settings.num_bits, seed=self.random
        )


# === Models ===
def machine(dims, settings, initial_memory="constant"):
    return NeuralTuringMachine(
        *dims,
        units=settings.units,
        num_slots=settings.num_slots,
        slot_dim=settings.slot_dim,
        initial_memory=initial_memory,
        seed=settings.seed,
    )


def lstm(dims, parameters):
    """An LSTM of about so many parameters."""
    into, out = dims
    units = 1
    while 4 * (units + 1) * (into + units + 2) + (units + 2) * out <= parameters:
        units += 1
    inputs = keras.Input((None, into), name="sequences")
    hidden = keras.layers.LSTM(units, return_sequences=True)(inputs)
    return keras.Model(inputs, {"bit_logits": keras.layers.Dense(out, name="bit_logits")(hidden)})


class Losses(keras.callbacks.Callback):
    """The mean loss of every so many steps."""

    def __init__(self, every):
        super().__init__()
        self.every, self.steps, self.curve = every, 0, []

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if self.steps % self.every == 0:
            self.curve.append((self.steps, float(logs["loss"])))  # the mean since it was reset
            self.model.reset_metrics()


def train(model, task, sizes, steps, settings):
    """Trains for so many steps, on shorter sequences first: the curve of the loss, seconds."""
    optimizer = keras.optimizers.Adam(settings.learning_rate, global_clipnorm=1.0)
    if isinstance(model, NeuralTuringMachine):
        model.compile(optimizer, jit_compile=False if settings.small else "auto")
    else:
        # The same loss, but for a factor that Adam does not see: the mean is over padding too.
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        model.compile(optimizer, loss={"bit_logits": loss}, jit_compile=False)
    random, began = np.random.default_rng(settings.seed + 1), time.monotonic()
    losses = Losses(max(1, steps // 60))
    schedule = WarmupCosine(settings.learning_rate, steps, min(100, steps // 10))
    for share, part in STAGES[-1:] if settings.small else STAGES:
        most = max(sizes[0], round(share * sizes[1]))
        count = max(1, round(part * steps))
        batches = Batches(task, (sizes[0], most), settings, count, random)
        callbacks = [schedule, losses, Progress(steps, done=losses.steps)]
        model.fit(batches, verbose=0, shuffle=False, callbacks=callbacks)
    return losses.curve, time.monotonic() - began


def wrong_bits(model, task, sizes, settings, number):
    """Bits that are wrong, on average of a sequence."""
    wrong = 0
    random = np.random.default_rng(settings.seed + 2)
    for start in range(0, number, 500):
        count = min(500, number - start)
        x, bits, counts = task(count, sizes, num_bits=settings.num_bits, seed=random)
        logits = model.predict_on_batch(x)["bit_logits"]
        wrong += int((((logits > 0) != bits) * counts[..., None]).sum())
    return wrong / number


# === Pictures ===
def trace_picture(model, task, size, settings):
    """What the machine does with one sequence, step by step."""
    x, bits, counts = task(1, (size, size), num_bits=settings.num_bits, seed=settings.seed + 3)
    trace = model.trace(x)
    return steps_grid(
        {
            "inputs": x[0].T,
            "targets": (bits * counts[..., None])[0].T,
            "outputs": (trace["bits"] * counts[..., None])[0].T,
            "what is added to the memory": trace["adds"][0, :, 0].T,
            "what is read": trace["reads"][0, :, 0].T,
            "where the head writes": trace["write_weights"][0, :, 0].T,
            "where the head reads": trace["read_weights"][0, :, 0].T,
            "the memory's size": np.linalg.norm(trace["memory"][0], axis=-1).T,
        }
    )


# === The report ===
def parse_arguments(arguments=None):
    parser = command_line(__doc__, "ntm-output", SETTINGS, DEFAULTS)
    add = parser.add_argument
    add("--task", choices=TASKS, default="copy", help="what to learn (default copy)")
    add("--initial-memory", nargs="+", choices=MEMORIES, default=list(MEMORIES),
        help="what the memory holds at the beginning (default all three, the first for the report)"
        )  # fmt: skip
    return settle(parser.parse_args(arguments), DEFAULTS, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def table(models):
    """A table in Markdown of what was measured."""
    columns = list(next(iter(models.values()))["wrong bits"])
    lines = [["model", "parameters", "seconds", *columns], ["---"] * (3 + len(columns))]
    for name, row in models.items():
        wrong = [f"{row['wrong bits'][column]:.4f}" for column in columns]
        lines.append([name, f"{row['parameters']:,}", f"{row['seconds']:.0f}", *wrong])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def run(settings):
    ones = ("steps", "batch_size", "num_bits", "units", "num_slots", "slot_dim", "memory_steps")
    least = {**dict.fromkeys(ones, 1), "tests": 10, "seed": 0}
    check_numbers(vars(settings), least, dict(learning_rate=0))
    check_installed(["matplotlib"], "examples")
    check_writable(settings.output)
    keras.utils.set_random_seed(settings.seed)
    task, sizes, longer = TASKS[settings.task]
    x, bits, _ = task(1, sizes, num_bits=settings.num_bits, seed=0)
    dims = x.shape[-1], bits.shape[-1]

    ntm = machine(dims, settings, settings.initial_memory[0])
    models, report, curves = {"NTM": ntm, "LSTM": lstm(dims, ntm.count_params())}, {}, {}
    for name, model in models.items():
        print(f"== {name}, {model.count_params():,} parameters", flush=True)
        curve, seconds = train(model, task, sizes, settings.steps, settings)
        wrong = {
            f"{sizes[0]} to {sizes[1]}": wrong_bits(model, task, sizes, settings, settings.tests)
        }
        for size in longer:
            number = max(1, settings.tests // 10)
            wrong[str(size)] = wrong_bits(model, task, (size, size), settings, number)
        curves[name] = tuple(zip(*curve))
        report[name] = {
            "parameters": model.count_params(),
            "seconds": seconds,
            "wrong bits": wrong,
            "curve": curve,
        }
    print(f"\nWrong bits of a sequence, by its length:\n\n{table(report)}\n", flush=True)

    memories, shortest = {}, (sizes[0], max(sizes[0], round(0.3 * sizes[1])))
    for kind in settings.initial_memory if len(settings.initial_memory) > 1 else ():
        model = machine(dims, settings, kind)
        curve, _ = train(model, task, shortest, settings.memory_steps, settings)
        memories[kind] = tuple(zip(*curve))
        print(f"initial memory {kind}: a loss of {curve[-1][1]:.4f} nats a bit", flush=True)

    files = {"curves.png": line_chart(curves, "step", "nats a bit")}
    files |= {
        f"trace-{size}.png": trace_picture(ntm, task, size, settings)
        for size in (sizes[1], longer[0])
    }
    if memories:
        files["initial-memory.png"] = line_chart(memories, "step", "nats a bit")
    for name, figure in files.items():
        figure.savefig(settings.output / name)
    ntm.save(settings.output / "ntm.keras")
    chosen = {name: value for name, value in vars(settings).items() if name != "output"}
    whole = {"settings": chosen, "models": report, "initial memory": memories}
    write_whole(settings.output / "report.json", whole)
    shown = "\n\n".join(f"![{name}]({name})" for name in files)
    write_whole(settings.output / "report.md", f"# Copying\n\n{table(report)}\n\n{shown}\n")
    print(f"See {settings.output / 'report.md'}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
