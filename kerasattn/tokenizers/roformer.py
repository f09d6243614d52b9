"""RoFormer's tokenizer: Chinese words, found by jieba, before characters and pieces."""

import keras
import numpy as np

from kerasattn.tokenizers.checks import check_texts
from kerasattn.tokenizers.host import host_ids
from kerasattn.tokenizers.wordpiece import MARKS, WordPieceTokenizer


@keras.saving.register_keras_serializable(package="kerasattn")
class RoFormerTokenizer(WordPieceTokenizer):
    """Words of jieba that are in the vocabulary are tokens, the rest goes to `WordPieceTokenizer`.

    It runs on the host; in `tf.data` it works on string tensors too, by calling back to Python;
    it can't be part of a SavedModel.

    Args:
        vocabulary, lowercase, allow_special: as of `WordPieceTokenizer`.

    Raises:
        ImportError: in the first call, if jieba is not installed.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("jieba")
    >>> from kerasattn.tokenizers import SPECIAL_TOKENS, RoFormerTokenizer
    >>> tokenizer = RoFormerTokenizer([*SPECIAL_TOKENS, "天气", "今", "天", "好"])
    >>> tokenizer.tokenize("天气好, 今天"), tokenizer.offsets("天气好, 今天")
    (['天气', '好', '[UNK]', '今', '天'], [(0, 2), (2, 3), (3, 4), (5, 6), (6, 7)])

    Source: https://github.com/ZhuiyiTechnology/roformer
    """

    def pre_tokenize(self, text):
        """A text cut into words that together are the text; override for another cutter."""
        return import_jieba().cut(text, HMM=False)

    def _parts(self, texts, allow_special):
        """(index of the text, start, word, its id or None) of each word, in order."""
        special = [*MARKS] if self._allows(allow_special) else []
        parts = []
        for i, text in enumerate(texts):
            start = 0
            for piece in _split(text, special):
                words = [piece] if piece in special else self.pre_tokenize(piece)
                for word in words:
                    known = word in self._ids and (word in special or word not in MARKS)
                    parts.append((i, start, word, self._ids[word] if known else None))
                    start += len(word)
        return parts

    def rows(self, texts, allow_special=None):
        texts = check_texts(texts)
        parts = self._parts(texts, allow_special)
        unknown = [part[2] for part in parts if part[3] is None]
        rest = iter(self._word_rows(unknown))
        rows = [[] for _ in texts]
        for i, _, _, token_id in parts:
            rows[i] += [token_id] if token_id is not None else next(rest).tolist()
        return [np.array(row, "int32") for row in rows]

    def _word_rows(self, words):
        """The ids of words that jieba found and the vocabulary lacks, each word looked up once."""
        if not words:
            return []
        import tensorflow as tf

        different = list(dict.fromkeys(words))
        with tf.device("CPU"):
            ids = WordPieceTokenizer.to_ids(self, tf.constant(different), allow_special=False)
        rows = np.split(ids.flat_values.numpy(), ids.row_splits.numpy()[1:-1])
        found = dict(zip(different, rows))
        return [found[word] for word in words]

    def spans(self, texts, allow_special=None):
        texts = check_texts(texts)
        parts = self._parts(texts, allow_special)
        unknown = [part[2] for part in parts if part[3] is None]
        rest = iter(super().spans(unknown, allow_special=False) if unknown else [])
        spans = [[] for _ in texts]
        for i, start, word, token_id in parts:
            inside = [(0, len(word))] if token_id is not None else next(rest)
            spans[i] += [(start + a, start + b) for a, b in inside]
        return spans

    def to_ids(self, text, allow_special=None):
        return host_ids(self, text, allow_special)


def import_jieba():
    """The library jieba, without its messages.

    Raises:
        ImportError: if it is not installed; it names the extra.
    """
    try:
        import logging

        import jieba
    except ImportError:
        raise ImportError(
            "RoFormer's tokenizer needs jieba: pip install kerasattn[chinese]"
        ) from None
    jieba.setLogLevel(logging.WARNING)
    return jieba


def _split(text, special):
    """A text cut before and behind each special token; the parts together are the text."""
    import re

    if not special:
        return [text]
    pattern = "|".join(re.escape(token) for token in special)
    return [part for part in re.split(f"({pattern})", text) if part]
