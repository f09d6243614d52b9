"""Characters a second of WordPiece in tf.data on one core, beside the library `tokenizers`.

    python benchmarks/tokenizers.py [--output tokenizers-benchmark] [--small]

The texts are the sentences of `chitchat-dataset`, each batch of 256 padded to its longest, the
vocabulary is learned from them. All sides do the same work in turn, in one process held to one
core, and must give the same ids. Prints a table, writes tokenizers.json into the output folder; the
last line is the JSON:

    characters_per_second, characters_per_second_of_tokenizers: medians over the repeats
    wordpiece_vs_tokenizers: ratio of the two, more than 1 if we are faster
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import tensorflow as tf

from kerasattn.data import chitchat_questions
from kerasattn.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer

BATCH = 256


def import_rival():
    """The library `tokenizers`, which has the name of this file."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]
    import tokenizers

    return tokenizers


def rival(tokenizer):
    """The same vocabulary in the library `tokenizers`."""
    tokenizers = import_rival()
    ids = {token: i for i, token in enumerate(tokenizer.vocabulary)}
    model = tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100)
    library = tokenizers.Tokenizer(model)
    library.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=tokenizer.lowercase)
    library.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    library.post_processor = tokenizers.processors.BertProcessing(
        ("[SEP]", tokenizer.sep_id), ("[CLS]", tokenizer.cls_id)
    )
    library.add_special_tokens(list(SPECIAL_TOKENS))
    library.enable_padding(pad_id=tokenizer.pad_id)
    return library


def run_ours(dataset):
    return [ids.numpy() for ids in dataset]


def run_rival(library, texts):
    rows = []
    for start in range(0, len(texts), BATCH):
        batch = library.encode_batch_fast(texts[start : start + BATCH])
        rows.append(np.array([encoding.ids for encoding in batch], "int32"))
    return rows


def measure(texts, repeats):
    """Seconds of each side for all texts, `repeats` times in turn."""
    tokenizer = WordPieceTokenizer.build(texts[:20_000], vocabulary_size=6000, min_count=2)
    library = rival(tokenizer)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(BATCH).map(tokenizer)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    dataset = dataset.with_options(options)
    sides = {
        "kerasattn": lambda: run_ours(dataset),
        "tokenizers": lambda: run_rival(library, texts),
    }
    results = [side() for side in sides.values()]  # once to warm up
    for ours, theirs in zip(*results):
        np.testing.assert_array_equal(ours, theirs)
    seconds = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="tokenizers-benchmark", help="folder for the numbers")
    parser.add_argument("--small", action="store_true", help="a run of seconds, for tests")
    settings = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):  # before threads are started
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    texts = chitchat_questions()
    texts = texts[:500] if settings.small else texts * max(1, 100_000 // len(texts))
    characters = sum(map(len, texts))
    seconds = measure(texts, repeats=2 if settings.small else 7)
    rates = {name: [characters / s for s in times] for name, times in seconds.items()}
    print(f"{len(texts)} texts, {characters} characters, one core")
    for name, rate in rates.items():
        print(
            f"{name:12} {np.median(rate) / 1e6:6.2f} million characters a second, "
            f"{min(rate) / 1e6:.2f} to {max(rate) / 1e6:.2f} in {len(rate)} runs"
        )
    ratio = np.median([b / a for a, b in zip(seconds["kerasattn"], seconds["tokenizers"])])
    result = {
        "characters_per_second": round(float(np.median(rates["kerasattn"]))),
        "characters_per_second_of_tokenizers": round(float(np.median(rates["tokenizers"]))),
        "wordpiece_vs_tokenizers": round(float(ratio), 3),
    }
    folder = Path(settings.output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizers.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
