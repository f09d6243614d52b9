"""Words as ELMo reads them: by the bytes of their characters, without a vocabulary."""

import numpy as np

# Those of bytes are 1 to 256; 0 fills a text up.
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, FILLED = range(257, 262)
BOUNDARIES = {"<S>": [SENTENCE_START], "</S>": [SENTENCE_END]}


def elmo_characters(sentences, length=None, max_characters=50):
    """The character ids of words, as bilm-tf's and AllenNLP's.

    A word is a start, its bytes in UTF-8, of which as many as have room count, and an end, and is
    filled up with 261. The words "<S>" and "</S>" are the ends of a sentence, which `models.ELMo`
    adds by itself.

    Args:
        sentences: lists of str, the words.
        length: int, words of a row, by default those of the longest; what is longer is cut.
        max_characters: int >= 3, ids of a word.

    Returns:
        int32 (sentences, length, max_characters), 0 where a sentence has no more words.

    Raises:
        ValueError: for sentences that are no lists of str, or fewer than 3 ids of a word.

    Example:
    >>> from kerasattn.tokenizers import elmo_characters
    >>> elmo_characters([["hi"], ["I", "am"]], max_characters=5)[:, :, :4].tolist()
    [[[259, 105, 106, 260], [0, 0, 0, 0]], [[259, 74, 260, 261], [259, 98, 110, 260]]]

    Source: https://github.com/allenai/bilm-tf, `bilm/data.py`.
    """
    if max_characters < 3:
        raise ValueError(f"max_characters must be at least 3, got {max_characters}.")
    for words in sentences:
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"Each sentence is a list of words, got {str(words)[:100]!r}.")
    length = max(map(len, sentences), default=0) if length is None else length
    ids = np.zeros((len(sentences), length, max_characters), "int32")
    for row, words in zip(ids, sentences, strict=True):
        for place, word in zip(row, words):
            inside = BOUNDARIES.get(word)
            if inside is None:  # what is no unicode is left out
                inside = [1 + byte for byte in word.encode("utf-8", "ignore")[: max_characters - 2]]
            code = [WORD_START, *inside, WORD_END]
            place[:] = FILLED
            place[: len(code)] = code
    return ids
