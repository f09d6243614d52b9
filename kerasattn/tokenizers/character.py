"""Text as a sequence of its unicode characters."""

from collections import Counter

import keras
import numpy as np

from kerasattn.tokenizers.base import SPECIAL_TOKENS, Tokenizer
from kerasattn.tokenizers.checks import check_texts


@keras.saving.register_keras_serializable(package="kerasattn")
class CharacterTokenizer(Tokenizer):
    """One token a unicode character: whatever is in the vocabulary comes back unchanged.

    Spaces, case and emoji are kept; an unknown character becomes `[UNK]`, which decodes to
    nothing. Special tokens written in a text are read as ordinary characters.

    Args:
        vocabulary: list of str with the five special tokens (see `Tokenizer`); tokens of more
            than one character are kept for their ids but never produced.

    Example:

    >>> from kerasattn.tokenizers import CharacterTokenizer
    >>> tokenizer = CharacterTokenizer.build(["今日好熱", "今日落雨"])
    >>> tokenizer.vocabulary[:7]
    ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '今', '日']
    >>> ids = tokenizer.encode(["今日", "落雨?"], max_length=6)
    >>> ids.shape
    (2, 6)
    >>> tokenizer.decode(ids)
    ['今日', '落雨']
    """

    def __init__(self, vocabulary):
        super().__init__(vocabulary)
        # A sorted array of code points stands in for a table: it needs no initialization.
        known = sorted((ord(token), i) for token, i in self._ids.items() if len(token) == 1)
        self._code_points = np.array([code for code, _ in known] or [-1], "int32")
        self._code_ids = np.array([i for _, i in known] or [self.unk_id], "int32")

    @classmethod
    def build(cls, sentences, vocabulary_size=None, min_count=1):
        """A tokenizer for the characters of a corpus, the most frequent first.

        Args:
            sentences: list of str.
            vocabulary_size: int > 5, the most tokens to keep, special ones included.
            min_count: int >= 1, how often a character must occur.
        """
        if vocabulary_size is not None and vocabulary_size <= len(SPECIAL_TOKENS):
            raise ValueError(f"vocabulary_size must be more than 5, got {vocabulary_size}.")
        counts = Counter("".join(check_texts(sentences)))
        found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        # A line end can't stand in a vocabulary file; U+FFFD marks what could not be read.
        kept = [c for c, n in found if n >= min_count and c not in "\n\ufffd"]
        return cls([*SPECIAL_TOKENS, *kept][:vocabulary_size])

    def to_ids(self, text, allow_special=None):
        import tensorflow as tf

        points = tf.strings.unicode_decode(text, "UTF-8", errors="replace")
        flat = points.flat_values
        place = tf.searchsorted(self._code_points, flat)
        place = tf.minimum(place, len(self._code_points) - 1)
        known = tf.gather(self._code_points, place) == flat
        ids = tf.where(known, tf.gather(self._code_ids, place), self.unk_id)
        return points.with_flat_values(ids)

    def spans(self, texts, allow_special=None):
        return [[(i, i + 1) for i in range(len(text))] for text in check_texts(texts)]

    def join_tokens(self, ids, spacing="natural"):
        import tensorflow as tf

        return tf.strings.reduce_join(tf.gather(tf.constant(self.vocabulary), ids), axis=-1)
