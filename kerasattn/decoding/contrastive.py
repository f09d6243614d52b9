"""Contrastive search: likely tokens whose vectors are unlike those before."""

import numpy as np
from keras import ops

from kerasattn.decoding.constraints import process
from kerasattn.decoding.loop import OnePath, check_step, repeat_state
from kerasattn.ops.rows import repeat_each, row_numbers, take_each


class ContrastivePath(OnePath):
    """As `OnePath`, but each of the `top_k` likeliest tokens is fed before one of them is chosen.

    The state has `top_k` rows for each row of the batch, all alike before a step. The carry holds
    besides `logits` (batch, vocabulary), of the next token, and `hidden` (batch, columns, dim) with
    `seen` (batch, columns): the unit vectors of the prompt's tokens and of the new ones.

    Args:
        decoder: a `Decoder` with `hidden_step`, and `prompt_hidden` if there is a prompt.
        top_k: int >= 1, clipped to the vocabulary.
        max_new_tokens, processors: as those of `OnePath`.
    """

    def __init__(self, decoder, top_k, max_new_tokens, processors=()):
        super().__init__(decoder, None, max_new_tokens, processors)
        self.top_k = top_k
        if not hasattr(decoder, "hidden_step"):
            raise ValueError(
                "Contrastive needs a decoder with hidden_step(token_ids, index, state) -> (logits, "
                f"hidden, state); {type(decoder).__name__} has none."
            )

    def start(self, inputs, request):
        # Candidates are fed before they are chosen: one step more than there are new tokens.
        index = ops.convert_to_tensor(0, "int32")
        state = self.decoder.initial_state(inputs, self.max_new_tokens + 1)
        logits, hidden, state = self._feed(request["start_ids"], index, state)
        top_k = min(self.top_k, logits.shape[-1])
        prompt = getattr(self.decoder, "prompt_hidden", lambda inputs: None)(inputs)
        room = hidden[:, None] * np.zeros((self.max_new_tokens, 1), "float32")
        vectors, seen = [hidden[:, None], room], [hidden[:, None, 0] * 0 >= 0, room[..., 0] > 0]
        if prompt is not None:
            vectors.insert(0, _unit(prompt[0]))
            seen.insert(0, ops.cast(prompt[1], "bool"))
        return {
            **self.nothing_yet(request),
            "state": repeat_state(state, top_k),
            "logits": logits,
            "hidden": ops.concatenate(vectors, axis=1),
            "seen": ops.concatenate(seen, axis=1),
        }

    def advance(self, carry, request):
        index, logits = carry["index"], carry["logits"]
        top_k = min(self.top_k, logits.shape[-1])
        allowed = process(logits, carry["new_ids"], index, request, self.processors)
        best, candidates = ops.top_k(allowed, top_k)  # (batch, top_k)
        candidates = ops.cast(candidates, "int32")
        log_probs = best - ops.logsumexp(allowed, axis=-1, keepdims=True)
        after, hidden, state = self._feed(ops.reshape(candidates, (-1,)), index + 1, carry["state"])
        hidden = ops.reshape(hidden, (-1, top_k, hidden.shape[-1]))
        likeness = ops.matmul(hidden, ops.swapaxes(carry["hidden"], 1, 2))  # cosines
        likeness = ops.max(ops.where(carry["seen"][:, None], likeness, -1.0), axis=-1)
        alpha = request["parameters"]["alpha"]
        worth = (1.0 - alpha) * ops.exp(log_probs) - alpha * likeness
        chosen = ops.argmax(ops.where(best > -np.inf, worth, -np.inf), axis=-1)  # (batch,)
        chosen = ops.cast(chosen, "int32")[:, None]

        row = row_numbers(chosen)
        tokens = take_each(candidates, chosen, row)[:, 0]
        rows = repeat_each((row * top_k + chosen)[:, 0], top_k)
        column = carry["hidden"].shape[1] - self.max_new_tokens + index
        here = ops.equal(np.arange(carry["hidden"].shape[1], dtype="int32"), column)
        vector = take_each(hidden, chosen, row)  # (batch, 1, dim)
        after = ops.reshape(after, (-1, top_k, after.shape[-1]))
        return {
            **self.write(carry, tokens, logits, allowed, request),
            "state": self.decoder.reorder(state, rows),
            "logits": take_each(after, chosen, row)[:, 0],
            "hidden": ops.where(here[None, :, None], vector, carry["hidden"]),
            "seen": carry["seen"] | here[None],
        }

    def _feed(self, tokens, index, state):
        """Float32 logits, the unit vector of each token, and the checked state."""
        logits, hidden, new_state = self.decoder.hidden_step(tokens, index, state)
        check_step(logits, state, new_state)
        return ops.cast(logits, "float32"), _unit(hidden), new_state


def _unit(x):
    x = ops.cast(x, "float32")
    return x / ops.maximum(ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True)), 1e-9)
