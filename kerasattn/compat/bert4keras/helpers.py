"""bert4keras' small helpers: strings, common parts of sequences, decorators of arguments."""

import functools
import re
import unicodedata

import numpy as np


def is_string(s):
    """Whether something is a str."""
    return isinstance(s, str)


def is_one_of(x, ys):
    """Whether x is the very same thing as one of ys, where `in` would compare tensors."""
    return any(x is y for y in ys)


def string_matching(s, keywords):
    """Whether one of some regular expressions is found in a text."""
    return any(re.search(keyword, s) for keyword in keywords)


def convert_to_unicode(text, encoding="utf-8", errors="ignore"):
    """Bytes as str; a str as it is."""
    return text.decode(encoding, errors=errors) if isinstance(text, bytes) else text


convert_to_str = convert_to_unicode


def strQ2B(ustring):
    """A text with ASCII in place of its full-width forms.

    Example:
    >>> from kerasattn.compat.bert4keras.snippets import strQ2B
    >>> strQ2B("ＡＢ\u3000１！")
    'AB 1!'
    """
    forms = {0xFEE0 + code: code for code in range(0x21, 0x7F)} | {0x3000: 0x20}
    return ustring.translate(forms)


def lowercase_and_normalize(text):
    """A text in small letters without accents.

    Example:
    >>> from kerasattn.compat.bert4keras.snippets import lowercase_and_normalize
    >>> lowercase_and_normalize("Élan")
    'elan'
    """
    text = unicodedata.normalize("NFD", text.lower())
    return "".join(c for c in text if unicodedata.category(c) != "Mn")


def softmax(x, axis=-1):
    """In numpy."""
    x = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return x / x.sum(axis=axis, keepdims=True)


def longest_common_substring(source, target):
    """The longest run of elements that two sequences share.

    Returns:
        its length, and its place: (start, end) in the one and in the other, four numbers.

    Example:
    >>> from kerasattn.compat.bert4keras.snippets import longest_common_substring
    >>> longest_common_substring("the cat", "a cat sat")
    (4, (3, 7, 1, 5))
    """
    best, place = 0, (0, 0, 0, 0)
    before = [0] * (len(target) + 1)  # lengths of runs that end at an element of each
    for i, x in enumerate(source, 1):
        runs = [0] * (len(target) + 1)
        for j, y in enumerate(target, 1):
            if x == y:
                runs[j] = before[j - 1] + 1
                if runs[j] > best:
                    best, place = runs[j], (i - runs[j], i, j - runs[j], j)
        before = runs
    return best, place


def longest_common_subsequence(source, target):
    """The most elements that two sequences share in the same order, not only side by side.

    Returns:
        their number, and their places in both, a list of pairs.

    Example:
    >>> from kerasattn.compat.bert4keras.snippets import longest_common_subsequence
    >>> longest_common_subsequence("abcd", "xbyd")
    (2, [(1, 1), (3, 3)])
    """
    lengths = np.zeros((len(source) + 1, len(target) + 1), "int64")  # of what stands before i, j
    for i, x in enumerate(source, 1):
        for j, y in enumerate(target, 1):
            one_less = max(lengths[i - 1, j], lengths[i, j - 1])
            lengths[i, j] = lengths[i - 1, j - 1] + 1 if x == y else one_less
    pairs, i, j = [], len(source), len(target)
    while i and j:
        if source[i - 1] == target[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif lengths[i, j - 1] > lengths[i - 1, j]:
            j -= 1
        else:
            i -= 1
    return len(pairs), pairs[::-1]


def insert_arguments(**arguments):
    """Decorates a method, mostly `__init__`: further arguments of it become attributes.

    Example:
    >>> from kerasattn.compat.bert4keras.snippets import insert_arguments
    >>> class Counter:
    ...     @insert_arguments(start=1)
    ...     def __init__(self):
    ...         self.next = self.start + 1
    >>> Counter(start=5).next
    6
    """

    def decorate(method):
        @functools.wraps(method)
        def wrapped(self, *args, **kwargs):
            for name, default in arguments.items():
                setattr(self, name, kwargs.pop(name, default))
            return method(self, *args, **kwargs)

        return wrapped

    return decorate


def delete_arguments(*arguments):
    """Decorates a method, mostly `__init__`: some arguments of its are a TypeError."""

    def decorate(method):
        @functools.wraps(method)
        def wrapped(self, *args, **kwargs):
            for name in arguments:
                if name in kwargs:
                    raise TypeError(f"{type(self).__name__} does not take the argument {name!r}.")
            return method(self, *args, **kwargs)

        return wrapped

    return decorate
