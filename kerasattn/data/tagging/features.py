"""Features of characters, as classical CRFs take them."""

import collections
import unicodedata

import numpy as np

OFFSETS = ((-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2), (-1, 1))
BEFORE, BEHIND = "<s>", "</s>"


class CharacterFeatures:
    """Features of each character: those around it, their kinds, and words of a lexicon.

    For every template of offsets the characters at these offsets, joined, are a feature: (-1, 0) is
    the pair that the character ends. Besides there are the kinds of the character and its
    neighbours (letter, digit, ...), and with a lexicon the longest word that begins, goes on and
    ends there. Each feature f(x, t) stands for the indicators of the field's papers, one with every
    tag: s(y_t, x, t) = [f and y_t = tag]. Those of pairs of tags t(y_t-1, y_t) are the transitions
    of `layers.CRF`.

    Args:
        offsets: tuples of ints.
        lexicon: `Lexicon` or None.
        min_count: int >= 1, how often a feature must come in the texts of `fit`.

    Example:
    >>> import keras
    >>> from kerasattn import layers
    >>> from kerasattn.data.tagging import CharacterFeatures
    >>> features = CharacterFeatures(offsets=[(0,), (-1, 0)])
    >>> features.strings("北京")[1]
    ['0=京', '-1,0=北京', 'kinds=LoLo</s>']
    >>> ids = features.fit(["北京", "南京"]).encode(["北京"], length=3)
    >>> ids.shape, bool((ids[0, 2] == 0).all())
    ((1, 3, 3), True)
    >>> inputs = keras.Input(ids.shape[1:], dtype="int32")  # a feature-based CRF
    >>> emissions = layers.FeatureScores(features.num_features, num_tags=4)(inputs)
    >>> model = keras.Model(inputs, layers.CRF()(emissions))

    Source: https://repository.upenn.edu/cis_papers/159, equation 1.
    """

    def __init__(self, offsets=OFFSETS, lexicon=None, min_count=1):
        self.offsets = [tuple(template) for template in offsets]
        self.lexicon, self.min_count = lexicon, min_count
        self._ids = {}

    @property
    def num_features(self):
        """How many features `fit` has found; ids are 1 to that number."""
        return len(self._ids)

    @property
    def num_templates(self):
        """How many features a character has."""
        return len(self.offsets) + 1 + (3 if self.lexicon else 0)

    def strings(self, text):
        """The features of each character: a list of lists of str, as crfsuite takes them."""
        size = len(text)
        get = lambda i: BEFORE if i < 0 else BEHIND if i >= size else text[i]
        kinds = [unicodedata.category(character) for character in text]
        kind = lambda i: BEFORE if i < 0 else BEHIND if i >= size else kinds[i]
        names = [",".join(map(str, template)) for template in self.offsets]
        rows = []
        for t in range(size):
            row = [
                f"{name}={''.join(get(t + offset) for offset in template)}"
                for name, template in zip(names, self.offsets)
            ]
            rows.append([*row, f"kinds={kind(t - 1)}{kind(t)}{kind(t + 1)}"])
        if self.lexicon:
            for row, lengths in zip(rows, self._words(text)):
                row += [f"{name}={n}" for name, n in zip(("begins", "goes on", "ends"), lengths)]
        return rows

    def fit(self, texts):
        """Numbers the features of the texts; returns self."""
        counts = collections.Counter(
            feature for text in texts for row in self.strings(text) for feature in row
        )
        kept = [feature for feature, count in counts.items() if count >= self.min_count]
        self._ids = {feature: i for i, feature in enumerate(kept, 1)}
        return self

    def encode(self, texts, length=None):
        """Ids of features: int32 (texts, length, num_templates), 0 for unknown ones and padding."""
        length = max(map(len, texts), default=0) if length is None else length
        ids = np.zeros((len(texts), length, self.num_templates), "int32")
        for i, text in enumerate(texts):
            for t, row in enumerate(self.strings(text)[:length]):
                ids[i, t] = [self._ids.get(feature, 0) for feature in row]
        return ids

    def _words(self, text):
        """The lengths of the longest words that begin, go on and end at each character."""
        lengths = [[0, 0, 0] for _ in text]
        for start, end, _ in self.lexicon.find(text):
            for t in range(start, end):
                place = 0 if t == start else 2 if t == end - 1 else 1
                lengths[t][place] = max(lengths[t][place], end - start)
        return lengths
