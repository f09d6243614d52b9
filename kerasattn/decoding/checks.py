"""What `generate` and `score` are given, checked, as arrays that a compiled loop can trust."""

import numbers

import numpy as np
from keras import ops


def ids(name, values, vocabulary_size, least=0):
    """Ids as int32 (n,), from `least` to vocabulary_size - 1."""
    return table(name, np.asarray(values).reshape(-1), vocabulary_size, least)


def table(name, values, vocabulary_size, least=0):
    """Ids of any shape as int32, from `least` to vocabulary_size - 1."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got {array.dtype}.")
    top = 2**31 if vocabulary_size is None else vocabulary_size
    wrong = array[(array < least) | (array >= top)]
    if wrong.size:
        which = "" if vocabulary_size is None else ", the ids of the vocabulary"
        which += ", or -1 for none" if least < 0 else ""
        raise ValueError(f"{name} must be in [{least}, {top}){which}; got {wrong[:5].tolist()}.")
    return array.astype("int32")


def sequences(token_ids, batch, vocabulary_size):
    """Given tokens, (batch, length) int32."""
    array = table("token_ids", token_ids, vocabulary_size)
    if array.ndim != 2 or len(array) != batch:
        raise ValueError(
            f"token_ids must be ({batch}, length), a row for each of start_ids; got the shape "
            f"{array.shape}."
        )
    return array


def forced_ids(forced, batch, vocabulary_size):
    """(1, n) for all rows, or (batch, n)."""
    if forced is None:
        return None
    array = table("forced", forced, vocabulary_size, least=-1)
    if array.ndim == 1:
        array = array[None]
    elif array.ndim != 2 or len(array) != batch:
        raise ValueError(f"forced must be ints (n,) or ({batch}, n), got the shape {array.shape}.")
    return array


def stop_ids(stop, batch, vocabulary_size):
    """(1, sequences, length) for all rows, or (batch, sequences, length), with -1 in front."""
    rows = list(stop) if _is_list(stop) else [stop]
    if not rows:
        return None
    if not all(_is_list(row) for row in rows):
        raise ValueError(f"stop must be a list of lists of ints, got {stop!r}.")
    of_rows = any(_is_list(part) for row in rows for part in row)
    if of_rows and len(rows) != batch:
        raise ValueError(f"stop must have a list for each of {batch} rows, got {len(rows)}.")
    if not of_rows:
        rows = [rows]
    rows = [[ids("stop", sequence, vocabulary_size) for sequence in row] for row in rows]
    if not all(len(sequence) for row in rows for sequence in row):
        raise ValueError("Every sequence of stop must have a token, got an empty one.")
    most = max(len(row) for row in rows)
    longest = max((len(sequence) for row in rows for sequence in row), default=0)
    table_of_rows = np.full((len(rows), most, longest), -1, "int32")
    for i, row in enumerate(rows):
        for j, sequence in enumerate(row):
            table_of_rows[i, j, longest - len(sequence) :] = sequence
    return table_of_rows


def history(values, start_ids, vocabulary_size):
    """(batch, n), by default the start tokens."""
    if values is None:
        return start_ids[:, None]
    array = table("history", values, vocabulary_size, least=-1)
    if array.ndim != 2 or len(array) != len(start_ids):
        raise ValueError(
            f"history must be ints ({len(start_ids)}, n), got the shape {array.shape}."
        )
    return array


def processors(values):
    """A tuple of processors."""
    methods = ("__call__", "signature", "parameters")
    given = tuple(values) if isinstance(values, (list, tuple)) else (values,)
    for one in given:
        if isinstance(one, type) or not all(hasattr(one, method) for method in methods):
            raise ValueError(f"processors takes a list of Processors, got {one!r} in it.")
    return given


def one_id(name, value, vocabulary_size):
    """One id as int32."""
    array = ids(name, value, vocabulary_size)
    if len(array) != 1:
        raise ValueError(f"{name} must be one int, got {value!r}.")
    return array[0]


def count(name, value):
    """An int that is not negative."""
    if not isinstance(value, numbers.Integral) or value < 0:
        raise ValueError(f"{name} must be an int, not negative, got {value!r}.")
    return int(value)


def limits(values, batch, max_new_tokens):
    """The most tokens of each row, (batch,) int32."""
    count("max_new_tokens", max_new_tokens)
    if values is None:
        return np.full((batch,), max_new_tokens, "int32")
    array = ids("limits", values, None)
    if array.shape != (batch,):
        raise ValueError(f"limits must be one int for each of {batch} rows, got {array.shape}.")
    return np.minimum(array, max_new_tokens).astype("int32")


def leaf(values, batch):
    """A tensor with the batch as first axis."""
    if isinstance(values, np.ndarray) and values.dtype in ("float64", "int64"):
        # What numpy makes by default, JAX does not know.
        values = values.astype(values.dtype.kind + "4")
    tensor = ops.convert_to_tensor(values)
    if not tensor.shape or tensor.shape[0] != batch:
        raise ValueError(
            f"Every tensor of inputs must have the batch as first axis, {batch} as start_ids has; "
            f"got shape {tuple(tensor.shape)}."
        )
    return tensor


def _is_list(value):
    return isinstance(value, (list, tuple, np.ndarray))
