"""Generation by a GPT-2, in new tokens per second, against the same model in other libraries.

    python benchmarks/generation.py [--small]

All compute in float32, from random weights, and write as many tokens, none of which ends a text.
transformers (PyTorch) and KerasHub (with XLA) are measured where they are installed. The last line
is JSON, how many times as fast ours is, null for a library that is not there:

    greedy_b1_..., greedy_b8_...  greedy search, 1 and 8 prompts
    beam4_...                     beam search of width 4, 1 prompt
    ..._vs_recomputed             against running the whole sequence again for each token
    slowest_length_vs_fastest     time of prompts of 2 to 9 tokens, which are one bucket
    growth_mb                     memory that 200 calls with prompts of 1 to 40 tokens leave behind
"""

import argparse
import gc
import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from kerasattn import decoding
from kerasattn.models import GPT2

SETTINGS = dict(
    num_layers=6,
    num_heads=6,
    hidden_dim=384,
    intermediate_dim=1536,
    vocabulary_size=6000,
    prompt=8,
    new_tokens=64,
    rounds=5,
    calls=200,
)
SMALL = dict(
    num_layers=1,
    num_heads=2,
    hidden_dim=16,
    intermediate_dim=32,
    vocabulary_size=50,
    new_tokens=4,
    rounds=1,
    calls=2,
)
LONGEST, FEW = 40, 16  # prompt and new tokens where lengths vary
CASES = {"greedy_b1": (1, 1), "greedy_b8": (8, 1), "beam4": (1, 4)}  # prompts, beams


def make_model(settings, room):
    names = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim")
    return GPT2(**{name: settings[name] for name in names}, max_length=room)


def make_ours(settings):
    """A function (prompts, beams) -> the new ids, and one without a cache."""
    model = make_model(settings, settings["prompt"] + settings["new_tokens"])
    model.compile(jit_compile=False)  # lengths that grow would be compiled anew

    def generate(prompts, beams):
        strategy = decoding.Beam(beams) if beams > 1 else decoding.Greedy()
        return model.generate(prompts, strategy, settings["new_tokens"])

    def recompute(prompts, beams):
        ids = prompts
        for _ in range(settings["new_tokens"]):
            logits = model.predict_on_batch(ids)["lm_logits"][:, -1]
            ids = np.concatenate([ids, logits.argmax(-1)[:, None].astype("int32")], axis=1)
        return ids[:, prompts.shape[1] :]

    return generate, recompute


def make_keras_hub(settings):
    import keras_hub

    room = settings["prompt"] + settings["new_tokens"]
    backbone = keras_hub.models.GPT2Backbone(
        vocabulary_size=settings["vocabulary_size"],
        num_layers=settings["num_layers"],
        num_heads=settings["num_heads"],
        hidden_dim=settings["hidden_dim"],
        intermediate_dim=settings["intermediate_dim"],
        max_sequence_length=room,
    )
    models = {}

    def generate(prompts, beams):
        if beams not in models:
            models[beams] = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
            sampler = keras_hub.samplers.BeamSampler(num_beams=beams) if beams > 1 else "greedy"
            models[beams].compile(sampler=sampler, jit_compile=True)
        more = ((0, 0), (0, settings["new_tokens"]))
        inputs = {
            "token_ids": np.pad(prompts, more),
            "padding_mask": np.pad(np.ones_like(prompts), more),
        }
        found = models[beams].generate(inputs, stop_token_ids=None)
        return np.asarray(found["token_ids"])[:, settings["prompt"] :]

    return generate


def make_transformers(settings):
    import torch
    import transformers

    config = transformers.GPT2Config(
        vocab_size=settings["vocabulary_size"],
        n_positions=settings["prompt"] + settings["new_tokens"],
        n_layer=settings["num_layers"],
        n_head=settings["num_heads"],
        n_embd=settings["hidden_dim"],
        n_inner=settings["intermediate_dim"],
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.GPT2LMHeadModel(config).eval()

    def generate(prompts, beams):
        ids = torch.as_tensor(prompts, dtype=torch.long)
        with torch.inference_mode():
            found = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=settings["new_tokens"],
                num_beams=beams,
                do_sample=False,
                pad_token_id=0,
                eos_token_id=None,
            )
        return found.numpy()[:, settings["prompt"] :]

    return generate


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


