"""Metrics: perplexity while training, and plain functions that compare strings."""

import collections

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class Perplexity(keras.metrics.Mean):
    """exp of the mean cross-entropy of the tokens, each weighed by its `sample_weight`.

    Args:
        name: str.

    Shapes:
        update_state(cross-entropies in nats (batch, length), sample_weight (batch, length)).

    Example:
    >>> import math
    >>> from kerasattn.training.metrics import Perplexity
    >>> metric = Perplexity()
    >>> metric.update_state([[math.log(4.0), 9.0]], sample_weight=[[1.0, 0.0]])
    >>> round(float(metric.result()), 4)
    4.0
    """

    def __init__(self, name="perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def result(self):
        return ops.exp(super().result())


# === Originals against what was made of them ===


def exact_match(originals, rebuilt):
    """The share of strings that are equal to the last character.

    Args:
        originals, rebuilt: lists of str, as many of one as of the other.

    Raises:
        ValueError: if there are none, or not as many of both.

    Example:
    >>> from kerasattn.training.metrics import exact_match
    >>> exact_match(["ab", "c"], ["ab", "C"])
    0.5
    """
    _check_pairs(originals, rebuilt)
    return sum(a == b for a, b in zip(originals, rebuilt)) / len(originals)


def character_accuracy(originals, rebuilt):
    """The share of the originals' characters that stand at the same place of what was rebuilt.

    Characters beyond an original's end count neither for nor against.

    Args:
        originals, rebuilt: lists of str, as many of one as of the other.

    Raises:
        ValueError: if there are none, or not as many of both, or the originals are all empty.

    Example:
    >>> from kerasattn.training.metrics import character_accuracy
    >>> character_accuracy(["abc", "d"], ["axc", "dd"])
    0.75
    """
    _check_pairs(originals, rebuilt)
    total = sum(map(len, originals))
    if not total:
        raise ValueError("The originals have no characters.")
    return sum(x == y for a, b in zip(originals, rebuilt) for x, y in zip(a, b)) / total


def bleu(originals, rebuilt, tokenize="char"):
    """Corpus BLEU from 0 to 100, by sacrebleu, of characters unless `tokenize` says otherwise.

    Raises:
        ValueError: if sacrebleu is not installed, or there are not as many of both.

    Source: https://aclanthology.org/W18-6319.
    """
    _check_pairs(originals, rebuilt)
    return _sacrebleu().corpus_bleu(rebuilt, [originals], tokenize=tokenize).score


def chrf(originals, rebuilt):
    """Corpus chrF from 0 to 100, by sacrebleu: the F2 of n-grams of up to six characters.

    Args:
        originals, rebuilt: lists of str, as many of one as of the other.

    Raises:
        ValueError: if sacrebleu is not installed, or there are not as many of both.

    Source: https://aclanthology.org/W15-3049.
    """
    _check_pairs(originals, rebuilt)
    return _sacrebleu().corpus_chrf(rebuilt, [originals]).score


def ngram_precision(originals, rebuilt, max_n=3, split=list):
    """The plain mean of the precisions of 1-grams to `max_n`-grams, from 0 to 1.

    The precision of n-grams is the share of those of what was rebuilt that stand in the original
    too, each as often as there at most, over all texts; 0 where there are none. What BLEU is built
    upon, without its geometric mean and its penalty for short texts.

    Args:
        originals, rebuilt: lists of str, as many of one as of the other.
        max_n: int >= 1.
        split: a function from a string to its tokens; `list` gives characters, `str.split` words.

    Raises:
        ValueError: if there are none, or not as many of both, or max_n is below 1.

    Example:
    >>> from kerasattn.training.metrics import ngram_precision
    >>> ngram_precision(["the cat sat"], ["the cat the"], max_n=2, split=str.split)  # 2/3, 1/2
    0.5833333333333333

    Source: https://aclanthology.org/P02-1040, section 2.1.
    """
    _check_pairs(originals, rebuilt)
    _check_n("max_n", max_n)
    precisions = []
    for n in range(1, max_n + 1):
        found = total = 0
        for original, text in zip(originals, rebuilt):
            there, here = (_ngrams(split(x), n) for x in (original, text))
            found, total = found + (here & there).total(), total + here.total()
        precisions.append(found / max(1, total))
    return sum(precisions) / max_n


# === A set of strings ===


def distinct_n(texts, n=2, split=list):
    """The number of different n-grams over that of all: low where texts repeat themselves.

    It falls as texts are added: compare sets of the same size only.

    Args:
        texts: list of str.
        n: int >= 1.
        split: a function from a string to its tokens; `list` gives characters, `str.split` words.

    Returns:
        float from 0 to 1; 0 where no text has n tokens.

    Example:
    >>> from kerasattn.training.metrics import distinct_n
    >>> distinct_n(["abab", "ab"])  # ab ba ab, ab: two of four
    0.5

    Source: https://arxiv.org/abs/1510.03055, section 5.
    """
    _check_n("n", n)
    grams = collections.Counter()
    for text in texts:
        grams.update(_ngrams(split(text), n))
    return len(grams) / max(1, grams.total())


def self_bleu(texts, tokenize="char"):
    """The mean BLEU of each text against all others, from 0 to 100: high where texts are alike.

    It takes the time of all pairs: give it some hundreds of texts.

    Args:
        texts: list of str, two or more.
        tokenize: of sacrebleu; "char" compares characters, "13a" words.

    Raises:
        ValueError: if sacrebleu is not installed, or there are fewer than two texts.

    Source: https://arxiv.org/abs/1802.01886, section 3.1.
    """
    if isinstance(texts, str) or len(texts) < 2:
        raise ValueError(f"self_bleu compares two texts or more, got {texts!r}.")
    metric = _sacrebleu().BLEU(tokenize=tokenize, effective_order=True)
    texts = list(texts)
    scores = [
        metric.sentence_score(text, texts[:i] + texts[i + 1 :]).score
        for i, text in enumerate(texts)
    ]
    return sum(scores) / len(scores)


def copied(texts, corpus):
    """The share of texts that stand word for word in a corpus.

    Example:
    >>> from kerasattn.training.metrics import copied
    >>> copied(["a", "b", "b", "c"], {"b"})
    0.5
    """
    corpus = set(corpus)
    return sum(text in corpus for text in texts) / max(1, len(texts))


def distribution_distances(values, others):
    """How far two samples of numbers, lengths say, are apart.

    Returns:
        dict of `total_variation` (half the sum of the differences of the values' shares; 0 where
        they are alike, 1 where they have no value in common) and `kolmogorov_smirnov` (the
        largest difference of the distribution functions).

    Example:
    >>> from kerasattn.training.metrics import distribution_distances
    >>> distribution_distances([1, 2, 2, 3], [2, 2, 3, 3])
    {'total_variation': 0.25, 'kolmogorov_smirnov': 0.25}
    """
    if not len(values) or not len(others):
        raise ValueError("Distributions of no values cannot be compared.")
    grid, place = np.unique(np.concatenate([values, others]), return_inverse=True)
    share = [
        np.bincount(part, minlength=len(grid)) / len(part)
        for part in (place[: len(values)], place[len(values) :])
    ]
    difference = share[0] - share[1]
    return {
        "total_variation": float(np.abs(difference).sum() / 2),
        "kolmogorov_smirnov": float(np.abs(np.cumsum(difference)).max()),
    }


def _ngrams(tokens, n):
    return collections.Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _sacrebleu():
    try:
        import sacrebleu
    except ImportError:
        message = 'BLEU and chrF need sacrebleu: pip install "kerasattn[examples]".'
        raise ValueError(message) from None
    return sacrebleu


def _check_n(name, n):
    if n < 1:
        raise ValueError(f"{name} must be at least 1, got {n}.")


def _check_pairs(originals, rebuilt):
    if isinstance(originals, str) or isinstance(rebuilt, str):
        raise ValueError("Expected two lists of strings, got a string.")
    if len(originals) != len(rebuilt) or not len(originals):
        raise ValueError(
            f"Expected as many strings of both, at least one: got {len(originals)} originals and "
            f"{len(rebuilt)} rebuilt."
        )
