"""Beam search, batched: running beams, and a pool of finished hypotheses that nothing changes."""

import numpy as np
from keras import ops

from kerasattn.decoding.constraints import by_row, is_end, process
from kerasattn.decoding.loop import repeat_state, take_step
from kerasattn.ops.rows import repeat_each, row_numbers, take_each


def decode_beams(decoder, inputs, request, max_new_tokens, strategy, processors=()):
    """Extends `width` hypotheses a row until none can beat the best finished ones.

    At each step the candidates are all running beams with all tokens. Those among the best `width`
    that end go to the pool; the best `width` that do not end run on. Groups do so each on their
    own, with width / groups beams and a pool; but for what `_candidates` says, they are as rows.

    Args:
        decoder, inputs, request, max_new_tokens, processors: as those of `loop.OnePath`.
        strategy: `Beam`.

    Returns:
        token_ids (batch, max_new_tokens) int32, scores (batch,), log_probs (batch,
        max_new_tokens); with a second axis of num_return if that is above 1.
    """
    groups, num_return = strategy.groups, strategy.num_return
    width, num_kept = strategy.width // groups, -(-num_return // groups)  # of each group
    limits = repeat_each(request["limits"], groups)  # (batch * groups,), the rows of all that runs
    start_ids = repeat_each(request["start_ids"], groups * width)
    state = repeat_state(decoder.initial_state(inputs, max_new_tokens), groups * width)
    of_rows, of_beams = by_row(request, groups), by_row(request, groups * width)
    # All beams of a row start alike: only the first is alive, and none where nothing is asked for.
    sums = np.array([[0.0] + [-np.inf] * (width - 1)], "float32")
    sums = ops.where(limits[:, None] > 0, sums, -np.inf)
    beams = _empty(sums, request["pad_id"], max_new_tokens)
    pool = _empty(ops.full_like(sums[:, :1], -np.inf), request["pad_id"], max_new_tokens)
    pool = _join(*[pool] * num_kept)

    def body(index, tokens, beams, pool, state):
        logits, state = take_step(decoder, tokens, index, state)  # (all beams, vocabulary)
        log_probs = ops.log_softmax(logits, axis=-1)
        written = ops.reshape(beams["new_ids"], (-1, max_new_tokens))
        changed = process(log_probs, written, index, of_beams, processors)
        best, parents = _candidates(log_probs, changed, index, beams, request, groups)
        ends = is_end(best["new_ids"], index, of_rows)  # (rows, candidates)
        beams, kept = _top(_only(best, ~ends, "ranks"), width, "ranks")
        beams.pop("ranks")
        best.pop("ranks")
        parents = row_numbers(kept) * width + take_each(parents, kept)
        state = decoder.reorder(state, ops.reshape(parents, (-1,)))
        # At its limit, a row's running beams are hypotheses as they are.
        full = (index + 1 >= limits)[:, None]
        length = ops.power(ops.cast(index + 1, "float32"), request["parameters"]["length_penalty"])
        ended = _only({name: leaf[:, :width] for name, leaf in best.items()}, ends[:, :width])
        stopped = _only(beams, full)
        pool, _ = _top(_join(pool, _scored(ended, length), _scored(stopped, length)), num_kept)
        done = full[:, 0] | _is_decided(pool["sums"], beams["sums"], index + 1, limits, request)
        beams = {**beams, "sums": ops.where(done[:, None], -np.inf, beams["sums"])}
        return index + 1, ops.reshape(beams["tokens"], (-1,)), beams, pool, state

    def running(index, tokens, beams, *rest):
        return ops.logical_and(index < max_new_tokens, ops.any(beams["sums"] > -np.inf))

    index = ops.convert_to_tensor(0, "int32")
    _, _, _, pool, _ = ops.while_loop(running, body, (index, start_ids, beams, pool, state))
    if groups > 1:
        pool, _ = _top({name: _of_batch(leaf, groups) for name, leaf in pool.items()}, num_return)
    scores = ops.where(request["limits"][:, None] > 0, pool["sums"], 0.0)
    result = pool["new_ids"], scores, pool["log_probs"]
    return tuple(leaf[:, 0] for leaf in result) if num_return == 1 else result


def _of_batch(leaf, groups):
    """(batch * groups, n, ...) -> (batch, groups * n, ...)."""
    return ops.reshape(leaf, (-1, groups * leaf.shape[1], *leaf.shape[2:]))


def _empty(sums, pad_id, max_new_tokens):
    """Hypotheses without tokens: a dict of (rows, n, ...)."""
    none = ops.zeros_like(sums)[..., None] + np.zeros(max_new_tokens, "float32")
    return {
        "sums": sums,
        "tokens": ops.cast(ops.zeros_like(sums), "int32"),
        "new_ids": ops.cast(none, "int32") + pad_id,
        "log_probs": none,
    }


