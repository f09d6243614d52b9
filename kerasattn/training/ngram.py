"""An interpolated n-gram model of characters, to judge text with a model that did not write it."""

import collections
import math

START, END = "\x02", "\x03"


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
        self.counts = [collections.Counter() for _ in range(order + 1)]
        for sentence in sentences:
            text = START * (order - 1) + sentence + END
            for i in range(order - 1, len(text)):
                for n in range(order + 1):  # n characters, the last of them text[i]
                    self.counts[n][text[i + 1 - n : i + 1]] += 1
        self.contexts = [collections.Counter() for _ in range(order)]
        for n in range(1, order + 1):
            for gram, count in self.counts[n].items():
                self.contexts[n - 1][gram[:-1]] += count
        self.num_characters = len(self.counts[1])
        self.weights = self._deleted_interpolation()

    def _deleted_interpolation(self):
        """Each n-gram votes for the order that predicts it best once it is left out itself."""
        votes = [1.0] + [0.0] * self.order  # a vote for the characters never seen
        for gram, count in self.counts[self.order].items():
            ratios = []
            for n in range(1, self.order + 1):
                tail = gram[self.order - n :]
                context = self.contexts[n - 1][tail[:-1]] - 1
                ratios.append((self.counts[n][tail] - 1) / context if context else 0.0)
            best = max(range(self.order), key=lambda k: (ratios[k], k))
            votes[best + 1] += count
        return [vote / sum(votes) for vote in votes]

    def log_probability(self, sentence):
        """Natural logarithm of p(sentence and its end), float."""
        text = START * (self.order - 1) + sentence + END
        total = 0.0
        for i in range(self.order - 1, len(text)):
            p = self.weights[0] / (self.num_characters + 1)
            for n in range(1, self.order + 1):
                gram = text[i + 1 - n : i + 1]
                context = self.contexts[n - 1][gram[:-1]]
                if context:
                    p += self.weights[n] * self.counts[n][gram] / context
            total += math.log(p)
        return total

    def perplexity(self, sentences):
        """exp of minus the mean log-probability a character, ends counted: float >= 1."""
        characters = sum(len(sentence) + 1 for sentence in sentences)
        if not characters:
            raise ValueError("The perplexity of no sentences is not defined.")
        return math.exp(-sum(map(self.log_probability, sentences)) / characters)
