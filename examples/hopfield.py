"""Measures what Hopfield networks remember, the binary one and the modern one.

    pip install -e '.[examples]'
    python examples/hopfield.py --output hopfield

The curve: random patterns are stored in 200 units, and recalled from copies of which a tenth is
wrong, at several loads (patterns for each unit). Theory of large networks says that they are found
up to 0.138. Beside it pictures recalled from noise and from their upper half, the energies of
asynchronous and synchronous updates, and the modern network's patterns, many more than dimensions,
at several beta.

Source: https://doi.org/10.1073/pnas.79.8.2554 (Hopfield 1982), https://arxiv.org/abs/2008.02217
(Ramsauer et al. 2020).
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import layers
from kerasattn.models import HopfieldNetwork
from kerasattn.plotting import line_chart, picture_grid
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    settle,
    write_whole,
)

CAPACITY = 0.138  # Amit, Gutfreund, Sompolinsky 1985
LOADS = (0.05, 0.08, 0.11, 0.125, 0.14, 0.155, 0.17, 0.2)
BETAS = (0.1, 0.5, 1.0, 4.0)
NUMBERS = (100, 1_000, 10_000, 100_000)
DEFAULTS = dict(units=200, trials=10, dim=32, seed=0)
SMALL = dict(units=60, trials=2, dim=24)
SETTINGS = [
    ("units", int, "units of the binary network"),
    ("trials", int, "networks for each load"),
    ("dim", int, "dimensions of the modern network"),
    ("seed", int, "of all draws"),
]
SIDE = 14  # of the pictures, which are of 196 units


# === The binary network ===
def flip(patterns, share, random):
    """Patterns of which so large a share of units, drawn for each, has the wrong sign."""
    ranks = random.random(patterns.shape).argsort(axis=1)
    return np.where(ranks < round(share * patterns.shape[1]), -patterns, patterns)


def curve(settings, random):
    """A row for each load: the mean overlap, and the share of patterns above 0.95."""
    network, rows = HopfieldNetwork(settings.units, num_sweeps=50), []
    for load in LOADS:
        overlaps, number = [], max(1, round(load * settings.units))
        for _ in range(settings.trials):
            patterns = random.choice([-1.0, 1.0], (number, settings.units)).astype("float32")
            network.forget()
            network.store(patterns)
            noisy = flip(patterns, 0.1, random)
            found = network.recall(noisy, order="random", seed=int(random.integers(2**31)))
            overlaps.extend((found * patterns).mean(axis=1))
        overlaps = np.array(overlaps)
        rows.append(
            {
                "load": load,
                "patterns": number,
                "mean overlap": float(overlaps.mean()),
                "recalled": float((overlaps > 0.95).mean()),
            }
        )
    return rows


def shapes():
    """Pictures of -1 and 1: a cross, a ring, stripes, a half, a frame."""
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    radius = np.hypot(x, y)
    drawn = [
        (abs(x) < 1.6) | (abs(y) < 1.6),
        abs(radius - 4.5) < 1.3,
        (y + SIDE) // 2 % 2 == 0,
        x + y > 0,
        np.maximum(abs(x), abs(y)) > 4,
    ]
    return np.where(np.stack(drawn), 1.0, -1.0).reshape(len(drawn), -1).astype("float32")


def pictures(random):
    """Shapes recalled from noise and from half of them, and how alike they are to the stored."""
    stored = shapes()
    network = HopfieldNetwork(SIDE * SIDE)
    network.store(stored)
    noisy = flip(stored, 0.25, random)
    upper = np.where(np.arange(SIDE * SIDE) < SIDE * SIDE // 2, stored, 0)
    of_noise, of_half = (network.recall(x, order="random", seed=0) for x in (noisy, upper))
    rows = np.stack([stored, noisy, of_noise, upper, of_half])
    grid = (rows.reshape(len(rows), -1, SIDE, SIDE) + 1) / 2
    labels = ["stored", "a quarter wrong", "recalled", "upper half", "recalled"]
    overlaps = {
        "from noise": (of_noise * stored).mean(axis=1).tolist(),
        "from the upper half": (of_half * stored).mean(axis=1).tolist(),
    }
    return picture_grid(grid, labels), overlaps


def energies(settings, random):
    """Energies after each sweep: one unit after another, and all at once, from the same states."""
    units = settings.units
    patterns = random.choice([-1.0, 1.0], (round(0.2 * units), units)).astype("float32")
    states = random.choice([-1.0, 1.0], (20, units)).astype("float32")
    found = {}
    for update in ("asynchronous", "synchronous"):
        network = HopfieldNetwork(units, update, num_sweeps=12)
        network.store(patterns)
        _, of_sweeps = network.recall(states, return_energies=True)
        rest = np.repeat(of_sweeps[-1:], 13 - len(of_sweeps), axis=0)  # nothing changes any more
        found[update] = np.concatenate([of_sweeps, rest])
    return found


# === The modern network ===
def modern(settings, random):
    """A row for each number of patterns: the share that is found again, at each beta."""
    rows = []
    for number in NUMBERS[:2] if settings.small else NUMBERS:
        patterns = random.choice([-1.0, 1.0], (1, number, settings.dim)).astype("float32")
        asked = patterns[:, : min(number, 500)]
        noisy = flip(asked[0], 0.1, random)[None]
        row = {"patterns": number}
        for beta in BETAS:
            found = layers.ModernHopfield(beta=beta, num_steps=3)(noisy, patterns)
            signs = np.sign(keras.ops.convert_to_numpy(found))
            row[f"beta {beta:g}"] = float((signs == asked).all(axis=-1).mean())
        rows.append(row)
    return rows


# === The report ===
def table(rows):
    """A table in Markdown of rows that are dicts of the same keys."""
    show = lambda x: f"{x:,}" if isinstance(x, int) else f"{x:.3f}"
    lines = [list(rows[0]), ["---"] * len(rows[0])]
    lines += [[show(value) for value in row.values()] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parse_arguments(arguments=None):
    parser = command_line(__doc__, "hopfield-output", SETTINGS, DEFAULTS)
    return settle(parser.parse_args(arguments), DEFAULTS, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(settings):
    check_numbers(vars(settings), dict(units=20, trials=1, dim=8, seed=0), {})
    check_installed(["matplotlib"], "examples")
    check_writable(settings.output)
    random = np.random.default_rng(settings.seed)
    loads = curve(settings, random)
    print(f"{settings.units} units, a tenth wrong:\n\n{table(loads)}\n", flush=True)
    many = modern(settings, random)
    print(f"The modern network of {settings.dim} dimensions, found again:\n\n{table(many)}\n")
    drawn, overlaps = pictures(random)
    falling = energies(settings, random)
    share = {name: [row[name] for row in loads] for name in ("recalled", "mean overlap")}
    x = [row["load"] for row in loads]
    capacity = line_chart(
        {name: (x, y) for name, y in share.items()},
        "load, patterns for each unit",
        "share",
        marks={f"{CAPACITY}": CAPACITY},
    )
    means = {name: (range(13), e.mean(axis=1)) for name, e in falling.items()}
    chart = line_chart(means, "sweeps", "mean energy")
    files = {"pictures.png": drawn, "capacity.png": capacity, "energies.png": chart}
    for name, figure in files.items():
        figure.savefig(settings.output / name)
    rises = {name: float(np.diff(e, axis=0).max()) for name, e in falling.items()}
    report = {"curve": loads, "modern": many, "overlaps": overlaps, "largest rises": rises}
    write_whole(settings.output / "report.json", report)
    shown = "\n\n".join(f"![{name}]({name})" for name in files)
    page = f"# Hopfield networks\n\n{table(loads)}\n\n{table(many)}\n\n{shown}\n"
    write_whole(settings.output / "report.md", page)
    print(f"See {settings.output / 'report.md'}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
