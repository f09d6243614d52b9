"""Measures how gradients vanish and explode in recurrent networks before they are trained.

    pip install -e '.[examples]'
    python examples/recurrent_gradients.py --output recurrent-gradients

For plain RNNs, LSTMs and GRUs it tells the norm of d h_t / d h_k, what is left in a hidden vector
of an earlier one, over the steps between: a product of as many matrices as there are steps. In a
plain RNN with orthogonal matrices times a gain it goes as the gain to the power of the steps, where
tanh is not saturated; in an LSTM as its forget gates, whose bias decides how long something lasts.

Source: Bengio, Simard, Frasconi, 1994, Learning long-term dependencies with gradient descent is
difficult; https://arxiv.org/abs/1211.5063 (Pascanu, Mikolov, Bengio 2013), section 2.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn.plotting.figures import new_figure
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    settle,
    write_whole,
)

DEFAULTS = dict(units=32, steps=64, draws=8, seed=0)
SMALL = dict(units=4, steps=8, draws=2)
SETTINGS = (
    ("units", int, "of each network"),
    ("steps", int, "the longest way back"),
    ("draws", int, "networks and texts of each kind, of which the median is told"),
    ("seed", int, "of all draws"),
)
STEP = 1e-6  # of the differences that the derivatives are taken by, in float64
INPUT = 0.1  # standard deviation of what is fed: tanh is nearly linear


# === Networks ===
def plain(units, gain, seed):
    recurrent = keras.initializers.Orthogonal(gain=gain, seed=seed)
    return keras.layers.SimpleRNNCell(units, recurrent_initializer=recurrent, dtype="float64")


def lstm(units, forget_bias, seed):
    recurrent = keras.initializers.Orthogonal(seed=seed)
    cell = keras.layers.LSTMCell(units, recurrent_initializer=recurrent, dtype="float64")
    cell.build((None, units))
    part = np.arange(4 * units) // units
    cell.bias.assign(np.where(part == 1, forget_bias, 0.0))
    return cell


def gru(units, keep_bias, seed):
    recurrent = keras.initializers.Orthogonal(seed=seed)
    cell = keras.layers.GRUCell(
        units, recurrent_initializer=recurrent, reset_after=False, dtype="float64"
    )
    cell.build((None, units))
    part = np.arange(3 * units) // units  # Keras' z is the share of the old state
    cell.bias.assign(np.where(part == 0, keep_bias, 0.0))
    return cell


NETWORKS = {
    "RNN, gain 0.7": lambda units, seed: plain(units, 0.7, seed),
    "RNN, gain 1": lambda units, seed: plain(units, 1.0, seed),
    "RNN, gain 2": lambda units, seed: plain(units, 2.0, seed),
    "GRU": lambda units, seed: gru(units, 0.0, seed),
    "GRU, bias 3": lambda units, seed: gru(units, 3.0, seed),
    "LSTM, forget bias 1": lambda units, seed: lstm(units, 1.0, seed),
    "LSTM, forget bias 3": lambda units, seed: lstm(units, 3.0, seed),
}


# === Derivatives ===
def step(cell, x, state, parts):
    """The next state (rows, parts * units) of each row of states, fed with one input (units,)."""
    x = np.repeat(x[None], len(state), axis=0)
    _, states = cell(x, np.split(state, parts, axis=1))
    states = [keras.ops.convert_to_numpy(one) for one in keras.tree.flatten(states)]
    return np.concatenate(states, axis=1)


def norms(cell, units, steps, random):
    """The spectral norms of d h_t / d h_k for t - k = 1 ... steps, from the same k."""
    parts = 2 if isinstance(cell, keras.layers.LSTMCell) else 1
    inputs = random.normal(scale=INPUT, size=(steps + 10, units))
    state = np.zeros((1, parts * units))
    for x in inputs[:10]:  # away from the zeros that it starts with
        state = step(cell, x, state, parts)
    product, found = np.eye(parts * units), []
    for x in inputs[10:]:
        moved = STEP * np.eye(parts * units)
        after = step(cell, x, np.concatenate([state + moved, state - moved]), parts)
        ahead, back = np.split(after, 2)
        jacobian = (ahead - back).T / (2 * STEP)  # (new, old)
        product = jacobian @ product
        found.append(np.linalg.norm(product[:units, :units], 2))  # of the hidden vector alone
        state = step(cell, x, state, parts)
    return found


# === The report ===
def picture(curves):
    figure = new_figure(7.0, 4.5)
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(range(1, len(curve) + 1), np.maximum(curve, 1e-16), label=name)
    axes.set(xlabel="steps between, t - k", ylabel="norm of d h_t / d h_k", yscale="log")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def to_markdown(curves):
    length = len(next(iter(curves.values())))
    shown = sorted({n for n in (1, 4, 16, 32, 64) if n <= length} | {length})
    lines = [["t - k", *shown], ["---"] * (len(shown) + 1)]
    lines += [[name, *(f"{curve[n - 1]:.1e}" for n in shown)] for name, curve in curves.items()]
    table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    return f"# Gradients of recurrent networks\n\nNorms of d h_t / d h_k:\n\n{table}\n"


def main(arguments=None):
    with one_line_errors():
        parser = command_line(__doc__, "recurrent-gradients", SETTINGS, DEFAULTS)
        return run(settle(parser.parse_args(arguments), DEFAULTS, SMALL))


def run(options):
    check_numbers(vars(options), dict(units=1, steps=1, draws=1, seed=0), {})
    check_installed(["matplotlib"], "examples")
    check_writable(options.output)
    random = np.random.default_rng(options.seed)
    curves = {}
    for name, make in NETWORKS.items():
        keras.utils.set_random_seed(options.seed)
        drawn = [
            norms(make(options.units, options.seed + i), options.units, options.steps, random)
            for i in range(options.draws)
        ]
        curves[name] = np.median(drawn, axis=0).tolist()
    picture(curves).savefig(options.output / "gradients.png")
    write_whole(options.output / "report.json", curves)
    markdown = to_markdown(curves)
    write_whole(options.output / "report.md", markdown)
    print(markdown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
