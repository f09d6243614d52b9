"""The loop of strategies that follow one path: greedy and sampling."""

import keras
import numpy as np
from keras import ops


def decode_one_path(decoder, inputs, request, max_new_tokens, choose):
    """Feeds and chooses tokens until every row is done; pure, to be compiled.

    Args:
        decoder: a `Decoder`.
        inputs: what its `initial_state` takes.
        request: dict of tensors, see `generate.make_request`.
        max_new_tokens: int >= 1.
        choose: function (logits (batch, vocabulary) float32, uniform (batch,) or None, parameters)
            -> token_ids (batch,) int32.

    Returns:
        token_ids (batch, max_new_tokens) int32, scores (batch,), log_probs (batch, max_new_tokens).
    """
    tokens = request["start_ids"]
    limits = request["limits"]
    new_ids = ops.zeros_like(limits)[:, None] + ops.full((1, max_new_tokens), 1, "int32")
    new_ids = new_ids * request["pad_id"]  # (batch, max_new_tokens)
    log_probs = ops.cast(ops.zeros_like(new_ids), "float32")
    steps = np.arange(max_new_tokens, dtype="int32")

    def body(index, tokens, done, new_ids, log_probs, state):
        logits, state = take_step(decoder, tokens, index, state)  # (batch, vocabulary)
        allowed = ops.where(blocked(request, index, logits.shape[-1]), -np.inf, logits)
        uniform = None
        if "uniforms" in request:
            uniform = ops.take(request["uniforms"], index, axis=1)  # (batch,)
        tokens = choose(allowed, uniform, request["parameters"])
        tokens = ops.where(done, request["pad_id"], tokens)
        log_prob = token_log_probs(logits, tokens)
        now = ops.equal(steps, index)[None]  # (1, max_new_tokens)
        new_ids = ops.where(now, tokens[:, None], new_ids)
        log_probs = ops.where(ops.logical_and(now, ~done[:, None]), log_prob[:, None], log_probs)
        done = done | is_in(tokens, request["end_ids"]) | (index + 1 >= limits)
        return index + 1, tokens, done, new_ids, log_probs, state

    def running(index, tokens, done, *rest):
        return ops.logical_and(index < max_new_tokens, ops.logical_not(ops.all(done)))

    index = ops.convert_to_tensor(0, "int32")
    state = decoder.initial_state(inputs, max_new_tokens)
    carry = (index, tokens, limits <= 0, new_ids, log_probs, state)
    _, _, _, new_ids, log_probs, _ = ops.while_loop(running, body, carry)
    return new_ids, ops.sum(log_probs, axis=-1), log_probs


def take_step(decoder, tokens, index, state):
    """One step of the decoder: float32 logits, and a state that is checked against the last."""
    logits, new_state = decoder.step(tokens, index, state)
    if len(logits.shape) != 2:
        raise ValueError(f"step() must return logits (batch, vocabulary), got {logits.shape}.")
    keras.tree.assert_same_structure(state, new_state)
    pairs = zip(keras.tree.flatten(state), keras.tree.flatten(new_state), strict=True)
    for number, (old, new) in enumerate(pairs):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise ValueError(
                "step() must return a state of the shapes and dtypes it was given; leaf "
                f"{number} was {old.dtype} {tuple(old.shape)} and became {new.dtype} "
                f"{tuple(new.shape)}. Preallocate caches in initial_state()."
            )
    return ops.cast(logits, "float32"), new_state


def blocked(request, index, vocabulary):
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


def is_in(ids, some):
    """Whether each of ids (n,) is among some (m,): (n,) bool."""
    return ops.any(ops.equal(ids[:, None], some[None]), axis=-1)


def token_log_probs(logits, tokens):
    """Log-probabilities of tokens (batch,) under logits (batch, vocabulary): (batch,)."""
    chosen = ops.take_along_axis(logits, tokens[:, None], axis=-1)[:, 0]
    return chosen - ops.logsumexp(logits, axis=-1)
