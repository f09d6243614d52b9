"""Trains a UniVAE on sentences, then samples, rebuilds and edits sentences scale by scale.

    python examples/univae.py --output univae-cantonese

trains on short Cantonese sentences (the package pycantonese: of 121,000, the 82,000 of 4 to 20
characters) and writes into the folder model.keras, a SavedModel (strings to latents and back),
report.md, report.json and pictures. A run that was stopped, by Ctrl-C or by a power cut, goes on
with the same command and --resume. With --steps its weights are then, to the last bit, those of a
run that was not stopped; with --minutes it does the number of steps that was planned last.

Source: Su Jianlin, "UniVAE: a Transformer-based single-model, multi-scale VAE", 2021,
https://kexue.fm/archives/8475.
"""

import hashlib
import importlib.metadata
import math
import os
import platform
import re
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if __name__ == "__main__" and sys.platform == "linux" and "GLIBC_TUNABLES" not in os.environ:
    # TensorFlow gives a step's memory back and takes it anew in the next: with pages of 4 kB, a
    # fifth of a step on a CPU is spent on that. glibc asks for huge pages as the process starts:
    # the script starts again, before the seconds that imports take.
    os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    os.execv(sys.executable, sys.orig_argv)

import keras
import numpy as np

import kerasattn
from kerasattn import data
from kerasattn.export import export_latent_text
from kerasattn.models import UniVAE, load_model
from kerasattn.plotting import latent_text_pictures
from kerasattn.tokenizers import SPECIAL_TOKENS, CharacterTokenizer, WordPieceTokenizer
from kerasattn.training import evaluation, keep_memory
from kerasattn.training.callbacks import AnnealWeight, CodeUsage
from kerasattn.training.checkpoint import ResumableCheckpoint
from kerasattn.training.progress import Progress
from kerasattn.training.report import to_markdown
from kerasattn.training.runs import (
    check_installed,
    check_numbers,
    check_writable,
    command_line,
    one_line_errors,
    option,
    read_settings,
    write_whole,
)
from kerasattn.training.schedules import WarmupCosine

# === Settings ===
DEFAULTS = dict(
    corpus="cantonese",
    limit=None,  # sentences of the corpus to use
    held_out=2000,  # sentences
    vocabulary_size=5000,  # at most
    max_length=22,  # tokens, [CLS] and [SEP] among them
    min_length=6,  # tokens: Cantonese sentences of 4 to 20 characters
    num_layers=5,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=256,
    embedding_dim=64,
    initializer_range=0.06,  # small models learn faster from more than BERT's 0.02
    num_latent_layers=4,
    latent_dim=24,
    latent="vmf",
    kappa=224.0,
    swap_noise=0.09,  # of latents, so that samples of the prior read like sentences
    isotropy_weight=0.06,  # of a loss that makes sentences use all of their spheres, as samples do
    word_dropout=0.4,  # at the start, and none at the end: words are learned from the latents
    free_bits=1.0,  # a dimension of a Gaussian latent
    codebook_size=512,
    length="fixed",
    dropout=0.0,
    minutes=13.0,  # of training, where steps is None
    steps=None,
    batch_size=64,
    one_length=False,  # batches of one length: less to compile, more to compute
    xla=True,  # which takes half a minute to compile, and is faster from then on
    learning_rate=6e-3,
    warmup_steps=150,
    clip_norm=1.0,
    seed=0,
    report_every=100,  # steps
    save_every=250,  # steps
    num_samples=1000,
    num_edited=200,  # sentences whose latents are replaced
)
SMALL = dict(
    limit=1000,
    held_out=100,
    num_layers=3,
    num_heads=2,
    hidden_dim=32,
    intermediate_dim=64,
    embedding_dim=None,
    num_latent_layers=2,
    latent_dim=8,
    steps=12,
    batch_size=32,
    one_length=True,
    xla=False,
    warmup_steps=5,
    report_every=10,
    save_every=10,
    num_samples=40,
    num_edited=8,
)
CHINESE = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# What numbers may be: at least so much, or above it.
AT_LEAST = dict.fromkeys(
    ("kappa", "swap_noise", "word_dropout", "isotropy_weight", "dropout", "seed"), 0
)
AT_LEAST |= dict.fromkeys(("steps", "batch_size", "held_out", "num_latent_layers", "num_heads"), 1)
AT_LEAST |= dict.fromkeys(("hidden_dim", "intermediate_dim", "embedding_dim", "latent_dim"), 1)
AT_LEAST |= dict(num_layers=2, limit=2, max_length=3)
ABOVE = dict(minutes=0, learning_rate=0, initializer_range=0)


