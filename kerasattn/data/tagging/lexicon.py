"""Words of a lexicon in texts without spaces."""

import numpy as np


class Lexicon:
    """Finds every word of a list in a text, also words within words.

    Args:
        words: list of str; those of one character are left out, and doubles too.
        max_word_length: int >= 2, longer words are left out.

    Attributes:
        words: list of str; a word's id is its place, counted from 1; 0 is no word.
        max_word_length: int.

    Raises:
        ValueError: if no word is left, or for max_word_length below 2.

    Example:
    >>> from kerasattn.data.tagging import Lexicon
    >>> lexicon = Lexicon(["南京", "南京市", "市长", "长江", "大桥", "长江大桥"])
    >>> [lexicon.words[word - 1] for _, _, word in lexicon.find("南京市长江大桥")]
    ['南京', '南京市', '市长', '长江', '长江大桥', '大桥']
    >>> lexicon.ending_at(["南京市长江大桥"], length=8)[0, :, 0].tolist()  # of two characters
    [0, 1, 0, 3, 4, 0, 5, 0]
    """

    def __init__(self, words, max_word_length=4):
        if max_word_length < 2:
            raise ValueError(f"max_word_length must be at least 2, got {max_word_length}.")
        self.words = [w for w in dict.fromkeys(words) if 2 <= len(w) <= max_word_length]
        if not self.words:
            raise ValueError(f"There is no word of 2 to {max_word_length} characters.")
        self.max_word_length = max_word_length
        # Every beginning of a word, as in a trie, and the word's id where it is one.
        self._ids = {w[:i]: 0 for w in self.words for i in range(1, len(w))}
        self._ids.update({word: i for i, word in enumerate(self.words, 1)})

    @property
    def num_words(self):
        """How many words there are."""
        return len(self.words)

    def find(self, text):
        """The words of a text, a list of (start, end, id), by their start and then their end."""
        found = []
        for start in range(len(text)):
            for end in range(start + 1, min(start + self.max_word_length, len(text)) + 1):
                word = self._ids.get(text[start:end])
                if word is None:
                    break
                if word:
                    found.append((start, end, word))
        return found

    def ending_at(self, texts, length=None):
        """The words by their last character, which is what a lattice LSTM reads.

        Args:
            texts: list of str, or of lists of characters.
            length: int, characters a row; by default those of the longest text.

        Returns:
            int32 (texts, length, max_word_length - 1): at character j the ids of the words of 2, 3,
            ... characters that end there, 0 where there is none.
        """
        length = max(map(len, texts), default=0) if length is None else length
        ids = np.zeros((len(texts), length, self.max_word_length - 1), "int32")
        for row, text in enumerate(texts):
            for start, end, word in self.find("".join(text)[:length]):
                ids[row, end - 1, end - start - 2] = word
        return ids
