"""How XLNet and ALBERT change a text before SentencePiece reads it."""

import re
import sys
import unicodedata
from functools import cache

SPACES = r"[\s\p{Z}\x0b\x1c-\x1f\x{85}]+"


class Folding:
    """Runs of spaces become one, doubled quotes `"`, accents and case go if so set.

    Args:
        accents: whether accents are kept.
        lowercase: whether case is removed.
    """

    def __init__(self, accents=True, lowercase=False):
        self.accents, self.lowercase = accents, lowercase

    def replace(self, accents=None, lowercase=None):
        """A copy with other settings; None keeps one."""
        return Folding(
            self.accents if accents is None else accents,
            self.lowercase if lowercase is None else lowercase,
        )

    def fold_tensor(self, text):
        """Strings -> strings; in the graph."""
        import tensorflow as tf
        import tensorflow_text

        text = tf.strings.regex_replace(text, SPACES, " ")
        text = tf.strings.regex_replace(text, "^ | $", "")
        text = tf.strings.regex_replace(text, "``|''", '"')
        if not self.accents:
            text = tensorflow_text.normalize_utf8(text, "NFKD")
            text = tf.strings.regex_replace(text, combining_marks(), "")
        if self.lowercase:
            text = tf.strings.lower(text, "utf-8")
        return text

    def fold(self, text):
        """One string on the host: what it becomes, and the (start, end) of each new character."""
        result, owners = [], []
        for match in re.finditer(r"\s+|``|''|.", text, re.DOTALL):
            part, span = match.group(), match.span()
            if part.isspace():
                at_edge = span[0] == 0 or span[1] == len(text)
                new = "" if at_edge else " "
            elif len(part) == 2:
                new = '"'
            else:
                new = part
                if not self.accents:
                    new = unicodedata.normalize("NFKD", new)
                    new = "".join(c for c in new if not unicodedata.combining(c))
                if self.lowercase:
                    new = new.lower()
            result.append(new)
            owners += [span] * len(new)
        return "".join(result), owners


@cache
def combining_marks():
    """A pattern of the characters that combine with the one before them."""
    codes = [c for c in range(sys.maxunicode + 1) if unicodedata.combining(chr(c))]
    ranges = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in ranges) + "]"
