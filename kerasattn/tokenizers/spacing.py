"""Where spaces go when words and punctuation are put together again."""

import unicodedata

import numpy as np

# What a token is, for the spaces around it.
WORD, NUMBER, CLOSING, OPENING, JOINING, QUOTE, APOSTROPHE, POINT, WIDE = range(9)
CONTRACTIONS = ("s", "t", "m", "d", "re", "ve", "ll", "em", "all", "clock")
KINDS = {
    **dict.fromkeys("-/_@\\", JOINING),
    **dict.fromkeys("!?;%…", CLOSING),
    **dict.fromkeys(".,:", POINT),
    **dict.fromkeys("'’", APOSTROPHE),
    **dict.fromkeys("$#£€", OPENING),
    '"': QUOTE,
}
CATEGORIES = {"Ps": OPENING, "Pi": OPENING, "Pe": CLOSING, "Pf": CLOSING}
WIDE_RANGES = "\u2e80\ua4cf\uac00\ud7a3\uf900\ufaff\ufe30\ufe4f\uff00\uffef\U0001f000\U0003ffff"


def kind_of(token):
    """What a word piece, its `##` taken off, is: one of the numbers above."""
    if not token:
        return WORD
    if any(low <= token[0] <= high for low, high in zip(WIDE_RANGES[::2], WIDE_RANGES[1::2])):
        return WIDE
    if token.isdigit():
        return NUMBER
    return KINDS.get(token) or CATEGORIES.get(unicodedata.category(token[0]), WORD)


def spacing_tables(vocabulary, suffix="##"):
    """For each token: its text, its kind, whether it goes on a word, whether it is a `'s`."""
    continues = np.array([t.startswith(suffix) and t != suffix for t in vocabulary])
    texts = [t.removeprefix(suffix) if c else t for t, c in zip(vocabulary, continues)]
    kinds = np.array([kind_of(text) for text in texts], "int32")
    contraction = np.array([t.lower() in CONTRACTIONS for t in vocabulary])
    return texts, kinds, continues, contraction


def space_before(kinds, continues, contraction):
    """Whether a space stands before each token, (batch, length) all; in the graph.

    Quotation marks open and close in turn. An apostrophe joins what a contraction follows
    (it's), else it is a quotation mark. A point between numbers (2.5, 10:30) joins them.
    """
    import tensorflow as tf

    def shift(x, by, fill):
        before, after = max(by, 0), max(-by, 0)
        x = tf.pad(x, [[0, 0], [before, after]], constant_values=fill)
        return x[:, after : tf.shape(x)[1] - before]

    inside = (kinds == APOSTROPHE) & shift(contraction, -1, False)
    inside &= shift(kinds == WORD, 1, False)  # the apostrophe of it's
    closing, opening = kinds == CLOSING, kinds == OPENING
    for quote in (kinds == QUOTE, (kinds == APOSTROPHE) & ~inside):
        count = tf.cumsum(tf.cast(quote, "int32"), axis=1)  # 1 at the first
        opening |= quote & (count % 2 == 1)
        closing |= quote & (count % 2 == 0)
    joining = inside | (kinds == JOINING)
    point, number = kinds == POINT, kinds == NUMBER
    decimal = number & shift(point, 1, False) & shift(number, 2, False)
    wide = kinds == WIDE
    no_space_before = continues | closing | point | joining | decimal | wide
    no_space_after = opening | joining | wide
    first = tf.range(tf.shape(kinds)[1]) == 0
    return ~(no_space_before | shift(no_space_after, 1, False) | first)
