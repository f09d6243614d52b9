"""What an evaluation found, as a page to read."""

import re
from pathlib import Path

SMALL = (
    "**A run with `--small`: it shows the mechanics, not what a trained model does. Its numbers "
    "and sentences are those of a few steps.**"
)


def to_markdown(report, texts, pictures):
    """The page of a `UniVAE`'s evaluation: its numbers, and the four displays of the paper.

    Args:
        report: dict, the scores of `evaluation.evaluate`, and `parameters`, `sentences` (numbers
            of `training`, `trained_on`, `held_out` and `rebuilt`), `seconds` and `settings`, dicts.
            Where the settings have `small`, the page begins with what such a run does not show.
        texts: dict, the texts of `evaluation.evaluate`.
        pictures: names of picture files beside the page.

    Returns:
        str, Markdown.
    """
    samples, kept, sizes = report["samples"], report["replacements"], report["sentences"]
    layers = len(report["latent_use"])
    lower, speed = layers // 2, report["speed"]
    rows = [
        ("rebuilt exactly (greedy)", report["exact_match"]),
        ("characters rebuilt at their place", report["character_accuracy"]),
        ("BLEU of characters", report["bleu"]),
        ("perplexity of a token, given the rest and the code", report["perplexity"]),
        ("rate of the code, bits", report["rate_bits"]["total"]),
        ("samples: trigram perplexity", samples["perplexity"]),
        ("held-out sentences: trigram perplexity", samples["perplexity_held_out"]),
        ("... their ratio", samples["perplexity_ratio"]),
        ("samples: distinct-2, over that of held-out sentences", samples["distinct_2_ratio"]),
        ("samples: copies of training sentences", samples["copies"]),
        ("samples: mean length", samples["mean_length"]),
        ("held-out sentences: mean length", samples["mean_length_held_out"]),
        ("distance of both lengths (total variation)", samples["length_total_variation"]),
        ("training tokens per second", speed["training_tokens_per_second"]),
        ("generated tokens per second", speed["generated_tokens_per_second"]),
        *((f"seconds of {name}", seconds) for name, seconds in report["seconds"].items()),
    ]
    names = ["content", "function_words", "punctuation", "length", "pattern"]
    originals = texts["originals"]
    shown = [i for i, text in enumerate(originals) if len(text) > 5][:6]
    edits = [f"result {i + 1}" for i in range(6)]
    parts = [
        "# UniVAE",
        *([SMALL] if report["settings"].get("small") else ()),
        f"{sizes['training']:,} sentence{'' if sizes['training'] == 1 else 's'}, "
        f"{sizes['trained_on']:,} of them of a length that was trained on, "
        f"{sizes['held_out']:,} held out, {sizes['rebuilt']:,} of these rebuilt; "
        f"{report['parameters']:,} parameters, {layers} latents.",
        "## Numbers",
        table(["on held-out sentences", ""], rows),
        "## Random samples",
        "Greedy, from latents of the prior.",
        table(["", "sample"], [(i + 1, t) for i, t in enumerate(texts["samples"][:20])]),
        "## Original and reconstruction",
        table(["original", "reconstruction"], list(zip(originals, texts["rebuilt"]))[:20]),
        f"## The lower half of the latents (1 to {lower} of {layers}) replaced",
        table(["original", *edits], [(originals[i], *texts["lower half"][i]) for i in shown]),
        f"## The top layer's latent ({layers}) replaced",
        table(["original", *edits], [(originals[i], *texts["top layer"][i]) for i in shown]),
        "## What a replacement keeps",
        "Shares of the original's content words, of its function words, the same punctuation, the "
        "same number of words, and of the pattern that function words and punctuation make.",
        table(["replaced", *names], [(n, *(row[k] for k in names)) for n, row in kept.items()]),
        _verdict(kept),
        "Drop in character accuracy where one layer's latent is drawn anew:",
        table(["latent", "drop"], [(i + 1, x) for i, x in enumerate(report["latent_use"])]),
        "## The same code at several lengths",
    ]
    if "lengths" in texts:
        lengths, lines = texts["lengths"]
        header = ["original", *(f"{n} tokens" for n in lengths)]
        parts.append(table(header, [(a, *line) for a, line in zip(originals, lines)]))
    else:
        parts.append('The length is part of this code. `--length conditioned` trains a model whose '
                     "length is chosen when it writes.")  # fmt: skip
    path = texts["path"]
    parts += ["## From one sentence to another", "The first and the last are the originals."]
    parts.append(table(["step", ""], list(enumerate(path))))
    parts += ["## Pictures", *(f"![{Path(name).stem}]({name})" for name in pictures)]
    parts.append(f"The attention is that of writing: {_escape(path[0])}")
    settings = report["settings"].items()
    parts += ["## Settings", _escape(", ".join(f"{name} {value}" for name, value in settings))]
    return "\n\n".join(parts) + "\n"


def _verdict(kept):
    """Whether the paper's finding on scales holds for these shares."""
    low, top = kept["lower half"], kept["top layer"]
    if None in (low["content"], top["content"]):
        return ""
    agrees = low["content"] > top["content"] and top["pattern"] > low["pattern"]
    return (
        "The paper finds that new lower latents leave the topic and a new top one the pattern: "
        f"{'so does this model' if agrees else 'this model does not'}. It keeps "
        f"{low['content']:.0%} of the content and {low['pattern']:.0%} of the pattern with the "
        f"lower half replaced, {top['content']:.0%} and {top['pattern']:.0%} with the top layer's."
    )


def table(header, rows):
    """A Markdown table.

    Args:
        header: list of str.
        rows: lists of values; None becomes a dash.

    Example:
    >>> from kerasattn.training.report import table
    >>> print(table(["model", "error"], [["LSTM", 0.25]]))
    | model | error |
    | --- | --- |
    | LSTM | 0.250 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_escape, line)) + " |" for line in lines)


def _escape(value):
    """A value as text that Markdown leaves alone."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return re.sub(r"([\\`*_<>|#\[\]])", r"\\\1", str(value)) if value != "---" else value
