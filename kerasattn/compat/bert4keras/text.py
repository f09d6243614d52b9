"""bert4keras' helpers for texts and batches."""

import builtins

import numpy as np


def open(file, mode="r", encoding="utf-8", errors="strict"):  # noqa: A001, their name
    """Python's `open`, where text is UTF-8 if nothing else is said."""
    if "b" in mode:
        return builtins.open(file, mode)
    return builtins.open(file, mode, encoding=encoding, errors=errors)


def to_array(*args):
    """Lists as arrays, one or several."""
    results = [np.array(a) for a in args]
    return results[0] if len(results) == 1 else results


def sequence_padding(inputs, length=None, value=0, seq_dims=1, mode="post"):
    """Sequences made one array, padded, and cut at the end, to the same length.

    Args:
        inputs: list of lists or arrays.
        length: int, or one a dimension; by default that of the longest.
        value: what pads.
        seq_dims: int, how many leading axes are padded.
        mode: "post" pads behind, "pre" in front.

    Example:
    >>> from kerasattn.compat.bert4keras import sequence_padding
    >>> sequence_padding([[1, 2, 3], [4]], mode="pre").tolist()
    [[1, 2, 3], [0, 0, 4]]
    """
    if mode not in ("post", "pre"):
        raise ValueError(f"mode must be 'post' or 'pre', got {mode!r}.")
    if not len(inputs):
        raise ValueError("sequence_padding takes at least one sequence, got none.")
    arrays = [np.asarray(x) for x in inputs]
    if length is None:
        length = [max(x.shape[i] for x in arrays) for i in range(seq_dims)]
    length = list(length) if hasattr(length, "__getitem__") else [length]
    rows = []
    for array in arrays:
        array = array[tuple(slice(n) for n in length)]
        missing = [n - m for n, m in zip(length, array.shape)]
        widths = [(0, m) if mode == "post" else (m, 0) for m in missing]
        widths += [(0, 0)] * (array.ndim - len(widths))
        rows.append(np.pad(array, widths, constant_values=value))
    return np.array(rows)


def text_segmentate(text, maxlen, seps="\n", strips=None):
    """Cuts a text at separators into pieces that are not longer than maxlen, where they allow it.

    It is cut at the first separator; what is next to each other and short enough is put together
    again; what is still too long is cut at the next separator.

    Args:
        text: str.
        maxlen: number of characters.
        seps: str of separators, tried one after the other; they stay at the end of their piece.
        strips: str of characters that are taken off both ends of each piece, None for white space.

    Example:
    >>> from kerasattn.compat.bert4keras import text_segmentate
    >>> text_segmentate("Go on. Do it. Now, please.", 12, seps=".,", strips=" ")
    ['Go on.', 'Do it.', 'Now, please.']
    """
    text = text.strip().strip(strips)
    if not seps or len(text) <= maxlen:
        return [text]
    *heads, last = text.split(seps[0])
    groups = [""]
    for piece, end in [*((head, seps[0]) for head in heads), (last, "")]:
        if groups[-1] and piece and len(groups[-1]) + len(piece) + 1 > maxlen:
            groups.append("")
        groups[-1] += piece + end
    parts = (text_segmentate(group, maxlen, seps[1:], strips) for group in groups if group)
    return [piece for pieces in parts for piece in pieces]
