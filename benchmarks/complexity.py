"""Time and memory of one layer against the length: attention, recurrence, convolution, a window.

    python benchmarks/complexity.py [--small] [--output DIR]

One layer of each kind, of the same width d, reads a sequence of 64 to 4,096 vectors, forward and
backward, one sequence at a time, compiled by XLA: self-attention (layers.MultiHeadAttention), a GRU
(keras), a convolution over k = 3 neighbours (keras), and self-attention in a window of r
(layers.WindowAttention, in blocks). The kinds run by turns; medians count. Memory is how much
more than before the process holds at its highest during a step (Linux; the median of three).

The slopes are those of log time against log length over the longest four lengths, where the part
that grows fastest shows. The plot is complexity.png in --output. The last line is JSON: the slopes.
"""

import argparse
import ctypes
import json
import os
import re
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import layers
from kerasattn.ops.compiled import compiled
from kerasattn.training.report import table

SETTINGS = dict(lengths=(64, 128, 256, 512, 1024, 2048, 4096), dim=64, rounds=7)
SMALL = dict(lengths=(64, 128), dim=16, rounds=1)
KERNEL, REACH, HEADS = 3, 32, 4
KINDS = {  # the textbook's operations, steps one after the other, longest path, growth with n
    "self-attention": ("n² d", "1", "1", 2),
    "recurrent": ("n d²", "n", "n", 1),
    "convolutional": ("k n d²", "1", "log_k n", 1),
    "self-attention in a window": ("r n d", "1", "n / r", 1),
}
SOURCE = "https://arxiv.org/abs/1706.03762, table 1"


def make(kind, dim):
    """One layer."""
    if kind == "self-attention":
        return layers.MultiHeadAttention(HEADS)
    if kind == "recurrent":
        return keras.layers.GRU(dim, return_sequences=True)
    if kind == "convolutional":
        return keras.layers.Conv1D(dim, KERNEL, padding="same")
    return layers.WindowAttention(HEADS, before=REACH // 2, after=REACH // 2)


def make_step(layer, x):
    """A function that runs the layer forward and backward."""
    import tensorflow as tf

    layer.build(x.shape)
    x = tf.constant(x)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x, training=True) ** 2)
        return tape.gradient(loss, [x, *layer.trainable_variables])

    run = compiled(step)
    return lambda: [np.asarray(part).shape for part in run(x)]


def peak_bytes(run):
    """How much memory more than before a step holds at its highest, or None where Linux is not."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what was freed before does not count
        Path("/proc/self/clear_refs").write_text("5")  # the highest is that of from now on
        before = _memory("VmRSS")
        run()
        return 1024 * max(0, _memory("VmHWM") - before)
    except OSError:
        return None


def _memory(name):
    """Kilobytes of this process."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+)", status).group(1))


def slope(lengths, numbers):
    """Of log numbers against log lengths."""
    return float(np.polyfit(np.log(lengths), np.log(numbers), 1)[0])


def measure(settings):
    """Seconds and bytes by kind, a list each, one for each length."""
    random = np.random.default_rng(0)
    seconds, memory = ({kind: [] for kind in KINDS} for _ in range(2))
    for length in settings["lengths"]:
        x = random.normal(size=(1, length, settings["dim"])).astype("float32")
        steps = {kind: make_step(make(kind, settings["dim"]), x) for kind in KINDS}
        for run in steps.values():
            run()  # compiles
        for kind, run in steps.items():
            peaks = [peak_bytes(run) for _ in range(3)]
            memory[kind].append(None if None in peaks else statistics.median(peaks))
        times = {kind: [] for kind in KINDS}
        for _ in range(settings["rounds"]):
            for kind, run in steps.items():
                began = time.perf_counter()
                run()
                times[kind].append(time.perf_counter() - began)
        for kind, values in times.items():
            seconds[kind].append(statistics.median(values))
        print(f"length {length} done", flush=True)
    return seconds, memory


def plot(lengths, seconds, memory):
    """Both against the length, on logarithmic axes, with lines of the textbook's slopes."""
    from kerasattn.plotting.figures import new_figure

    figure = new_figure(9.0, 3.8)
    panels = figure.subplots(1, 2)
    for axes, numbers, name in ((panels[0], seconds, "seconds"), (panels[1], memory, "bytes")):
        for i, (kind, values) in enumerate(numbers.items()):
            if any(not value for value in values):
                continue  # not measured, or too little to be seen
            axes.plot(lengths, values, "o-", color=f"C{i}", label=kind)
            grown = values[-1] * (np.array(lengths) / lengths[-1]) ** KINDS[kind][3]
            axes.plot(lengths, grown, ":", color=f"C{i}", linewidth=1)
        axes.set(xscale="log", yscale="log", xlabel="length", ylabel=name)
        axes.set_xticks(lengths, lengths)
        axes.minorticks_off()
    panels[0].legend(fontsize=8)
    panels[0].set_title("dotted: the textbook's growth through the last point", fontsize=8)
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--output", type=Path, default=None, help="folder of the plot")
    options = parser.parse_args(arguments)
    settings = {**SETTINGS, **(SMALL if options.small else {})}
    lengths = settings["lengths"]
    seconds, memory = measure(settings)

    for name, numbers, unit in (("ms", seconds, 1e3), ("MB", memory, 1e-6)):
        rows = [
            [kind, *(None if value is None else f"{unit * value:.3g}" for value in values)]
            for kind, values in numbers.items()
        ]
        print(f"\n{table([f'{name} at length', *map(str, lengths)], rows)}")
    rows, slopes, last = [], {}, slice(-4, None)
    for kind, (order, steps, path, growth) in KINDS.items():
        slopes[kind] = {"seconds": slope(lengths[last], seconds[kind][last])}
        if all(memory[kind][last]):
            slopes[kind]["bytes"] = slope(lengths[last], memory[kind][last])
        fitted = [f"{x:.2f}" if x else None for x in map(slopes[kind].get, ("seconds", "bytes"))]
        rows.append([kind, order, growth, *fitted, steps, path])
    header = ["layer", "operations", "their slope", "slope of time", "slope of memory"]
    print(f"\n{table([*header, 'least steps in a row', 'longest path'], rows)}")
    about = f"d = {settings['dim']}, k = {KERNEL}, r = {REACH}"
    print(f"\nOperations, steps and paths: {SOURCE}; {about}.")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        plot(lengths, seconds, memory).savefig(options.output / "complexity.png")
    print(json.dumps({kind: {k: round(v, 2) for k, v in x.items()} for kind, x in slopes.items()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
