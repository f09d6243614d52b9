"""Encoders that write: UniLM, which reads a text both ways and goes on from left to right."""

import functools

import keras
from keras import ops

from kerasattn.layers import TransformerBlock
from kerasattn.models.steps import keep_weights
from kerasattn.models.writing import Writing
from kerasattn.ops import masks

PLACES = {"attention_mask", "query_positions", "key_positions", "relative_keys", "relative_values"}


class EncoderWriting(Writing):
    """`generate` for encoders of application "unilm" or "lm" with a masked-LM head.

    A prompt ends as training ended its first segment, with [SEP], say. In "unilm" it is segment 0,
    and what is written is segment 1; "lm" has segment 0 alone and reads from left to right.
    Blocks, embedding and head are those of the model's graph, run again on one token.
    """

    def _check_head(self):
        if self.application == "encoder" or "lm_logits" not in self.output:
            raise ValueError(
                f'{self.name} writes with application="unilm" or "lm" and the head "mlm"; it has '
                f"{self.application!r} and the heads {self._config['heads']}."
            )
        segments = self._config.get("num_segments", 2)
        if self.application == "unilm" and segments < 2:
            raise ValueError(f"UniLM takes num_segments of at least 2, {self.name} has {segments}.")

    def writing_inputs(self, token_ids, real):
        """Prompts whole, since their tokens see the last one too; see `Writing`."""
        _ = self._written_blocks, self._embedding_model  # made outside of compiled functions
        return {"token_ids": token_ids, "padding_mask": real}, token_ids[:, -1]

    def prompt_hidden(self, inputs):
        """The hidden vectors of prompts but for their last tokens; see `Writing`."""
        inputs, segments = self._last_columns(inputs), {}
        if "segment_ids" in self._inputs_struct:
            segments["segment_ids"] = ops.zeros_like(inputs["token_ids"])
        hidden = self({**inputs, **segments}, training=False)["hidden"]
        return hidden[:, :-1], inputs["padding_mask"][:, :-1]

    def initial_state(self, inputs, max_new_tokens):
        """Caches that hold the prompts; for `decoding.generate`.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, prompt).
            max_new_tokens: int, the room that is needed behind them.
        """
        token_ids, real = inputs["token_ids"], ops.cast(inputs["padding_mask"], "bool")
        batch, prompt = ops.shape(token_ids)[0], token_ids.shape[1]
        columns = prompt + max_new_tokens - 1  # the first token that is fed is the prompt's last
        seen = ops.pad(real, [[0, 0], [0, max_new_tokens - 1]])  # (batch, column)
        caches = [
            block.self_attention.empty_cache(batch, columns) for block, _ in self._written_blocks
        ]
        mask = masks.keys(seen)
        if self.application == "lm":
            mask = mask & ops.tril(ops.ones((prompt, columns), "bool"))[None, None]
        x = self._embed(token_ids, self._positions(real), 0, real)
        _, caches = self._run(x, self._positions(real), seen, mask, caches, 0)
        column = ops.zeros_like(token_ids[:, 0]) + (prompt - 1)  # of the prompts' last tokens
        return {"caches": caches, "seen": seen, "column": column}

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, the token's last hidden vector (batch, hidden), the state).

        The first token is the prompt's last, whose keys and values are written again as they are.
        """
        column = state["column"][0] + index  # the same in all rows
        seen = state["seen"] | (ops.arange(state["seen"].shape[1]) == column)[None]
        position_ids = ops.take(self._positions(seen), column, axis=1)[:, None]  # (batch, 1)
        segment = ops.cast(index > 0, "int32") if self.application == "unilm" else 0
        token_ids = token_ids[:, None]
        x = self._embed(token_ids, position_ids, segment, ops.ones_like(token_ids, "bool"))
        mask = masks.keys(seen)
        x, caches = self._run(x, position_ids, seen, mask, state["caches"], column, attention)
        state = {**state, "caches": caches, "seen": seen}
        return self.get_layer("head")(x)[:, 0], x[:, 0], state

    def _run(self, x, position_ids, seen, mask, caches, column, attention=None):
        """The blocks over new tokens whose keys and values are cached from `column` on."""
        places = {"attention_mask": mask, "return_weights": attention is not None}
        written = []
        for (block, names), cache in zip(self._written_blocks, caches, strict=True):
            if "query_positions" in names:
                places |= {"query_positions": position_ids, "key_positions": position_ids}
            if "relative_keys" in names and "relative_keys" not in places:
                distances = self.get_layer("relative_embedding")(
                    x, query_positions=position_ids, key_positions=self._positions(seen)
                )  # (batch, length, column, head_dim)
                places |= {"relative_keys": distances, "relative_values": distances}
            x, *weights, cache = block(x, **places, cache=cache, cache_index=column)
            if weights:
                keep_weights(attention, "self_attention", *weights)
            written.append(cache)
        return x, written

    def _positions(self, real):
        """Positions that count real tokens as the model counts them: (batch, length)."""
        names = {layer.name for layer in self.layers}
        return self.get_layer("positions")(real) if "positions" in names else masks.positions(real)

    def _embed(self, token_ids, position_ids, segment, real):
        """What the blocks read: (batch, length, hidden)."""
        inputs = dict.fromkeys(self._inputs_struct)
        inputs |= {"token_ids": token_ids, "padding_mask": real, "position_ids": position_ids}
        if "segment_ids" in inputs:
            inputs["segment_ids"] = ops.zeros_like(token_ids) + segment
        return self._embedding_model(inputs, training=False)

    @functools.cached_property  # past Keras' tracking, which would look for layers inside
    def _embedding_model(self):
        return keras.Model(self._inputs_struct, self._hidden[0])

    @functools.cached_property
    def _written_blocks(self):
        """The blocks in their order, each with the names of what the graph gave it."""
        found = []
        for x in self._hidden[1:]:
            history = x._keras_history
            given = history.operation._inbound_nodes[history.node_index].arguments.kwargs
            names = {name for name, value in given.items() if value is not None}
            if not isinstance(history.operation, TransformerBlock) or names - PLACES:
                raise ValueError(
                    f"{self.name} can't write one token at a time: block {len(found)} also takes "
                    f"{sorted(names - PLACES)}."
                )
            found.append((history.operation, names))
        return found