def parse_arguments(arguments):
    numbers = (
        ("minutes", float, "time to train, if there is no --steps"),
        ("steps", int, "training steps, however long they take"),
        ("batch_size", int, "sentences in a batch"),
        ("learning_rate", float, "its peak, after the warm-up"),
        ("num_layers", int, "blocks"),
        ("num_latent_layers", int, "blocks with a latent, the upper ones"),
        ("num_heads", int, "attention heads"),
        ("hidden_dim", int, "width of the model"),
        ("intermediate_dim", int, "width inside the feed-forward parts"),
        ("embedding_dim", int, "width of the embeddings"),
        ("initializer_range", float, "standard deviation of the weights at the start"),
        ("latent_dim", int, "width of a latent"),
        ("kappa", float, "concentration of von Mises-Fisher latents"),
        ("swap_noise", float, "share of latents that training swaps for other sentences'"),
        ("isotropy_weight", float, "how much latents are made to use all of their spheres"),
        ("word_dropout", float, "share of words that are hidden when training starts"),
        ("dropout", float, "rate of dropout"),
        ("max_length", int, "tokens of the longest sentence, with [CLS] and [SEP]; by default what "
         "98%% of a FILE's sentences need, at most 64"),
        ("limit", int, "use only so many sentences of the corpus"),
        ("held_out", int, "sentences that are held out"),
        ("seed", int, "of everything random"),
    )  # fmt: skip
    epilog = "Settings that are not given are those at the top of this file."
    parser = command_line(__doc__, "univae-output", numbers, DEFAULTS, epilog=epilog)
    add = parser.add_argument
    add("--corpus", metavar="NAME", help="cantonese (default), chitchat (English questions), or a "
        "UTF-8 text file, one sentence a line")  # fmt: skip
    add("--resume", action="store_true", help="go on with the run that --output holds")
    add("--from", metavar="FOLDER", dest="start_from", help="start from the weights of a RoFormer "
        "(a folder with vocab.txt), or of a model.keras of this script")  # fmt: skip
    add("--latent", choices=["vmf", "gaussian", "quantized", "none"], help="kind of the latents")
    add("--length", choices=["fixed", "conditioned"], help="conditioned: the length is chosen when "
        "a sentence is written, and is not part of the code")  # fmt: skip
    return parser.parse_args(arguments)


def make_settings(arguments):
    """The defaults, then --small, then what a resumed run had, then what is given."""
    given = {k: v for k, v in vars(arguments).items() if v is not None}
    output, small = given.pop("output"), given.pop("small")
    resume = given.pop("resume")
    settings = {**DEFAULTS, "start_from": None, **(SMALL if small else {}), **given}
    if settings["corpus"] != "cantonese":
        settings["min_length"] = 3
        if "max_length" not in given:
            settings["max_length"] = None  # from the corpus
    check_numbers(settings, AT_LEAST, ABOVE)
    if resume:
        before = read_settings(output / "settings.json")
        if before is None:
            raise ValueError(
                f"{output} holds no run to go on with; leave out --resume to start one."
            )
        other = [f"{spelled(k)} {before.get(k)}" for k, v in given.items() if before.get(k) != v]
        if other:
            raise ValueError(f"The run in {output} was started with {', '.join(other)}: say the "
                             "same, or leave it out.")  # fmt: skip
        missing = ", ".join(sorted(settings.keys() - before.keys()))
        if missing:
            raise ValueError(f"{output / 'settings.json'} is not of this script: no {missing}.")
        settings = before
        check_numbers(settings, AT_LEAST, ABOVE)
    elif small:
        settings["small"] = True  # the report says so, also that of a run that was resumed
    check_installed(["matplotlib", "sacrebleu"], "examples")  # the report needs them at the end
    check_writable(output)
    return settings, output, resume, given


