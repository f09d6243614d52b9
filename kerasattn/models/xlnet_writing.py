"""XLNet's writing: one token after the other, asked for by the query stream."""

import numpy as np
from keras import ops

from kerasattn.models.writing import Writing
from kerasattn.ops import masks


class XLNetWriting(Writing):
    """`generate` for XLNet with the language model's head, in every application.

    In "encoder" the prompt is read both ways, and what is written is told in its order by the query
    stream, as tokens are told in training: each sees the prompt and what was written before.
    "unilm" reads so too, writes as segment 1 and tells next tokens by the content stream; "lm"
    reads from left to right.

    Keys and values of what stands before a token lie right before it, the room that is not yet
    needed in front of them: distances are the same at every step.
    """

    attention_step = None  # its attention does not return weights

    def _check_head(self):
        if "lm_logits" not in self.output:
            raise ValueError(
                f'{self.name} writes with the head "mlm"; it has {self._config["heads"]}.'
            )

    def writing_inputs(self, token_ids, real):
        """Prompts whole, since their tokens see the last one too; see `Writing`."""
        return {"token_ids": token_ids, "padding_mask": real}, token_ids[:, -1]

    def prompt_hidden(self, inputs):
        """The hidden vectors of prompts but for their last tokens; see `Writing`."""
        inputs = {**inputs, "segment_ids": ops.zeros_like(inputs["token_ids"])}
        hidden = self(inputs, training=False)["hidden"]
        return hidden[:, :-1], inputs["padding_mask"][:, :-1]

    def initial_state(self, inputs, max_new_tokens):
        """Caches that hold the prompts but for their last tokens; for `decoding.generate`.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, prompt).
            max_new_tokens: int, the room that is needed in front of them.
        """
        token_ids, real = inputs["token_ids"], ops.cast(inputs["padding_mask"], "bool")
        batch, prompt = ops.shape(token_ids)[0], token_ids.shape[1]
        seen = ops.pad(real, [[0, 0], [max_new_tokens, 0]])  # (batch, column)
        mask = masks.keys(seen)
        if self.application == "lm":
            order = np.tri(prompt, prompt + max_new_tokens, max_new_tokens, dtype="bool")
            mask = mask & order[None, None]
        segments = ops.zeros_like(seen, "int32")
        state = {
            "caches": [
                block.attention.empty_cache(batch, max_new_tokens) for block in self._blocks()
            ],
            "seen": seen[:, :max_new_tokens],
            "segments": segments[:, :max_new_tokens],
        }
        _, _, caches = self._run(token_ids, segments[:, max_new_tokens:], mask, state)
        # The last token is fed again by the first step, which puts its keys in the last column.
        caches = [(keys[..., :-1], values[:, :, :-1]) for keys, values in caches]
        return {"caches": caches, "seen": seen[:, :-1], "segments": segments[:, :-1]}

    def hidden_step(self, token_ids, index, state):
        """As `step`: (logits, the token's last hidden vector (batch, hidden), the state)."""
        token_ids = token_ids[:, None]
        now = ops.ones_like(token_ids, "bool")
        segment = ops.cast(index > 0, "int32") if self.application == "unilm" else 0
        segments = ops.zeros_like(token_ids) + segment
        asks = self.application == "encoder"
        fed, fed_seen, fed_segments = token_ids, now, segments
        if asks:  # the place of the next token, which nothing sees
            fed = ops.concatenate([token_ids, token_ids], axis=1)
            fed_seen = ops.concatenate([now, ~now], axis=1)
            fed_segments = ops.concatenate([segments, segments], axis=1)
        seen = ops.concatenate([state["seen"], fed_seen], axis=1)
        x, told, caches = self._run(fed, fed_segments, masks.keys(seen), state, asks)
        end = -1 if asks else None  # the oldest column goes, and the place that was asked for
        state = {
            "caches": [(keys[..., 1:end], values[:, :, 1:end]) for keys, values in caches],
            "seen": seen[:, 1:end],
            "segments": ops.concatenate([state["segments"], segments], axis=1)[:, 1:],
        }
        logits = self.get_layer("head")(told if asks else x)
        return logits[:, 0], x[:, 0], state

    def _run(self, token_ids, segments, mask, state, asks=False):
        """The blocks over tokens behind the cached ones: both streams, and the new caches.

        Args:
            token_ids, segments: int (batch, length).
            mask: bool, broadcastable to (batch, 1, length, column), of both streams.
            state: dict of `caches`, `seen` and `segments` of what stands before.
            asks: bool, whether the last place is asked for by the query stream.
        """
        x = self.get_layer("token_embedding")(token_ids)  # (batch, length, hidden)
        before = state["segments"]
        keys = ops.concatenate([before, segments], axis=1)
        options = {
            "attention_mask": mask,
            "same_segment": masks.segment(segments, keys),
            "distances": self.get_layer("distances")(x, before[..., None]),
        }
        told = None
        if asks:
            last = ops.equal(np.arange(token_ids.shape[1]), token_ids.shape[1] - 1)
            mapping = ops.ones_like(x[:, :1, 0])[..., None] * ops.cast(last, x.dtype)
            told = self.get_layer("query_stream")(x, mapping)  # (batch, 1, hidden)
            options |= {"target_mapping": mapping, "target_mask": mask}
        caches = []
        for block, cache in zip(self._blocks(), state["caches"], strict=True):
            results = block(x, targets=told, cache=cache, **options)
            x, told = results[0], results[1] if asks else None
            caches.append(results[-1])
        return x, told, caches

    def _blocks(self):
        return [self.get_layer(f"block_{i}") for i in range(self._config["num_layers"])]
