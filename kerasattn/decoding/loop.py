"""The loop of strategies that follow one path: greedy and sampling."""

import keras
import numpy as np
from keras import ops

from kerasattn.decoding.constraints import is_end, process
from kerasattn.ops.rows import repeat_each, take_each


class OnePath:
    """Feeds and chooses tokens until every row is done; pure, to be compiled.

    What goes from step to step is a dict: `index`, `tokens` (batch,), `done` (batch,), `new_ids`
    and `log_probs` (batch, max_new_tokens), and the decoder's `state`.

    Args:
        decoder: a `Decoder`.
        choose: function (logits (batch, vocabulary) float32, uniform (batch,) or None, parameters)
            -> token_ids (batch,) int32.
        max_new_tokens: int >= 1.
        processors: tuple of `Processor`s.
    """

    def __init__(self, decoder, choose, max_new_tokens, processors=()):
        self.decoder = decoder
        self.choose = choose
        self.max_new_tokens = max_new_tokens
        self.processors = processors

    def decode(self, inputs, request):
        """From inputs and a request, see `generate.make_request`, to what `result` returns."""
        advance = lambda carry: (self.advance(carry, request),)
        (carry,) = ops.while_loop(self.running, advance, (self.start(inputs, request),))
        return self.result(carry)

    def start(self, inputs, request):
        """The carry before the first token."""
        state = self.decoder.initial_state(inputs, self.max_new_tokens)
        return {**self.nothing_yet(request), "state": state}

    def nothing_yet(self, request):
        """The carry without a state."""
        limits = request["limits"]
        none = ops.zeros_like(limits)[:, None] + np.zeros((1, self.max_new_tokens), "int32")
        return {
            "index": ops.convert_to_tensor(0, "int32"),
            "tokens": request["start_ids"],
            "done": limits <= 0,
            "new_ids": none + request["pad_id"],  # (batch, max_new_tokens)
            "log_probs": ops.cast(none, "float32"),
        }

    def running(self, carry):
        """Whether there is a step to take."""
        left = carry["index"] < self.max_new_tokens
        return ops.logical_and(left, ops.logical_not(ops.all(carry["done"])))

    def advance(self, carry, request):
        """One more token a row."""
        index = carry["index"]
        logits, state = take_step(self.decoder, carry["tokens"], index, carry["state"])
        allowed = process(logits, carry["new_ids"], index, request, self.processors)
        uniform = None
        if "uniforms" in request:
            uniform = ops.take(request["uniforms"], index, axis=1)  # (batch,)
        tokens = self.choose(allowed, uniform, request["parameters"])
        return {**self.write(carry, tokens, logits, allowed, request), "state": state}

    def write(self, carry, tokens, logits, allowed, request):
        """The carry with one more token, the state left as it is."""
        index = carry["index"]
        done = carry["done"] | ~ops.any(allowed > -np.inf, axis=-1)  # nothing may follow
        tokens = ops.where(done, request["pad_id"], tokens)
        log_prob = ops.where(done, 0.0, token_log_probs(logits, tokens))
        now = ops.equal(np.arange(self.max_new_tokens, dtype="int32"), index)[None]
        new_ids = ops.where(now, tokens[:, None], carry["new_ids"])
        ends = is_end(new_ids, index, request) | (index + 1 >= request["limits"])
        return {
            **carry,
            "index": index + 1,
            "tokens": tokens,
            "done": done | ends,
            "new_ids": new_ids,
            "log_probs": ops.where(now, log_prob[:, None], carry["log_probs"]),
        }

    def result(self, carry):
        """token_ids (batch, max_new_tokens) int32, scores (batch,), log_probs as token_ids."""
        return carry["new_ids"], ops.sum(carry["log_probs"], axis=-1), carry["log_probs"]


def follow(decoder, state, start_ids, token_ids, adjust):
    """Feeds given tokens and tells what each was worth.

    Args:
        decoder: a `Decoder`.
        state: its first state.
        start_ids: int32 (rows,).
        token_ids: int32 (rows, steps).
        adjust: function (log-probabilities (rows, vocabulary), index) -> the same, changed.

    Returns:
        The model's own log-probabilities and the adjusted ones, both (rows, steps) float32.
    """
    steps = np.arange(token_ids.shape[1], dtype="int32")
    nothing = ops.cast(ops.zeros_like(token_ids), "float32")

    def body(index, tokens, own, adjusted, state):
        logits, state = take_step(decoder, tokens, index, state)
        log_probs = ops.log_softmax(logits, axis=-1)
        tokens, now = ops.take(token_ids, index, axis=1), ops.equal(steps, index)[None]

        def put(values, log_probs):
            # What is no token, of a decoder that does not say how many there are, is never written.
            known = (tokens < log_probs.shape[-1])[:, None]
            chosen = take_each(log_probs, ops.where(known, tokens[:, None], 0))
            return ops.where(now, ops.where(known, chosen, -np.inf), values)

        adjusted = put(adjusted, adjust(log_probs, index))
        return index + 1, tokens, put(own, log_probs), adjusted, state

    carry = (ops.convert_to_tensor(0, "int32"), start_ids, nothing, nothing, state)
    return ops.while_loop(lambda index, *rest: index < len(steps), body, carry)[2:4]


def repeat_state(state, times):
    """The state with each row `times`, one after the other."""
    return keras.tree.map_structure(lambda leaf: repeat_each(leaf, times), state)


def take_step(decoder, tokens, index, state):
    """One step of the decoder: float32 logits, and a state that is checked against the last."""
    logits, new_state = decoder.step(tokens, index, state)
    check_step(logits, state, new_state)
    return ops.cast(logits, "float32"), new_state


def check_step(logits, state, new_state):
    """Refuses what a loop cannot go on with."""
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


def token_log_probs(logits, tokens):
    """Log-probabilities of tokens (batch,) under logits (batch, vocabulary): (batch,)."""
    chosen = take_each(logits, tokens[:, None])[:, 0]
    return chosen - ops.logsumexp(logits, axis=-1)
