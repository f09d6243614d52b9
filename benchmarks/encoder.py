"""Encoders against KerasHub and transformers: forward, training steps, real sentences.

    pip install -e '.[peers]'
    python benchmarks/encoder.py [--small] [--parts forward,train,ragged]

All sides compute in float32, without dropout, in their fastest setting: XLA, and torch.compile with
the fused Adam. What is compiled is compiled before it is measured; then the sides take turns. The
last line is JSON, how many times as many tokens per second as a peer's ours are:

    forward_vs_*         BERT-base, 8 × 128 tokens; also `forward_peak_share`, the share of the
                         rate of the fastest float32 matrix product, measured between the others
    train_vs_*           a masked-LM step of 4 layers of BERT-base, 32 × 64 tokens, 6,000 words,
                         logits at all positions
    ragged_forward_vs_*  4,096 sentences of 5 to 120 tokens, 32 a batch, real tokens, in 4 layers
    ragged_train_vs_*    of 256: ours in buckets of length, theirs in batches padded to the longest

Run it on an idle machine: PyTorch becomes ten times as slow when a core is shared.
"""

import argparse
import functools
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if __name__ == "__main__" and sys.platform == "linux" and "GLIBC_TUNABLES" not in os.environ:
    # Memory in huge pages, for all sides: asked for as the process starts, so it starts again.
    os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    os.execv(sys.executable, sys.orig_argv)

import keras
import numpy as np
from keras import ops

from kerasattn import data
from kerasattn.models import BERT
from kerasattn.ops.compiled import compiled
from kerasattn.training.losses import label_loss

WIDE = dict(num_heads=12, hidden_dim=768, intermediate_dim=3072)
SETTINGS = dict(
    forward=dict(vocabulary_size=30522, num_layers=12, **WIDE),
    forward_shape=(8, 128),
    train=dict(vocabulary_size=6000, num_layers=4, **WIDE),
    train_shape=(32, 64),
    ragged=dict(
        vocabulary_size=6000, num_layers=4, num_heads=4, hidden_dim=256, intermediate_dim=1024
    ),
    sentences=4096,
    lengths=(5, 120),
    batch=32,
    matrix=4096,
    rounds=5,
)
TINY = dict(vocabulary_size=100, num_layers=1, num_heads=2, hidden_dim=32, intermediate_dim=64)
SMALL = dict(
    forward=TINY,
    forward_shape=(2, 16),
    train=TINY,
    train_shape=(4, 8),
    ragged=TINY,
    sentences=32,
    lengths=(5, 16),
    batch=8,
    matrix=256,
    rounds=2,
)
PARTS = ("forward", "train", "ragged")
MASKED = 0.15  # the share of the tokens that have labels
IGNORED = -100  # the label of the others


# === The sides: `forward(token_ids)` of an encoder, `train(token_ids, labels)` with its head ===
class Ours:
    def __init__(self, sizes, head):
        heads = ("mlm",) if head else ("pooled",)
        self.model = BERT(**sizes, heads=heads, dropout=0.0, activation="gelu_tanh")
        self.model.compile(keras.optimizers.Adam(1e-4))

    def forward(self, token_ids):
        return self.model.predict_on_batch(token_ids)["hidden"]

    def train(self, token_ids, labels):
        return self.model.train_on_batch(token_ids, labels)


class KerasHub:
    """From weights of its own, drawn as ours are."""

    def __init__(self, sizes, head):
        import keras_hub

        backbone = keras_hub.models.BertBackbone(**sizes, dropout=0.0)
        if not head:
            self.model = backbone
            return self.model.compile(jit_compile=True)
        every = keras.Input((None,), dtype="int32", name="positions")
        gelu = functools.partial(keras.activations.gelu, approximate=True)
        logits = keras_hub.layers.MaskedLMHead(
            token_embedding=backbone.token_embedding, intermediate_activation=gelu
        )(backbone.output["sequence_output"], every)
        self.model = keras.Model({**backbone.input, "positions": every}, logits)
        self.model.compile(keras.optimizers.Adam(1e-4), loss=label_loss, jit_compile=True)

    def inputs(self, token_ids):
        return {
            "token_ids": token_ids,
            "segment_ids": np.zeros_like(token_ids),
            "padding_mask": (token_ids != 0).astype("int32"),
        }

    def forward(self, token_ids):
        return self.model.predict_on_batch(self.inputs(token_ids))["sequence_output"]

    def train(self, token_ids, labels):
        positions = np.arange(token_ids.shape[1]) + np.zeros_like(token_ids)
        return self.model.train_on_batch({**self.inputs(token_ids), "positions": positions}, labels)


