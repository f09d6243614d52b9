"""From the characters of a cleaned text back to those of the original one."""

import re


class Aligned:
    """Texts whose characters were cleaned one by one, and special tokens as a whole.

    Args:
        texts: list of str, the originals.
        special: list of str, tokens that were replaced as a whole.
        clean: function of a list of characters to a string tensor of what each became. It is
            called once, with the characters that occur.
    """

    def __init__(self, texts, special, clean):
        pattern = "|".join(re.escape(token) for token in special)
        self._pattern = re.compile(f"({pattern})" if special else r"(?!)")
        self._texts = texts
        characters = sorted(set("".join(texts)))
        cleaned = clean(characters).numpy() if characters else []
        self._sizes = {c: len(bytes_) for c, bytes_ in zip(characters, cleaned)}

    def _bytes(self, text, special_size):
        """The original (start, end) of each byte of the cleaned text."""
        owners, position = [], 0
        for match in [*self._pattern.finditer(text), None]:
            end = len(text) if match is None else match.start()
            for i in range(position, end):
                owners += [(i, i + 1)] * self._sizes[text[i]]
            if match:
                owners += [match.span()] * special_size
                position = match.end()
        return owners

    def spans(self, rows, special_size):
        """Pairs of byte positions in each cleaned text -> (start, end) in the original.

        Args:
            rows: list of lists of (start, end), bytes.
            special_size: how many bytes a special token became.
        """
        result = []
        for text, row in zip(self._texts, rows):
            owners = self._bytes(text, special_size)
            result.append([(owners[start][0], owners[end - 1][1]) for start, end in row])
        return result


def merge_long_words(text, row, continues, max_word):
    """Byte spans of a row's tokens, those of a word of too many characters made one.

    Args:
        text: str, the cleaned text.
        row: token ids, starts and ends, three lists.
        continues: whether each id goes on a word.
        max_word: int, the most characters of a word.
    """
    spans = list(zip(row[1], row[2]))
    data = text.encode()
    if len(data) <= max_word:
        return spans
    words = []
    for token_id, span in zip(row[0], spans):
        if continues[token_id] and words and words[-1][-1][1] == span[0]:
            words[-1].append(span)
        else:
            words.append([span])
    merged = []
    for word in words:
        start, end = word[0][0], word[-1][1]
        too_long = len(data[start:end].decode("utf-8", "replace")) > max_word
        merged += [(start, end)] if too_long else word
    return merged
