"""The log-probability of given sequences."""

import keras
import numpy as np
from keras import ops

from kerasattn.decoding import checks
from kerasattn.decoding.buckets import compiled_on, pad_batch
from kerasattn.decoding.decoder import as_decoder
from kerasattn.decoding.generate import Generated
from kerasattn.decoding.loop import follow


def score(
    decoder,
    inputs,
    token_ids,
    *,
    start_ids,
    end_id=None,
    padding_mask=None,
    length_penalty=0.0,
    jit=True,
):
    """How probable given tokens are, fed one after the other in a compiled loop with caches.

    Args:
        decoder, inputs, start_ids, jit: as those of `generate`.
        token_ids: ints (batch, length), what follows the start tokens.
        end_id: int, several ints, or None: what stands behind the first of them does not count.
        padding_mask: bool (batch, length), True = counts; by default all does.
        length_penalty: float, scores are sums of log-probabilities / (tokens ** length_penalty).

    Returns:
        `Generated`: the tokens, scores (batch,) and log_probs (batch, length), 0 where a token
        does not count.

    Raises:
        ValueError: if shapes do not agree, or an id is out of its range.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def either(token_ids, index, state):  # two tokens, as likely as each other
    ...     return ops.zeros_like(token_ids, "float32")[:, None] + ops.zeros(2), state
    >>> found = decoding.score(either, (), [[0, 1, 1]], start_ids=[0])
    >>> round(float(found.scores[0]), 4)
    -2.0794
    """
    decoder = as_decoder(decoder)
    start_ids = checks.ids("start_ids", start_ids, decoder.vocabulary_size)
    token_ids = checks.sequences(token_ids, len(start_ids), decoder.vocabulary_size)
    batch = len(token_ids)
    inputs = keras.tree.map_structure(lambda leaf: checks.leaf(leaf, batch), inputs)
    counts = _counts(token_ids, end_id, padding_mask, decoder.vocabulary_size)
    steps = token_ids.shape[1]
    log_probs = np.zeros(token_ids.shape, "float32")
    if batch and steps:

        def run(inputs, request):
            tokens = (request["start_ids"], request["history"])
            with decoder.prepared():
                state = decoder.initial_state(inputs, steps)
                return follow(decoder, state, *tokens, lambda log_probs, index: log_probs)[0]

        call = compiled_on(decoder, ("score", steps, jit), run, jit)
        request = {"start_ids": start_ids, "history": token_ids, "limits": start_ids}
        log_probs = ops.convert_to_numpy(call(*pad_batch(inputs, request, batch)))[:batch]
    log_probs = np.where(counts, log_probs, np.float32(0))
    length = np.maximum(counts.sum(axis=1), 1).astype("float32")
    return Generated(token_ids, log_probs.sum(axis=1) / length**length_penalty, log_probs)


def _counts(token_ids, end_id, padding_mask, vocabulary_size):
    """Which tokens count, (batch, length) bool."""
    end_ids = checks.ids("end_id", [] if end_id is None else end_id, vocabulary_size)
    ends = np.isin(token_ids, end_ids)
    counts = np.cumsum(ends, axis=1) - ends == 0
    if padding_mask is None:
        return counts
    padding_mask = np.asarray(padding_mask).astype(bool)
    if padding_mask.shape != token_ids.shape:
        raise ValueError(
            f"padding_mask must be of the shape of token_ids, {token_ids.shape}; got "
            f"{padding_mask.shape}."
        )
    return counts & padding_mask
