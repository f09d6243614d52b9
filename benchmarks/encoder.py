"""Encoders against KerasHub and transformers: forward, training steps, real lengths.

    pip install -e '.[peers]'
    python benchmarks/encoder.py [--small]

All sides hold the same weights in float32 and run in their fastest setting: XLA, and torch.compile.
They take turns within each round, and the medians of the rounds count. The last line is JSON, how
many times as many tokens per second as a peer ours does:

    forward_vs_*         BERT-base, 8 × 128 tokens; also `forward_peak_share`, of the machine's peak
                         of float32 matrix products, measured in the same run
    train_vs_*           a masked-LM step of 4 layers, 32 × 64 tokens, 6,000 words, logits of all
    ragged_forward_vs_*  4,096 sentences of 5 to 120 tokens, of which real ones count: ours in
    ragged_train_vs_*    buckets of length, theirs in batches padded to their longest

Run it on an idle machine: PyTorch becomes ten times as slow when a core is shared.
"""

import argparse
import functools
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import ops

from kerasattn import data
from kerasattn.models import BERT
from kerasattn.training.losses import label_loss

SETTINGS = dict(
    base=dict(num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072),
    base_vocabulary=30522,
    forward=(8, 128),
    layers=4,  # of the model that is trained
    vocabulary=6000,
    train=(32, 64),
    sentences=4096,
    lengths=(5, 120),
    ragged_batch=32,
    matrix=4096,
    rounds=5,
)
SMALL = dict(
    base=dict(num_layers=2, num_heads=2, hidden_dim=32, intermediate_dim=64),
    base_vocabulary=100,
    forward=(2, 16),
    layers=1,
    vocabulary=100,
    train=(4, 8),
    sentences=64,
    lengths=(5, 24),
    ragged_batch=8,
    matrix=256,
    rounds=1,
)
IGNORED = -100


# === The sides: each `forward(token_ids)` and `train(token_ids, labels)` ===
class Ours:
    """A BERT with a masked-LM head; `forward` gives its last hidden vectors."""

    def __init__(self, sizes, vocabulary, heads=("mlm",)):
        self.model = BERT(vocabulary, **sizes, heads=heads, dropout=0.0, activation="gelu_tanh")
        self.model.compile(keras.optimizers.Adam(1e-4), jit_compile=True)

    def forward(self, token_ids):
        return self.model.predict_on_batch(token_ids)["hidden"]

    def train(self, token_ids, labels):
        return self.model.train_on_batch(token_ids, labels)


class KerasHub:
    """KerasHub's backbone, and its masked-LM head over all positions."""

    def __init__(self, sizes, vocabulary, heads=("mlm",)):
        import keras_hub

        self.backbone = keras_hub.models.BertBackbone(
            vocabulary_size=vocabulary, **sizes, dropout=0.0, max_sequence_length=512
        )
        self.backbone.compile(jit_compile=True)
        if heads:
            every = keras.Input((None,), dtype="int32", name="positions")
            head = keras_hub.layers.MaskedLMHead(
                token_embedding=self.backbone.token_embedding,
                intermediate_activation="gelu",
            )
            logits = head(self.backbone.output["sequence_output"], every)
            self.model = keras.Model({**self.backbone.input, "positions": every}, logits)
            self.model.compile(keras.optimizers.Adam(1e-4), loss=label_loss, jit_compile=True)

    def inputs(self, token_ids, positions=False):
        made = {
            "token_ids": token_ids,
            "segment_ids": np.zeros_like(token_ids),
            "padding_mask": (token_ids != 0).astype("int32"),
        }
        if positions:
            made["positions"] = np.arange(token_ids.shape[1]) + np.zeros_like(token_ids)
        return made

    def forward(self, token_ids):
        return self.backbone.predict_on_batch(self.inputs(token_ids))["sequence_output"]

    def train(self, token_ids, labels):
        return self.model.train_on_batch(self.inputs(token_ids, positions=True), labels)


class Transformers:
    """transformers under torch.compile, started from the weights of ours."""

    def __init__(self, ours):
        import torch
        import transformers

        self.torch = torch
        with tempfile.TemporaryDirectory() as folder:
            ours.model.save_pretrained(folder)
            kind = "BertForMaskedLM" if ours.model.get_config()["heads"] else "BertModel"
            self.model = getattr(transformers, kind).from_pretrained(folder)
        self.body = getattr(self.model, "bert", self.model)
        self.compiled = torch.compile(self.body, dynamic=False)
        self.compiled_model = torch.compile(self.model, dynamic=False)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)

    def inputs(self, token_ids):
        ids = self.torch.tensor(token_ids.astype("int64"))
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}

    def forward(self, token_ids):
        self.body.eval()
        with self.torch.inference_mode():
            return self.compiled(**self.inputs(token_ids)).last_hidden_state.numpy()

    def train(self, token_ids, labels):
        self.model.train()
        self.optimizer.zero_grad()
        labels = self.torch.tensor(labels.astype("int64"))
        loss = self.compiled_model(**self.inputs(token_ids), labels=labels).loss
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


# === Measuring ===
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


def draw(random, shape, vocabulary):
    """Tokens, and labels at the 15% that are masked."""
    token_ids = random.integers(5, vocabulary, shape).astype("int32")
    masked = random.random(shape) < 0.15
    return token_ids, np.where(masked, token_ids, IGNORED).astype("int32")


