"""An interpolated n-gram model of characters, to judge text with a model that did not write it."""

import math

import numpy as np

START, END = 2, 3  # control characters, which no sentence has


class CharacterNGram:
    """p(c | h) = sum over n of weight_n · count(h_n c) / count(h_n), down to 1 / (characters + 1).

    The weights come from deleted interpolation on the training sentences themselves.

    Args:
        sentences: list of str, to count in.
        order: int >= 1, 3 for trigrams.

    Raises:
        ValueError: for no sentences, or an order below 1.

    Example:
    >>> from kerasattn.training.ngram import CharacterNGram
    >>> model = CharacterNGram(["abab", "abba"], order=2)
    >>> model.perplexity(["abab"]) < model.perplexity(["aabb"])
    True

    Source: Jelinek and Mercer, 1980; weights: Brants, "TnT", 2000 (arXiv cs/0003055), figure 1.
    """

    def __init__(self, sentences, order=3):
        if order < 1 or not sentences:
            raise ValueError(f"Needs sentences and an order of 1 or more, got order {order}.")
        self.order = order
        text, counted = self._flatten(sentences)
        self._characters, symbols = np.unique(text, return_inverse=True)
        self._tables = []  # for each n: known n-grams, their counts, their contexts' counts
        shares = []  # for each n: of each place, its n-gram's share of the context, itself left out
        grams = np.zeros(len(text), "int64")  # of n characters, ending at each place
        for _ in range(order):
            before = np.roll(grams, 1)
            known, grams = np.unique(self._keys(before, symbols), return_inverse=True)
            counts = np.bincount(grams[counted], minlength=len(known))
            contexts = np.bincount(before[counted], minlength=before.max() + 1)
            self._tables.append((known, counts, contexts))
            context = contexts[before[counted]]
            shares.append((counts[grams[counted]] - 1) / np.maximum(context - 1, 1))
        self.num_characters = int(np.sum(self._tables[0][1] > 0))
        # Deleted interpolation: each place votes for the longest n that predicts it best.
        best = order - np.argmax(shares[::-1], axis=0)
        votes = np.bincount(best, minlength=order + 1)
        votes[0] = 1  # for the characters never seen
        self.weights = (votes / votes.sum()).tolist()

    def _flatten(self, sentences):
        """Code points of all sentences, begun and ended, and where those are that count."""
        marked = [chr(START) * (self.order - 1) + sentence + chr(END) for sentence in sentences]
        text = "".join(marked).encode("utf-32-le", "surrogatepass")
        ends = np.cumsum([len(sentence) for sentence in marked])
        counted = np.ones(ends[-1], bool)
        for i in range(self.order - 1):
            counted[np.concatenate([[0], ends[:-1]]) + i] = False
        return np.frombuffer(text, "uint32"), counted

    def _keys(self, before, symbols):
        """A number for each pair of what stands before and a character."""
        return before * len(self._characters) + symbols

    def log_probabilities(self, sentences):
        """ln p(c | h) of each sentence's characters and its end, one after the other, an array."""
        text, counted = self._flatten(sentences)
        symbols = _find(text, self._characters)
        grams = np.zeros(len(text), "int64")  # -1: never seen
        p = np.full(len(text), self.weights[0] / (self.num_characters + 1))
        for weight, (known, counts, contexts) in zip(self.weights[1:], self._tables, strict=True):
            before = np.roll(grams, 1)
            keys = np.where((before < 0) | (symbols < 0), -1, self._keys(before, symbols))
            grams = _find(keys, known)
            count = np.where(grams < 0, 0, counts[grams])
            context = np.where(before < 0, 0, contexts[before])
            p += weight * count / np.maximum(context, 1)
        return np.log(p[counted])

    def log_probability(self, sentence):
        """Natural logarithm of p(sentence and its end), float."""
        return float(self.log_probabilities([sentence]).sum())

    def perplexity(self, sentences):
        """exp of minus the mean log-probability a character, ends counted: float >= 1."""
        if not sentences:
            raise ValueError("The perplexity of no sentences is not defined.")
        return math.exp(-self.log_probabilities(sentences).mean())


def _find(values, table):
    """Where values stand in a sorted table, and -1 where they do not."""
    places = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.where(table[places] == values, places, -1)
