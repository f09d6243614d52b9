"""Hidden Markov models: likelihoods, against hmmlearn.

    pip install -e '.[test]'
    python benchmarks/hmm.py [--small]

64 sequences of 100 symbols, 10 states, 50 symbols: from the symbols to the log-likelihood of each
sequence, in float32 under XLA, against hmmlearn's scaling implementation (compiled C++, float64).
Both hold the same parameters and take turns within each round; the medians count. The last line is
JSON: how many times as many sequences per second ours does.
"""

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from kerasattn.models import CategoricalHMM
from kerasattn.ops import hmm
from kerasattn.ops.compiled import compiled

SETTINGS = dict(sequences=64, length=100, states=10, symbols=50, rounds=200)
SMALL = dict(sequences=4, length=10, states=3, symbols=5, rounds=3)


def interleaved(functions, rounds):
    """Median seconds of each function; the first call compiles and does not count."""
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def main(arguments=None):
    from hmmlearn.hmm import CategoricalHMM as Theirs

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    options = parser.parse_args(arguments)
    settings = {**SETTINGS, **(SMALL if options.small else {})}
    count, length, states = (settings[name] for name in ("sequences", "length", "states"))

    random = np.random.default_rng(0)
    parameters = dict(
        initial=random.dirichlet(np.ones(states)),
        transitions=random.dirichlet(np.ones(states), states),
        symbols=random.dirichlet(np.ones(settings["symbols"]), states),
    )
    observations = random.integers(0, settings["symbols"], (count, length)).astype("int32")
    model = CategoricalHMM(states, settings["symbols"])
    model.set_parameters(**parameters)
    chain, emissions = model.get_layer("chain"), model.get_layer("emissions")
    likelihood = compiled(
        lambda x: hmm.log_likelihood(*chain.chain(), emissions(x)), model.variables
    )

    calls = {"kerasattn": lambda: np.asarray(likelihood(observations))}
    flat, lengths = observations.reshape(-1, 1), [length] * count
    for kind in ("scaling", "log"):
        theirs = Theirs(states, implementation=kind)
        theirs.n_features, theirs.emissionprob_ = settings["symbols"], parameters["symbols"]
        theirs.startprob_, theirs.transmat_ = parameters["initial"], parameters["transitions"]
        calls[f"hmmlearn, {kind}"] = lambda theirs=theirs: theirs.score(flat, lengths)
    total, expected = calls["kerasattn"]().sum(), calls["hmmlearn, scaling"]()
    print(f"log-likelihood {total:.3f}, hmmlearn's {expected:.3f}")

    times, ratios = interleaved(calls, settings["rounds"]), {}
    print(f"\n{'':20}{'sequences/s':>12}{'ours is':>10}")
    for name, seconds in times.items():
        ratio = seconds / times["kerasattn"]
        print(f"{name:20}{count / seconds:12,.0f}{ratio:9.2f}x")
        if name != "kerasattn":
            ratios[f"vs_{name.replace(', ', '_')}"] = round(ratio, 3)
    print("\n" + json.dumps(ratios))
    return ratios


if __name__ == "__main__":
    main()