class Transformers:
    """The weights of ours, under torch.compile; lengths that change are a size of its code."""

    def __init__(self, folder, head, dynamic):
        import torch
        import transformers

        self.torch = torch
        kind = transformers.BertForMaskedLM if head else transformers.BertModel
        self.model = kind.from_pretrained(folder).train(head)
        self.compiled = torch.compile(self.model, dynamic=dynamic)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)

    def inputs(self, token_ids):
        ids = self.torch.tensor(token_ids.astype("int64"))
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}

    def forward(self, token_ids):
        with self.torch.inference_mode():
            return self.compiled(**self.inputs(token_ids)).last_hidden_state.numpy()

    def train(self, token_ids, labels):
        self.optimizer.zero_grad()
        labels = self.torch.tensor(labels.astype("int64"))
        loss = self.compiled(**self.inputs(token_ids), labels=labels).loss
        loss.backward()
        self.optimizer.step()
        return loss.item()


def make_sides(sizes, head, dynamic=False):
    ours = Ours(sizes, head)
    with tempfile.TemporaryDirectory() as folder:
        ours.model.save_pretrained(folder)
        return {
            "kerasattn": ours,
            "keras_hub": KerasHub(sizes, head),
            "transformers": Transformers(folder, head, dynamic),
        }


# === Measuring ===
def take_turns(functions, rounds, tell):
    """The seconds of every call of each function, in `rounds` turns whose order goes round."""
    names = list(functions)
    seconds = {name: [] for name in names}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(0.2)  # the threads of the one before still turn for a while
            began = time.perf_counter()
            functions[name](turn)
            seconds[name].append(time.perf_counter() - began)
        tell(f"turn {turn + 1} of {rounds}")
    return seconds


def ratios(title, tokens, seconds):
    """Prints tokens per second; how many times as long as ours each peer takes."""
    print(f"\n{title:44}{'seconds':>10}{'tokens/s':>12}{'ours is':>10}")
    for name, took in seconds.items():
        print(f"{name:44}{took:10.3f}{tokens / took:12,.0f}{took / seconds['kerasattn']:9.2f}x")
    print(flush=True)
    return {name: round(took / seconds["kerasattn"], 3) for name, took in seconds.items()}


def say(began, text):
    print(f"[{time.perf_counter() - began:4.0f} s] {text}", flush=True)


def draw(shape, vocabulary_size):
    """Random tokens, and labels at the masked ones."""
    token_ids = np.random.default_rng(0).integers(5, vocabulary_size, shape).astype("int32")
    return token_ids, labels_of(token_ids)


def labels_of(token_ids):
    masked = np.random.default_rng(1).random(token_ids.shape) < MASKED
    return np.where(masked & (token_ids != 0), token_ids, IGNORED).astype("int32")


def matrix_products(size):
    """Functions that multiply two matrices of that size, with and without XLA."""
    a = np.random.default_rng(0).normal(size=(size, size)).astype("float32")
    a = ops.convert_to_tensor(a)
    multiply = lambda x, y: ops.matmul(x, y)[0, 0]
    under_xla = compiled(multiply)
    return {
        "a matrix product": lambda turn: float(multiply(a, a)),
        "a matrix product, XLA": lambda turn: float(under_xla(a, a)),
    }


def operations(sizes, shape):
    """Those of the matrix products of the blocks, forward."""
    width, inner = sizes["hidden_dim"], sizes["intermediate_dim"]
    weights = 4 * width**2 + 2 * width * inner
    scores = 2 * shape[1] * width
    return 2 * sizes["num_layers"] * shape[0] * shape[1] * (weights + scores)


# === The parts: each gives its ratios by their keys ===
def forward(settings, tell):
    sizes, shape = settings["forward"], settings["forward_shape"]
    token_ids, _ = draw(shape, sizes["vocabulary_size"])
    sides = make_sides(sizes, head=False)
    products = matrix_products(settings["matrix"])
    calls = {name: lambda turn, side=side: side.forward(token_ids) for name, side in sides.items()}
    tell("forward: compiling")
    found = {name: call(0) for name, call in {**calls, **products}.items()}
    difference = np.abs(found["kerasattn"] - found["transformers"]).max()
    print(f"largest difference from transformers: {difference:g}")
    tell("forward: measuring")
    seconds = take_turns({**calls, **products}, settings["rounds"], tell)
    rates = {name: 2e-9 * settings["matrix"] ** 3 / min(seconds.pop(name)) for name in products}
    seconds = {name: statistics.median(values) for name, values in seconds.items()}
    result = ratios("forward", token_ids.size, seconds)
    rate = 1e-9 * operations(sizes, shape) / seconds["kerasattn"]
    share = rate / max(rates.values())
    for name, at_best in rates.items():
        print(f"{at_best:.0f} GFLOP/s in {name}, at best")
    print(f"{rate:.0f} GFLOP/s in our forward pass: {share:.1%} of the highest")
    return {
        "forward_vs_keras_hub": result["keras_hub"],
        "forward_vs_transformers": result["transformers"],
        "forward_peak_share": round(share, 3),
    }


