"""Words, or characters, and the ids that models of words read."""

import collections
import re

import numpy as np

PAD, UNKNOWN = "[PAD]", "[UNK]"
WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")


def split_words(text):
    """The words and signs of a text, each with the characters [start, end) that it stands at.

    Returns:
        list of str, and list of (start, end).

    Example:
    >>> from kerasattn.data import split_words
    >>> split_words("Who's there?")
    (["Who's", 'there', '?'], [(0, 5), (6, 11), (11, 12)])
    """
    found = list(WORD.finditer(text))
    return [match.group() for match in found], [match.span() for match in found]


class Vocabulary:
    """The ids of words: 0 is padding, 1 any word that is not known, then one for each word.

    Args:
        words: list of different str, in the order of their ids from 2 on.

    Raises:
        ValueError: for a word that is there twice.

    Example:
    >>> from kerasattn.data import Vocabulary
    >>> vocabulary = Vocabulary.build([["a", "b", "a"], ["a", "c", "c"]], min_count=2)
    >>> vocabulary.words, vocabulary.encode([["c", "a"], ["b"]]).tolist()
    (['[PAD]', '[UNK]', 'a', 'c'], [[3, 2], [1, 0]])
    """

    def __init__(self, words):
        self.words = [PAD, UNKNOWN, *words]
        self.ids = {word: i for i, word in enumerate(self.words)}
        if len(self.ids) != len(self.words):
            twice = [w for w, n in collections.Counter(self.words).items() if n > 1]
            raise ValueError(f"Words must be different, these are there twice: {twice[:10]}.")

    @classmethod
    def build(cls, texts, size=None, min_count=1):
        """The words of texts, the most frequent first.

        Args:
            texts: lists of str.
            size: int, the most ids, or None.
            min_count: int, how often a word is there at least.
        """
        counts = collections.Counter(word for text in texts for word in text)
        kept = [word for word, count in counts.most_common() if count >= min_count]
        return cls(kept if size is None else kept[: max(0, size - 2)])

    def __len__(self):
        return len(self.words)

    def encode(self, texts, length=None):
        """Ids of texts: int32 (texts, length), padded, cut where they are longer.

        Args:
            texts: lists of str.
            length: int, by default that of the longest.
        """
        rows = [[self.ids.get(word, 1) for word in text] for text in texts]
        return pad_rows(rows, length)

    def encode_documents(self, documents, sentences=None, words=None):
        """Ids of documents, lists of sentences of words: int32 (documents, sentences, words).

        Args:
            documents: lists of lists of str.
            sentences, words: ints, by default the most that there are; what is more is cut.
        """
        rows = [[[self.ids.get(w, 1) for w in sentence] for sentence in d] for d in documents]
        return pad_documents(rows, sentences, words)


def pad_rows(rows, length=None):
    """Lists of ids as one array: int32 (rows, length), 0 behind them, cut where they are longer.

    Args:
        rows: lists of ints.
        length: int, by default that of the longest, at least 1.

    Example:
    >>> from kerasattn.data import pad_rows
    >>> pad_rows([[5, 6, 7], [8]], length=2).tolist()
    [[5, 6], [8, 0]]
    """
    length = max([1, *map(len, rows)]) if length is None else length
    ids = np.zeros((len(rows), length), "int32")
    for row, found in zip(ids, rows):
        row[: min(length, len(found))] = found[:length]
    return ids


def pad_documents(documents, sentences=None, words=None):
    """Documents of sentences of ids as one array: int32 (documents, sentences, words).

    Args:
        documents: lists of lists of lists of ints.
        sentences, words: ints, by default the most that there are; what is more is cut.

    Example:
    >>> from kerasattn.data import pad_documents
    >>> pad_documents([[[5, 6], [7]], [[8]]]).tolist()
    [[[5, 6], [7, 0]], [[8, 0], [0, 0]]]
    """
    sentences = max([1, *map(len, documents)]) if sentences is None else sentences
    if words is None:
        words = max([1, *(len(sentence) for d in documents for sentence in d)])
    ids = np.zeros((len(documents), sentences, words), "int32")
    for rows, document in zip(ids, documents):
        kept = document[:sentences]
        rows[: len(kept)] = pad_rows(kept, words)
    return ids


def encode_characters(texts, characters, length=None, word_length=12):
    """Ids of the characters of words: int32 (texts, length, word_length), padded and cut.

    Args:
        texts: lists of str, words.
        characters: a `Vocabulary` of characters.
        length: int, words of a text, by default those of the longest.
        word_length: int, characters of a word.

    Example:
    >>> from kerasattn.data import Vocabulary, encode_characters
    >>> characters = Vocabulary("ab")
    >>> encode_characters([["ab", "b"]], characters, word_length=3).tolist()
    [[[2, 3, 0], [3, 0, 0]]]
    """
    return characters.encode_documents(texts, length, word_length)