def peak(size):
    """Float32 operations per second of one large matrix product under XLA."""
    from kerasattn.ops.compiled import compiled

    a = np.random.default_rng(0).normal(size=(size, size)).astype("float32")
    a = ops.convert_to_tensor(a)
    multiply = compiled(lambda x: ops.sum(ops.matmul(x, x)))
    seconds = interleaved({"": lambda: ops.convert_to_numpy(multiply(a))}, 5)[""]
    return 2 * size**3 / seconds


def sentences(settings):
    """Real sentences as ids: words of the corpus by rank, lengths within the bounds."""
    low, high = settings["lengths"]
    ranks, rows = {}, []
    for turns in data.chitchat_conversations():
        words = " ".join(turns).lower().split()
        for word in words:
            ranks.setdefault(word, len(ranks))
        rows += [turn.lower().split() for turn in turns]
    rows = [row for row in rows if low <= len(row) <= high][: settings["sentences"]]
    size = settings["vocabulary"] - 5
    return [np.array([5 + ranks[word] % size for word in row], "int32") for row in rows]


def padded(rows, width=None):
    width = width or max(map(len, rows))
    return np.stack([np.pad(row, (0, width - len(row))) for row in rows])


def batches(rows, size):
    """Batches in the order of the corpus, each padded to its longest."""
    return [padded(rows[i : i + size]) for i in range(0, len(rows) - size + 1, size)]


def bucketed(rows, size, step=8):
    """Batches of as many tokens, of rows whose lengths are alike, rounded up to a multiple."""
    rows = sorted(rows, key=len)
    tokens = size * statistics.mean(map(len, rows))
    found, start = [], 0
    while start < len(rows):
        width = -(-len(rows[start]) // step) * step
        end = start + sum(len(row) <= width for row in rows[start:])
        count = max(1, int(tokens // width))
        for first in range(start, end, count):
            chunk = rows[first : min(first + count, end)]
            chunk += [np.zeros(0, "int32")] * (count - len(chunk))  # one shape a bucket
            found.append(padded(chunk, width))
        start = end
    return found


def run_all(side, method, groups):
    for token_ids in groups:
        if method == "forward":
            side.forward(token_ids)
        else:
            labels = np.where((token_ids != 0) & (token_ids % 7 == 0), token_ids, IGNORED)
            side.train(token_ids, labels)


def show(title, times, tokens):
    """Prints a table; ratios of tokens per second, ours to each peer."""
    ours = next(iter(times.values()))
    print(f"\n{title:44}{'tokens/s':>12}{'ours is':>10}")
    for name, seconds in times.items():
        print(f"{name:44}{tokens / seconds:12,.0f}{seconds / ours:9.2f}x")
    return {name: round(seconds / ours, 3) for name, seconds in list(times.items())[1:]}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args(arguments)
    # The script beside this one that is called tokenizers.py is not the library that peers import.
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != here]
    settings = {**SETTINGS, **(SMALL if options.small else {})}
    rounds = options.rounds or settings["rounds"]
    random, ratios = np.random.default_rng(0), {}

    # === Forward ===
    sizes = settings["base"]
    ours = Ours(sizes, settings["base_vocabulary"], heads=())
    sides = {"kerasattn": ours, "keras_hub": KerasHub(sizes, settings["base_vocabulary"], ())}
    sides["transformers"] = Transformers(ours)
    token_ids, _ = draw(random, settings["forward"], settings["base_vocabulary"])
    expected = sides["transformers"].forward(token_ids)
    print("largest difference from transformers:", np.abs(ours.forward(token_ids) - expected).max())
    calls = {name: lambda side=side: side.forward(token_ids) for name, side in sides.items()}
    times = interleaved(calls, rounds)
    for name, ratio in show("forward", times, token_ids.size).items():
        ratios[f"forward_vs_{name}"] = ratio
    weights = 4 * sizes["hidden_dim"] ** 2 + 2 * sizes["hidden_dim"] * sizes["intermediate_dim"]
    scores = 2 * token_ids.shape[1] * sizes["hidden_dim"]
    work = 2 * sizes["num_layers"] * token_ids.size * (weights + scores)
    share = work / times["kerasattn"] / peak(settings["matrix"])
    ratios["forward_peak_share"] = round(share, 3)
    del sides, ours, calls

    # === Training, and real lengths ===
    sizes = {**sizes, "num_layers": settings["layers"]}
    ours = Ours(sizes, settings["vocabulary"])
    sides = {"kerasattn": ours, "keras_hub": KerasHub(sizes, settings["vocabulary"])}
    sides["transformers"] = Transformers(ours)
    token_ids, labels = draw(random, settings["train"], settings["vocabulary"])
    calls = {name: lambda side=side: side.train(token_ids, labels) for name, side in sides.items()}
    times = interleaved(calls, rounds)
    for name, ratio in show("training step", times, token_ids.size).items():
        ratios[f"train_vs_{name}"] = ratio

    rows = sentences(settings)
    real = sum(map(len, rows))
    groups = dict.fromkeys(sides, batches(rows, settings["ragged_batch"]))
    groups["kerasattn"] = bucketed(rows, settings["ragged_batch"])
    for method in ("forward", "train"):
        calls = {
            name: functools.partial(run_all, side, method, groups[name])
            for name, side in sides.items()
        }
        times = interleaved(calls, 1 if options.small else min(rounds, 3))
        for name, ratio in show(f"real sentences, {method}", times, real).items():
            ratios[f"ragged_{method}_vs_{name}"] = ratio
    print("\n" + json.dumps(ratios))
    return ratios


if __name__ == "__main__":
    main()