def train(settings, tell):
    sizes = settings["train"]
    token_ids, labels = draw(settings["train_shape"], sizes["vocabulary_size"])
    sides = make_sides(sizes, head=True)
    calls = {
        name: lambda turn, side=side: side.train(token_ids, labels) for name, side in sides.items()
    }
    tell("train: compiling")
    for name, call in calls.items():
        print(f"loss of {name}: {float(call(0)):.4f}")
        call(0)
    tell("train: measuring")
    seconds = take_turns(calls, settings["rounds"], tell)
    seconds = {name: statistics.median(values) for name, values in seconds.items()}
    result = ratios("training step", token_ids.size, seconds)
    return {f"train_vs_{name}": result[name] for name in ("keras_hub", "transformers")}


def ragged(settings, tell):
    sizes = settings["ragged"]
    rows = sentences(settings)
    real = sum(map(len, rows))
    plan = data.BucketPlan(rows, settings["batch"], vocabulary_size=sizes["vocabulary_size"])
    groups = {
        "kerasattn": list(plan.epoch(0)),
        "keras_hub": padded(rows, settings["batch"], multiple=8),  # XLA compiles every length
        "transformers": padded(rows, settings["batch"]),
    }
    for name, batches in groups.items():
        tokens, shapes = sum(x.size for x in batches), {x.shape for x in batches}
        print(f"{name}: {tokens / real:.2f} tokens for a real one, {len(shapes)} shapes")
    result = {}
    for method in ("forward", "train"):
        sides = make_sides(sizes, head=method == "train", dynamic=True)
        runs = {name: runner(sides[name], method, groups[name]) for name in sides}
        for name, run in runs.items():
            tell(f"ragged {method}: compiling {name}")
            run(None)
        tell(f"ragged {method}: measuring")
        turns = take_turns(runs, TURNS, tell)
        seconds = {name: sum(values) for name, values in turns.items()}
        found = ratios(f"{len(rows)} sentences, {method}", real, seconds)
        for name in ("keras_hub", "transformers"):
            result[f"ragged_{method}_vs_{name}"] = found[name]
    return result


# === Real sentences ===
TURNS = 4  # in which a side runs through all of its batches


def sentences(settings):
    """Real sentences as ids: words of the corpus by rank, lengths within the bounds."""
    low, high = settings["lengths"]
    turns = [turn for talk in data.chitchat_conversations() for turn in talk]
    rows = [turn.lower().split() for turn in turns]
    rows = [row for row in rows if low <= len(row) <= high][: settings["sentences"]]
    ranks, size = {}, settings["ragged"]["vocabulary_size"] - 5
    ids = [[ranks.setdefault(word, len(ranks)) % size for word in row] for row in rows]
    return [np.array(row, "int32") + 5 for row in ids]


def padded(rows, size, multiple=1):
    """Batches in the order of the corpus, each padded to its longest, up to a multiple."""
    batches = []
    for start in range(0, len(rows), size):
        chunk = rows[start : start + size]
        width = -(-max(map(len, chunk)) // multiple) * multiple
        batches.append(np.stack([np.pad(row, (0, width - len(row))) for row in chunk]))
    return batches


def runner(side, method, batches):
    """A function of the turn that runs its share of the batches; None is one of each shape."""
    each = [(ids, labels_of(ids)) if method == "train" else (ids,) for ids in batches]
    first = {ids[0].shape: ids for ids in each}

    def run(turn):
        for arguments in first.values() if turn is None else each[turn::TURNS]:
            getattr(side, method)(*arguments)

    return run


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--parts", default=",".join(PARTS), help="which, with commas between")
    parser.add_argument("--rounds", type=int, help="measurements of each side")
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--parts takes {', '.join(PARTS)}, got {options.parts}.")
    peers = ("keras_hub", "torch", "transformers")
    missing = [name for name in peers if not importlib.util.find_spec(name)]
    if missing:
        parser.error(f"{', '.join(missing)} not found; the extra peers has it: .[peers]")
    # The script beside this one that is called tokenizers.py is not the library that peers import.
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != here]
    settings = {**SETTINGS, **(SMALL if options.small else {})}
    settings["rounds"] = options.rounds or settings["rounds"]

    tell = functools.partial(say, time.perf_counter())
    found = {}
    for part in parts:
        found |= {"forward": forward, "train": train, "ragged": ragged}[part](settings, tell)
        keras.backend.clear_session()
    tell("done")
    print(json.dumps(found))
    return found


if __name__ == "__main__":
    main()