def measure(case, peers, settings):
    """How many times as fast ours is in one case, by the names of the peers."""
    batch, beams = CASES[case]
    shape = (batch, settings["prompt"])
    prompts = np.random.default_rng(0).integers(1, settings["vocabulary_size"], shape)
    prompts = prompts.astype("int32")
    if beams > 1:
        peers = {name: peer for name, peer in peers.items() if name != "recomputed"}
    for name, peer in peers.items():
        written = peer(prompts, beams).shape
        if written != (batch, settings["new_tokens"]):
            raise ValueError(f"{name} wrote ids of the shape {written}.")
    if "recomputed" in peers:
        same = np.mean(peers["kerasattn"](prompts, beams) == peers["recomputed"](prompts, beams))
        print(f"\nWith and without a cache the same: {same:.1%} of the tokens")
    functions = {name: lambda peer=peer: peer(prompts, beams) for name, peer in peers.items()}
    times = interleaved(functions, settings["rounds"])
    print(f"\n{case:16}{'seconds':>10}{'tokens/s':>12}{'ours is':>10}")
    tokens, ours = batch * settings["new_tokens"], times["kerasattn"]
    for name, seconds in times.items():
        print(f"{name:16}{seconds:10.4f}{tokens / seconds:12,.0f}{seconds / ours:9.2f}x")
    return {name: round(seconds / ours, 3) for name, seconds in times.items()}


def measure_lengths(settings):
    """How much a prompt's length within a bucket matters, and what memory many calls take."""
    model, rng = make_model(settings, LONGEST + FEW), np.random.default_rng(0)

    def call(length):
        prompts = rng.integers(1, settings["vocabulary_size"], (1, length))
        model.generate(prompts, None, FEW)

    functions = {length: lambda length=length: call(length) for length in range(2, 10)}
    times = interleaved(functions, 2 * settings["rounds"])
    lengths = rng.integers(1, LONGEST + 1, settings["calls"])
    for length in np.unique(lengths):  # compiles
        call(length)
    before = resident_mb()
    for length in lengths:
        call(length)
    slowest = max(times.values()) / min(times.values())
    growth = resident_mb() - before
    print(f"\nPrompts of 2 to 9 tokens: the slowest takes {slowest:.3f} times the fastest's time")
    print(f"{len(lengths)} calls with prompts of 1 to {LONGEST} tokens: {growth:.1f} MB more")
    return {"slowest_length_vs_fastest": round(slowest, 3), "growth_mb": round(growth, 1)}


def resident_mb():
    """The memory of this process, on Linux."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--rounds", type=int, help="measurements of each library")
    options = parser.parse_args(arguments)
    # This folder has a file `tokenizers.py`, which the libraries would import as theirs.
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != here]
    settings = {**SETTINGS, **(SMALL if options.small else {})}
    settings["rounds"] = options.rounds or settings["rounds"]
    print(", ".join(f"{name} {value}" for name, value in settings.items()))

    ours, recompute = make_ours(settings)
    peers = {"kerasattn": ours, "recomputed": recompute}
    others = {"keras_hub": make_keras_hub, "transformers": make_transformers}
    for name, make in others.items():
        needs = (name, "torch") if name == "transformers" else (name,)
        if all(map(importlib.util.find_spec, needs)):
            peers[name] = make(settings)
        else:
            print(f"{name} is not installed: left out")
    ratios = {}
    for case, (_, beams) in CASES.items():
        found = measure(case, peers, settings)
        for name in [*others, *(["recomputed"] if beams == 1 else [])]:
            ratios[f"{case}_vs_{name}"] = found.get(name)
    ratios.update(measure_lengths(settings))
    print("\n" + json.dumps(ratios))
    return ratios


if __name__ == "__main__":
    main()
