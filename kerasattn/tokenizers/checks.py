"""What tokenizers are given, checked: vocabularies, texts, ids, lengths."""

import json
import re
from pathlib import Path

import numpy as np

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SURROGATE = re.compile("[\ud800-\udfff]")


def check_vocabulary(vocabulary, special_tokens=SPECIAL_TOKENS, in_lines=True):
    """The vocabulary as a list, if it is one that ids can be read from."""
    if isinstance(vocabulary, str):
        raise ValueError(
            f"vocabulary must be a list of tokens, got the string {vocabulary[:40]!r}; "
            "a vocabulary file is read by `load(path)`."
        )
    vocabulary = list(vocabulary)
    if not vocabulary:
        raise ValueError("The vocabulary is empty: give a list of tokens, or `build` one.")
    seen = {}
    for i, token in enumerate(vocabulary):
        if not isinstance(token, str):
            raise ValueError(f"Token {i} of the vocabulary must be a string, got {token!r}.")
        if in_lines and ("\n" in token or SURROGATE.search(token)):
            raise ValueError(f"Token {i}, {token!r}, holds a line end or a lone surrogate.")
        if token in seen:
            raise ValueError(f"The vocabulary has {token!r} twice, at {seen[token]} and {i}.")
        seen[token] = i
    missing = [token for token in special_tokens if token not in seen]
    if missing:
        raise ValueError(
            f"The vocabulary of {len(vocabulary)} tokens lacks {' '.join(missing)}; "
            f"it must hold {' '.join(special_tokens)}, at any place."
        )
    return vocabulary


def read_vocabulary(path):
    """The lines of a vocabulary file, only their ends taken off: U+3000 is a token too."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ValueError(f"There is no vocabulary file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read as a UTF-8 vocabulary: {error}.") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    if lines and all(line.endswith("\r") for line in lines):  # written on Windows
        lines = [line[:-1] for line in lines]
    return lines


def read_json(path, missing_ok=True):
    """The object in a JSON file, an empty one if there is no file."""
    path = Path(path)
    if missing_ok and not path.exists():
        return {}
    try:
        value = json.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}.") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:100]
        raise ValueError(f"{path} can't be read as UTF-8 JSON: {reason}.") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object, got a {type(value).__name__}.")
    return value


def check_texts(texts):
    """A list of encodable strings; a single string is a batch of one."""
    if isinstance(texts, (str, bytes)):
        texts = [texts]
    try:
        texts = list(texts)
    except TypeError:
        raise ValueError(f"texts must be a string or a list of strings, got {texts!r}.") from None
    if not texts:
        raise ValueError("texts is empty: give at least one string ('' is one).")
    for i, text in enumerate(texts):
        if isinstance(text, bytes):
            texts[i] = text.decode("utf-8", "replace")
        elif not isinstance(text, str):
            raise ValueError(f"texts must hold strings, got {type(text).__name__} at {i}.")
        elif not text.isascii():
            texts[i] = SURROGATE.sub("\ufffd", text)
    return texts


def check_pairs(first, second):
    """Two lists of strings of the same length."""
    first, second = check_texts(first), check_texts(second)
    if len(first) != len(second):
        raise ValueError(
            f"Pairs need as many second texts as first ones, got {len(first)} and {len(second)}."
        )
    return first, second


def check_ids(token_ids, vocabulary_size):
    """Rows of integer arrays, every id inside of the vocabulary."""
    if hasattr(token_ids, "to_list"):  # a ragged tensor
        token_ids = token_ids.to_list()
    rows = token_ids if isinstance(token_ids, (list, tuple)) else np.asarray(token_ids)
    if isinstance(rows, np.ndarray) and rows.ndim > 2:
        raise ValueError(f"token_ids must have shape (batch, length), got {rows.shape}.")
    if len(rows) and np.ndim(rows[0]) == 0:
        rows = [rows]
    rows = [np.asarray(row) for row in rows]
    for i, row in enumerate(rows):
        if row.size == 0:
            continue
        if row.ndim != 1 or row.dtype.kind not in "iu":
            raise ValueError(
                f"token_ids must hold rows of integers, got row {i} of shape {row.shape} "
                f"and type {row.dtype}."
            )
        if row.min() < 0 or row.max() >= vocabulary_size:
            bad = row.min() if row.min() < 0 else row.max()
            raise ValueError(
                f"Token id {bad} in row {i} is out of range: the vocabulary has "
                f"{vocabulary_size} tokens, ids 0 to {vocabulary_size - 1}."
            )
    return rows


def check_max_length(max_length, num_special=2):
    """Whether max_length has room for the special tokens."""
    least = max(num_special, 1)
    if max_length is not None and (isinstance(max_length, bool) or not max_length >= least):
        raise ValueError(
            f"max_length must be at least {least}, for the {num_special} special tokens, "
            f"got {max_length}."
        )


def is_tensor(value):
    """Whether value is a TensorFlow tensor, without importing TensorFlow to find out."""
    if not type(value).__module__.startswith("tensorflow"):
        return False
    import tensorflow as tf

    return tf.is_tensor(value)
