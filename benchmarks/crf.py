"""Training steps of a CRF per second, against pytorch-crf.

    python benchmarks/crf.py [--small]

A step is the loss of given emissions, its gradients by emissions, transitions, start and end
scores, and a step of SGD; batch 32, length 100, 30 tags, rows of 50 to 100 real steps. Both are
checked to give the same numbers, and run by turns. pytorch-crf is measured with one thread and with
all; the faster one counts. The last line is JSON, how many times as fast ours is (null where
pytorch-crf is not installed):

    crf_step_vs_pytorch_crf
    crf_step_vs_potentials     against the sums on potentials of every pair
"""

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import layers
from kerasattn.ops.compiled import compiled
from kerasattn.training import CRFLoss

SETTINGS = dict(batch=32, length=100, num_tags=30, rounds=30)
SMALL = dict(batch=4, length=10, num_tags=5, rounds=2)
RATE = 0.01


def draw(settings):
    """Emissions, tags and masks."""
    random = np.random.default_rng(0)
    shape = (settings["batch"], settings["length"])
    emissions = random.normal(size=(*shape, settings["num_tags"])).astype("float32")
    tags = random.integers(0, settings["num_tags"], shape).astype("int32")
    lengths = random.integers(shape[1] // 2, shape[1] + 1, shape[0])
    return emissions, tags, np.arange(shape[1]) < lengths[:, None]


def make_ours(emissions, tags, mask, remembers=True):
    """A function that does a step, and the layer."""
    import tensorflow as tf

    layer, loss = layers.CRF(transitions_initializer="zeros"), CRFLoss()
    layer.build(emissions.shape)
    given = [tf.constant(x) for x in (emissions, tags, mask)]

    def step(emissions, tags, mask):
        with tf.GradientTape() as tape:
            tape.watch(emissions)
            potentials = layer(emissions, padding_mask=mask)
            value = loss(tags, potentials if remembers else potentials + 0.0)
        by_emissions, *gradients = tape.gradient(value, [emissions, *layer.trainable_variables])
        for weight, gradient in zip(layer.trainable_variables, gradients):
            weight.assign_sub(RATE * gradient)
        return value, by_emissions

    run = compiled(step)
    return lambda: [np.asarray(x) for x in run(*given)], layer


def make_theirs(emissions, tags, mask, threads):
    """As `make_ours`, by pytorch-crf."""
    import torch
    from torchcrf import CRF

    crf = CRF(emissions.shape[-1], batch_first=True)
    for weight in crf.parameters():
        torch.nn.init.zeros_(weight)
    optimizer = torch.optim.SGD(crf.parameters(), lr=RATE)
    given = torch.tensor(emissions, requires_grad=True)
    tags, mask = torch.tensor(tags.astype("int64")), torch.tensor(mask)

    def run():
        torch.set_num_threads(threads)
        optimizer.zero_grad()
        given.grad = None
        loss = -crf(given, tags, mask=mask, reduction="mean")
        loss.backward()
        optimizer.step()
        return loss.detach().numpy(), given.grad.numpy()

    return run, crf


def measure(sides, rounds):
    """Median seconds of each, by turns."""
    times = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    options = parser.parse_args(arguments)
    settings = {**SETTINGS, **(SMALL if options.small else {})}
    data = draw(settings)
    keras.utils.set_random_seed(0)
    ours, layer = make_ours(*data)
    plain, _ = make_ours(*data, remembers=False)
    sides = {"kerasattn": ours, "kerasattn, on potentials": plain}
    try:
        theirs, crf = make_theirs(*data, threads=1)
        more, _ = make_theirs(*data, threads=os.cpu_count() or 1)
    except ImportError:
        print("pytorch-crf is not installed (extra `peers`)")
    else:
        sides |= {"pytorch-crf, 1 thread": theirs, "pytorch-crf, all threads": more}
        for _ in range(3):
            for a, b in zip(ours(), theirs()):
                np.testing.assert_allclose(a, b, atol=1e-3, rtol=1e-5)
        difference = np.abs(np.asarray(layer.transitions) - crf.transitions.detach().numpy()).max()
        print(f"transitions differ by {difference:.1e} after 3 steps")
    for run in sides.values():
        run()
    times = measure(sides, settings["rounds"])
    for name, seconds in times.items():
        print(f"{name:28}{1e3 * seconds:9.2f} ms a step{1 / seconds:9.0f} steps/s")
    peer = min((s for name, s in times.items() if name.startswith("pytorch")), default=None)
    mine = times["kerasattn"]
    ratios = {
        "crf_step_vs_pytorch_crf": peer and round(peer / mine, 2),
        "crf_step_vs_potentials": round(times["kerasattn, on potentials"] / mine, 2),
    }
    print(json.dumps(ratios))
    return ratios


if __name__ == "__main__":
    main()
