"""Beam search, batched: running beams, and a pool of finished hypotheses that nothing changes."""

import keras
import numpy as np
from keras import ops

from kerasattn.decoding.loop import blocked, is_in, take_step


def decode_beams(decoder, inputs, request, max_new_tokens, width, num_return):
    """Extends `width` hypotheses a row until none can beat the best `num_return` finished ones.

    At each step the candidates are all running beams with all tokens. Those among the best `width`
    that end go to the pool; the best `width` that do not end run on. The arguments are those of
    `loop.decode_one_path`.

    Returns:
        token_ids (batch, max_new_tokens) int32, scores (batch,), log_probs (batch,
        max_new_tokens); with a second axis of num_return if that is above 1.
    """
    limits = request["limits"]  # (batch,)
    start_ids = ops.repeat(request["start_ids"], width)  # (batch * width,)
    state = keras.tree.map_structure(
        lambda leaf: ops.repeat(leaf, width, axis=0), decoder.initial_state(inputs, max_new_tokens)
    )
    # All beams of a row start alike: only the first is alive, and none where nothing is asked for.
    sums = np.array([[0.0] + [-np.inf] * (width - 1)], "float32")
    sums = ops.where(limits[:, None] > 0, sums, -np.inf)
    beams = _empty(sums, request["pad_id"], max_new_tokens)
    pool = _empty(ops.full_like(sums[:, :1], -np.inf), request["pad_id"], max_new_tokens)
    pool = {name: ops.repeat(leaf, num_return, axis=1) for name, leaf in pool.items()}

    def body(index, tokens, beams, pool, state):
        logits, state = take_step(decoder, tokens, index, state)  # (batch * width, vocabulary)
        best, rows = _candidates(logits, index, beams, request)
        ends = is_in(ops.reshape(best["tokens"], (-1,)), request["end_ids"])
        ends = ops.reshape(ends, ops.shape(best["tokens"]))  # (batch, candidates)
        beams, kept = _top(_only(best, ~ends), width)
        state = decoder.reorder(state, ops.reshape(ops.take_along_axis(rows, kept, axis=1), (-1,)))
        # At its limit, a row's running beams are hypotheses as they are.
        full = (index + 1 >= limits)[:, None]
        length = ops.power(ops.cast(index + 1, "float32"), request["parameters"]["length_penalty"])
        ended = _only({name: leaf[:, :width] for name, leaf in best.items()}, ends[:, :width])
        stopped = _only(beams, full)
        pool, _ = _top(_join(pool, _scored(ended, length), _scored(stopped, length)), num_return)
        done = full[:, 0] | _is_decided(pool["sums"], beams["sums"], index + 1, request)
        beams = {**beams, "sums": ops.where(done[:, None], -np.inf, beams["sums"])}
        return index + 1, ops.reshape(beams["tokens"], (-1,)), beams, pool, state

    def running(index, tokens, beams, *rest):
        return ops.logical_and(index < max_new_tokens, ops.any(beams["sums"] > -np.inf))

    index = ops.convert_to_tensor(0, "int32")
    _, _, _, pool, _ = ops.while_loop(running, body, (index, start_ids, beams, pool, state))
    scores = ops.where(limits[:, None] > 0, pool["sums"], 0.0)
    result = pool["new_ids"], scores, pool["log_probs"]
    return tuple(leaf[:, 0] for leaf in result) if num_return == 1 else result


def _empty(sums, pad_id, max_new_tokens):
    """Hypotheses without tokens: a dict of (batch, n, ...)."""
    none = ops.zeros_like(sums)[..., None] + np.zeros(max_new_tokens, "float32")
    return {
        "sums": sums,
        "tokens": ops.cast(ops.zeros_like(sums), "int32"),
        "new_ids": ops.cast(none, "int32") + pad_id,
        "log_probs": none,
    }


def _candidates(logits, index, beams, request):
    """The best continuations of each row's beams, best first, and the state's row of each."""
    width, vocabulary = beams["sums"].shape[1], logits.shape[-1]
    log_probs = ops.log_softmax(logits, axis=-1)
    allowed = ops.where(blocked(request, index, vocabulary), -np.inf, log_probs)
    sums = beams["sums"][:, :, None] + ops.reshape(allowed, (-1, width, vocabulary))
    # Enough that `width` are left if every beam ends in every way. A lone beam that ends is over.
    count = width * (1 + request["end_ids"].shape[0]) if width > 1 else 1
    flat = ops.reshape(sums, (-1, width * vocabulary))
    best, where = ops.top_k(flat, min(count, width * vocabulary))  # (batch, candidates)
    where = ops.cast(where, "int32")
    parents, tokens = where // vocabulary, where % vocabulary
    chosen = _take({name: beams[name] for name in ("new_ids", "log_probs")}, parents)
    log_prob = ops.take_along_axis(ops.reshape(log_probs, (-1, width * vocabulary)), where, axis=1)
    now = ops.equal(np.arange(chosen["new_ids"].shape[-1], dtype="int32"), index)
    batch_index = ops.cumsum(ops.ones_like(parents[:, :1]), axis=0) - 1  # (batch, 1)
    return {
        "sums": best,
        "tokens": tokens,
        "new_ids": ops.where(now, tokens[..., None], chosen["new_ids"]),
        "log_probs": ops.where(now, log_prob[..., None], chosen["log_probs"]),
    }, batch_index * width + parents


def _is_decided(pool_scores, sums, length, request):
    """Whether no running beam of a row can enter the pool any more.

    Sums only fall. Divided by a growing length they may still rise, at most to what the best sum
    would be at the row's limit; with a negative penalty, at the next length.
    """
    penalty = request["parameters"]["length_penalty"]
    nearest = ops.zeros_like(request["limits"]) + length + 1
    lengths = ops.cast(ops.where(penalty >= 0, request["limits"], nearest), "float32")
    bound = ops.max(sums, axis=1) / ops.power(lengths, penalty)
    return ops.min(pool_scores, axis=1) >= bound


def _only(hypotheses, which):
    """The same hypotheses, with a sum of -inf where `which` is false."""
    return {**hypotheses, "sums": ops.where(which, hypotheses["sums"], -np.inf)}


def _scored(hypotheses, length):
    return {**hypotheses, "sums": hypotheses["sums"] / length}


def _join(*pools):
    return {name: ops.concatenate([pool[name] for pool in pools], axis=1) for name in pools[0]}


def _top(hypotheses, count):
    """The best `count` hypotheses of each row, best first, earlier ones first among equals."""
    _, kept = ops.top_k(hypotheses["sums"], count)
    kept = ops.cast(kept, "int32")
    return _take(hypotheses, kept), kept


def _take(hypotheses, kept):
    """Gathers along axis 1: kept is (batch, n)."""

    def take(leaf):
        index = kept if len(leaf.shape) == 2 else kept[..., None]
        return ops.take_along_axis(leaf, index, axis=1)

    return {name: take(leaf) for name, leaf in hypotheses.items()}