def counted(number, noun="sentence"):
    """A number and what it counts, in as many words as it asks for."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def spelled(name):
    """The option of a setting, as it is written."""
    return "--from" if name == "start_from" else option(name)


# === What there is to start from ===
def load_start(settings):
    """The model and the tokenizer of --from, None where they are to be made."""
    start = settings["start_from"]
    if start is None:
        return None, None
    if start.endswith(".keras"):
        model = load_model(start, compile=False)
        if getattr(model, "tokenizer", None) is None:
            raise ValueError(f"{start} is no model of this script: it has no tokenizer.")
        return model, model.tokenizer
    return None, WordPieceTokenizer.load(start)


def settle(settings, model, given):
    """Takes a model's own settings, and refuses options that ask for others."""
    config = model.get_config()
    config["latent"] = config["latent"] or "none"
    own = {k: config[k] for k in DEFAULTS.keys() & config.keys() - {"seed", "vocabulary_size"}}
    other = [f"{option(k)} {own[k]}" for k in sorted(own.keys() & given) if given[k] != own[k]]
    if other:
        raise ValueError(f"The model has {', '.join(other)}: say the same, or leave it out.")
    settings.update(own)


# === Sentences ===
def read_corpus(settings, tokenizer=None):
    """The sentences to train on and those held out, as a tokenizer gives them back.

    Without one, as that will which is made of them: lower case, say. What is then the same
    sentence is on one side only.
    """
    corpus = settings["corpus"]
    known = {"cantonese": data.cantonese_sentences, "chitchat": data.chitchat_questions}
    sentences = known[corpus]() if corpus in known else data.text_file(corpus)
    tokenizer = tokenizer or kind_of_tokenizer(sentences)(SPECIAL_TOKENS)
    normalize = getattr(tokenizer, "normalize", list)
    sentences = list(dict.fromkeys(text for text in normalize(sentences) if text))
    if len(sentences) < 2:
        raise ValueError(
            f"{corpus} has {counted(len(sentences), 'different sentence')} as the tokenizer reads "
            "them, without control characters; expected two or more."
        )
    if settings["limit"]:
        order = np.random.default_rng(settings["seed"]).permutation(len(sentences))
        sentences = [sentences[i] for i in order[: settings["limit"]]]
    held_out = min(settings["held_out"], max(1, len(sentences) // 10))
    return data.train_test_split(sentences, held_out, settings["seed"])


def kind_of_tokenizer(sentences):
    """Characters for Chinese, pieces of words for the rest."""
    text = "".join(sentences)
    chinese = len(CHINESE.findall(text)) > 0.3 * len(text.replace(" ", ""))
    return CharacterTokenizer if chinese else WordPieceTokenizer


def make_tokenizer(settings, training):
    return kind_of_tokenizer(training).build(training, settings["vocabulary_size"])


# === Model ===
def build_model(settings, tokenizer):
    names = ["num_latent_layers", "latent_dim", "kappa", "free_bits", "swap_noise"]
    if settings["latent"] == "vmf":
        names.append("isotropy_weight")
    shared = dict(
        {name: settings[name] for name in names},
        latent=None if settings["latent"] == "none" else settings["latent"],
        codebook_size=settings["codebook_size"],
        max_length=settings["max_length"],
        length=settings["length"],
        dropout=settings["dropout"],
        word_dropout=settings["word_dropout"],
        unk_id=tokenizer.unk_id,
        tokenizer=tokenizer,
        seed=settings["seed"],
    )
    if settings["start_from"]:
        return UniVAE.from_pretrained(settings["start_from"], **shared)
    return UniVAE(
        tokenizer.vocabulary_size,
        **{
            name: settings[name]
            for name in (
                "num_layers",
                "num_heads",
                "hidden_dim",
                "intermediate_dim",
                "embedding_dim",
                "initializer_range",
            )
        },
        pad_id=tokenizer.pad_id,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        **shared,
    )


def train(model, token_ids, settings, checkpoint, keep_settings):
    """Fits the model to what is left of the training; returns what tells how fast it went."""
    began = time.monotonic()
    # Matrices learn by Muon, which takes half the steps that Adam takes here; embeddings,
    # biases and norms by the Adam that is part of it.
    optimizer = keras.optimizers.Muon(
        adam_lr_ratio=0.5,
        adam_beta_2=0.98,
        weight_decay=None,
        adam_weight_decay=None,
        global_clipnorm=settings["clip_norm"],
    )
    model.compile(optimizer, jit_compile="auto" if settings["xla"] else False)
    if checkpoint.path.exists():
        checkpoint.restore(model)

    lengths = buckets(
        settings["min_length"], settings["max_length"], 1 if settings["one_length"] else 4
    )

    def fit(steps, planned, progress):
        guides = []
        if model.latent == "gaussian":
            guides = [AnnealWeight(steps=max(1, planned // 2))]
        elif model.latent == "quantized":
            guides = [CodeUsage()]
        elif model.latent == "vmf" and settings["isotropy_weight"]:
            weight = dict(end=settings["isotropy_weight"], attribute="isotropy_weight")
            guides = [AnnealWeight(steps=planned, **weight)]
        if settings["word_dropout"]:
            weight = dict(start=settings["word_dropout"], end=0.0, attribute="word_dropout")
            guides.append(AnnealWeight(steps=planned, ramp=0.7, **weight))
        warmup, peak = min(settings["warmup_steps"], planned // 2), settings["learning_rate"]
        guides.append(WarmupCosine(peak, planned, warmup))
        for part in checkpoint.parts(steps, settings["report_every"]):
            batches = data.bucketed_batches(
                token_ids,
                settings["batch_size"],
                lengths,
                seed=settings["seed"],
                skip_batches=part.pop("skip_batches"),
                pad_id=model.pad_id,
                vocabulary_size=model.vocabulary_size,
            )
            callbacks = [*guides, checkpoint, progress]
            model.fit(batches, shuffle=False, verbose=0, callbacks=callbacks, **part)
        return progress

    if settings["steps"] is None:
        # As many steps as there is time for; the first ones, within the warm-up, tell how fast.
        # Resumed among these, a few more tell how fast it is now.
        trial = settings.setdefault("trial_steps", settings["report_every"])
        steps = max(trial, checkpoint.steps + trial // 5)
        progress = fit(steps, 10**6, Progress(steps, checkpoint.steps))
        before = settings.get("trained_seconds", 0.0)
        for share in (0.3, 0.7, 1.0):  # of what is left, until it is planned anew
            spent = settings["trained_seconds"] = before + time.monotonic() - began
            if not checkpoint.interrupted:
                more = progress.steps_within(60 * settings["minutes"] - spent, shapes=len(lengths))
                settings["steps"] = max(5 * trial, checkpoint.steps + more)
                print(f"{settings['steps']:,} steps fit into {settings['minutes']} minutes")
            keep_settings()
            left = settings["steps"] - checkpoint.steps if settings["steps"] else 0
            if checkpoint.interrupted or left <= 0:
                return progress
            progress.total_steps = settings["steps"]
            fit(checkpoint.steps + math.ceil(share * left), settings["steps"], progress)
        return progress
    return fit(settings["steps"], settings["steps"], Progress(settings["steps"], checkpoint.steps))


def buckets(shortest, longest, count):
    """Lengths of batches, evenly spaced: each is compiled once, and few are mostly padding."""
    return sorted({int(n) for n in np.linspace(shortest - 1, longest, count + 1)[1:]})


# === From start to finish ===
def main(arguments=None):
    with one_line_errors():
        return run(*make_settings(parse_arguments(arguments)))


def run(settings, output, resume, given):
    """All of the job; returns the exit status."""
    seconds, began = {}, time.perf_counter()

    def phase(name):
        nonlocal began
        seconds[name], began = time.perf_counter() - began, time.perf_counter()

    def keep_settings():
        write_whole(output / "settings.json", settings)

    keep_memory()
    keras.utils.set_random_seed(settings["seed"])
    checkpoint = ResumableCheckpoint(output / "training.npz", every=settings["save_every"])
    model, tokenizer = load_start(settings)
    if model is not None:
        settle(settings, model, given)
    training, held_out = read_corpus(settings, tokenizer)
    tokenizer = tokenizer or make_tokenizer(settings, training)
    token_ids = tokenizer.encode_ragged(training)
    lengths = np.array([len(ids) for ids in token_ids])
    if settings["max_length"] is None:
        settings["max_length"] = int(np.clip(np.quantile(lengths, 0.98), 8, 64))
    sizes = settings["min_length"], settings["max_length"]
    token_ids = [ids for ids in token_ids if sizes[0] <= len(ids) <= sizes[1]]
    if not token_ids:
        raise ValueError(f"No sentence of {settings['corpus']} has from {sizes[0]} to {sizes[1]} "
                         "tokens: cut the sentences, or give --max-length.")  # fmt: skip
    if model is None:
        model = build_model(settings, tokenizer)
        settle(settings, model, given)
    text = "\n".join(training).encode("utf-8", "replace")
    fingerprint = hashlib.blake2b(text, digest_size=8).hexdigest()
    if resume and settings.get("corpus_hash") != fingerprint:
        raise ValueError(f"The corpus is not the one with which the run in {output} was started.")
    settings["corpus_hash"] = fingerprint
    if resume and not checkpoint.path.exists():
        print(f"The run in {output} was stopped before its first checkpoint: it starts anew.")
    if not resume:
        if checkpoint.path.exists() or (output / "model.keras").exists():
            print(f"The earlier run in {output} is replaced; --resume would go on with it.")
        checkpoint.path.unlink(missing_ok=True)
    keep_settings()
    print(f"{counted(len(training))}, {len(token_ids):,} of {sizes[0] - 2} to {sizes[1] - 2} "
          f"tokens to train on, {len(held_out):,} held out, vocabulary "
          f"{tokenizer.vocabulary_size:,}, {model.count_params():,} parameters")  # fmt: skip
    phase("reading")

    progress = train(model, token_ids, settings, checkpoint, keep_settings)
    if checkpoint.interrupted:
        print(f"Stopped after step {checkpoint.steps}; --resume goes on from there.")
        return 130
    phase("training")
    model.save(output / ".model.keras")
    os.replace(output / ".model.keras", output / "model.keras")
    export_latent_text(model, output / "saved_model")
    phase("saving")

    print("Evaluating on held-out sentences")
    characters = isinstance(tokenizer, CharacterTokenizer)
    scores, texts, (sentences, latents) = evaluation.evaluate(
        model,
        training,
        held_out,
        sizes=(4, 20) if characters else None,
        split=list if characters else str.split,
        num_samples=settings["num_samples"],
        num_edited=settings["num_edited"],
        seed=settings["seed"],
    )
    phase("evaluation")
    pictures = latent_text_pictures(model, checkpoint.history, texts["path"], sentences, latents)
    for name, figure in pictures.items():
        figure.savefig(output / name)
    phase("pictures")

    # Of the steps that compiled nothing; "seconds" has all of them.
    step, batch = progress.steady_seconds(), min(settings["batch_size"], len(token_ids))
    tokens = batch * float(np.mean([len(ids) - 1 for ids in token_ids]))
    scores["speed"]["training_tokens_per_second"] = tokens / step if step else None
    report = {
        **scores,
        "seconds": seconds,
        "steps": checkpoint.steps,
        "parameters": model.count_params(),
        "sentences": {
            "training": len(training),
            "trained_on": len(token_ids),
            "held_out": len(held_out),
            "rebuilt": len(sentences),
        },
        "settings": settings,
        "versions": {
            "kerasattn": kerasattn.__version__,
            "keras": keras.__version__,
            "tensorflow": importlib.metadata.version("tensorflow"),
            "python": platform.python_version(),
        },
    }
    write_whole(output / "report.json", report)
    write_whole(output / "report.md", to_markdown(report, texts, pictures))
    samples, ratio = report["samples"], report["samples"]["perplexity_ratio"]
    print(f"Rebuilt exactly {scores['exact_match']:.1%}, characters "
          f"{scores['character_accuracy']:.1%}; samples' trigram perplexity "
          f"{samples['perplexity']:.0f}, {ratio:.2f} times that of held-out sentences. "
          f"See {output / 'report.md'}.")  # fmt: skip
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
