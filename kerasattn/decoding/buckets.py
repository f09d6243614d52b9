"""Few shapes to compile: batches rounded up, and what was compiled kept on the decoder."""

import keras
import numpy as np
from keras import ops

from kerasattn.ops.compiled import compiled


def compiled_on(decoder, key, function, jit):
    """The function, compiled, or that which was compiled for the same key; kept on the decoder."""
    loops = vars(decoder).setdefault("_compiled_loops", {})
    if key not in loops:

        def variables():
            found = decoder.variables
            return list(found() if callable(found) else found)

        loops[key] = compiled(function, variables, jit)
    return loops[key]


def pad_batch(inputs, request, batch):
    """Rounds the batch up to a power of two with copies of row 0 that are done from the start."""
    more = (1 << (batch - 1).bit_length()) - batch
    if not more:
        return inputs, request

    def pad(leaf):
        return ops.concatenate([leaf, ops.repeat(leaf[:1], more, axis=0)], axis=0)

    names = {"start_ids", "uniforms", "history", "forced_ids", "stop_ids"} & set(request)
    rows = {name for name in names if len(request[name]) == batch}  # of 1 row: for all
    request = {
        **request,
        **{name: np.pad(request[name], _after(request[name], more)) for name in rows},
        "limits": np.pad(request["limits"], (0, more)),
    }
    return keras.tree.map_structure(pad, inputs), request


def _after(array, more):
    return [(0, more)] + [(0, 0)] * (array.ndim - 1)