def _candidates(log_probs, changed, index, beams, request, groups):
    """The best continuations of each row's beams, best first, and the beam that each goes on.

    Sums add up the log-probabilities that processors changed. Groups choose one after the other,
    by `ranks`: by the sums, less `diversity` for every time that groups before took the same token.
    """
    width, vocabulary = beams["sums"].shape[1], log_probs.shape[-1]
    sums = beams["sums"][:, :, None] + ops.reshape(changed, (-1, width, vocabulary))
    sums = ops.reshape(sums, (-1, width * vocabulary))
    # Enough that `width` are left if every beam ends in every way. A lone beam that ends is over.
    ways = request["end_ids"].shape[0] + request["stop_ids"].shape[1]
    count = min(width * (1 + ways), width * vocabulary) if width > 1 else 1
    if groups == 1:
        ranks, where = ops.top_k(sums, count)  # (rows, candidates)
    else:
        ranks, where = _in_turn(
            ops.reshape(sums, (-1, groups, width, vocabulary)), count, request["parameters"]
        )
    where = ops.cast(where, "int32")
    parents, tokens = where // vocabulary, where % vocabulary
    chosen = _take({name: beams[name] for name in ("new_ids", "log_probs")}, parents)
    log_probs = ops.reshape(log_probs, (-1, width * vocabulary))
    log_prob = take_each(log_probs, where)
    now = ops.equal(np.arange(chosen["new_ids"].shape[-1], dtype="int32"), index)
    return {
        "ranks": ranks,
        "sums": ranks if groups == 1 else take_each(sums, where),
        "tokens": tokens,
        "new_ids": ops.where(now, tokens[..., None], chosen["new_ids"]),
        "log_probs": ops.where(now, log_prob[..., None], chosen["log_probs"]),
    }, parents


def _in_turn(sums, count, parameters):
    """The best candidates of groups that shun each other's tokens.

    (batch, groups, width, vocabulary) -> ranks and places (batch * groups, count).
    """
    groups, width, vocabulary = sums.shape[1:]
    taken = ops.zeros_like(sums[:, 0, 0])  # (batch, vocabulary), how often
    ranks, where = [], []
    for group in range(groups):
        shunned = sums[:, group] - parameters["diversity"] * taken[:, None]
        best, place = ops.top_k(ops.reshape(shunned, (-1, width * vocabulary)), count)
        ranks.append(best)
        where.append(ops.cast(place, "int32"))
        tokens = ops.one_hot(where[-1][:, :width] % vocabulary, vocabulary, dtype="float32")
        alive = ops.cast(best[:, :width] > -np.inf, "float32")
        taken = taken + ops.sum(tokens * alive[..., None], axis=1)
    return tuple(ops.reshape(ops.stack(parts, axis=1), (-1, count)) for parts in (ranks, where))


def _is_decided(pool_scores, sums, length, limits, request):
    """Whether no running beam of a row can enter the pool any more.

    Sums only fall. Divided by a growing length they may still rise, at most to what the best sum
    would be at the row's limit; with a negative penalty, at the next length.
    """
    penalty = request["parameters"]["length_penalty"]
    nearest = ops.zeros_like(limits) + length + 1
    lengths = ops.cast(ops.where(penalty >= 0, limits, nearest), "float32")
    bound = ops.max(sums, axis=1) / ops.power(lengths, penalty)
    return ops.min(pool_scores, axis=1) >= bound


def _only(hypotheses, which, *more):
    """The same hypotheses, with a sum (and more) of -inf where `which` is false."""
    out = {name: ops.where(which, hypotheses[name], -np.inf) for name in ("sums", *more)}
    return {**hypotheses, **out}


def _scored(hypotheses, length):
    return {**hypotheses, "sums": hypotheses["sums"] / length}


def _join(*pools):
    return {name: ops.concatenate([pool[name] for pool in pools], axis=1) for name in pools[0]}


def _top(hypotheses, count, by="sums"):
    """The best `count` hypotheses of each row, best first, earlier ones first among equals."""
    best, kept = ops.top_k(hypotheses[by], count)
    kept = ops.cast(kept, "int32")
    others = {name: leaf for name, leaf in hypotheses.items() if name != by}
    return {**_take(others, kept), by: best}, kept


def _take(hypotheses, kept):
    """Gathers along axis 1: kept is (rows, n)."""
    rows = row_numbers(kept)
    return {name: take_each(leaf, kept, rows) for name, leaf in hypotheses.items()}
