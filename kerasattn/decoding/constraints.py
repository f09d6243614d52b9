"""What may be chosen at a step, and when a row is at its end."""

import numpy as np
from keras import ops

from kerasattn.ops.rows import repeat_each


def process(logits, new_ids, index, request, processors=()):
    """Logits after the processors, -inf where a token may not be chosen now.

    Bans come after the processors, and a forced token after these: it is chosen whatever they say.

    Args:
        logits: float32 (rows, vocabulary).
        new_ids: int32 (rows, max_new_tokens), of which `index` are written.
        index: int32 scalar.
        request: dict of `make_request`, with rows as those of the logits.
        processors: tuple of `Processor`s.
    """
    vocabulary = logits.shape[-1]
    changed = logits
    if processors:
        steps, history = np.arange(new_ids.shape[1]), request["history"]
        written = ops.where((steps < index)[None], new_ids, -1)
        history = history + ops.zeros_like(written[:, :1])  # one row serves all
        written = ops.concatenate([history, written], axis=1)
        column = history.shape[1] + index
        for processor, parameters in zip(processors, request["processors"], strict=True):
            changed = processor(changed, written, column, parameters)
    changed = ops.where(_blocked(request, index, vocabulary), -np.inf, changed)
    forced = request["forced_ids"]  # (rows or 1, n)
    if forced.shape[1]:
        now = ops.take(forced, ops.minimum(index, forced.shape[1] - 1), axis=1)[:, None]
        is_forced = (now >= 0) & (index < forced.shape[1])
        only = ops.equal(np.arange(vocabulary, dtype="int32")[None], now)
        changed = ops.where(is_forced, ops.where(only, logits, -np.inf), changed)
    return changed


def _blocked(request, index, vocabulary):
    """Tokens that may not be chosen now: banned ones, and the end before min_new_tokens.

    -> (1, vocabulary) bool.
    """
    if request["banned_ids"].shape[0] >= vocabulary:
        raise ValueError(f"banned leaves none of the {vocabulary} tokens to choose from.")
    ids = ops.arange(vocabulary, dtype="int32")
    early = ops.logical_and(is_in(ids, request["end_ids"]), index < request["min_new_tokens"])
    # Not by comparing all with all: there may be as many banned ones as tokens.
    banned = request["banned_ids"]
    count = ops.scatter(banned[:, None], ops.ones_like(banned), (vocabulary,))
    return ops.logical_or(count > 0, early)[None]


def is_end(new_ids, index, request):
    """Whether the token at `index` ends a row: an end token, or the last of a stop sequence.

    Args:
        new_ids: int32 (rows, max_new_tokens) or (rows, hypotheses, max_new_tokens).
        index: int32 scalar.
        request: dict, whose `stop_ids` (rows or 1, sequences, length) are filled up in front by -1.

    Shapes:
        -> bool (rows,) or (rows, hypotheses).
    """
    ends = is_in(ops.take(new_ids, index, axis=-1), request["end_ids"])
    stop = request["stop_ids"]
    length = stop.shape[-1]
    if not length:
        return ends
    columns = index - length + 1 + np.arange(length, dtype="int32")
    last = ops.take(new_ids, ops.maximum(columns, 0), axis=-1)[..., None, :]
    stop = stop[:, None] if len(new_ids.shape) == 3 else stop
    same = (ops.equal(last, stop) & (columns >= 0)) | (stop < 0)  # (..., sequences, length)
    stops = ops.any(ops.all(same, axis=-1) & ops.any(stop >= 0, axis=-1), axis=-1)
    return ends | (stops & (index >= request["min_new_tokens"]))


def is_in(ids, some):
    """Whether each of ids (...) is among some (m,): (...) bool."""
    return ops.any(ops.equal(ids[..., None], some), axis=-1)


def by_row(request, times):
    """The request of rows that stand `times` for one each, in what processors and ends look at."""
    names = ("history", "forced_ids", "stop_ids")
    rows = {name: request[name] for name in names}
    more = {
        name: leaf if leaf.shape[0] == 1 else repeat_each(leaf, times)
        for name, leaf in rows.items()
    }
    return {**request, **more}
