"""What causal language models share: the loss of the next token, and writing token by token."""

import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.steps import keep_weights
from kerasattn.models.writing import Writing, check_length
from kerasattn.ops import masks
from kerasattn.training.losses import label_loss


class LanguageModel(Writing, BaseModel):
    """A model whose every position sees what stands before it and tells the next token.

    A subclass sets, most of it by `_keep`, beside what `BaseModel` asks for,

        self._parts: namespace of the parts that the constructor ran, to be run again on one token:
            `embed(token_ids, position_ids)`, the list `blocks`, `normalize(x)`, which gives the
            last hidden vectors, and `finish(x)`, which gives logits (None without a head).
        self.vocabulary_size: int;
        self.max_positions: int, the rows of its position table, or None for no limit;
        self.pad_id, self.start_id, self.end_id: int or None; end_id may be several.

    Its positions count real tokens, so padding may stand anywhere. The step interface of
    `kerasattn.decoding` is `initial_state`, `hidden_step` and what `Steps` makes of it.
    """

    def _check_inputs(self, inputs):
        checked = super()._check_inputs(inputs)
        check_length("token_ids", checked["token_ids"], self.max_positions)
        return checked

    # === Loss ===
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Cross-entropy of each next token, in nats a token, unless `compile` was given a loss.

        y: labels (batch, length), the token ids themselves with -100 where nothing is asked; by
        default all real tokens. `sample_weight` (batch,) or (batch, length) weighs them.
        """
        if self._compile_loss is not None or "lm_logits" not in y_pred:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None:
            y = self._next_tokens(self._check_inputs(x))
        if sample_weight is not None and len(sample_weight.shape) == 2:
            sample_weight = sample_weight[:, 1:]
        # Each position tells the next token.
        loss = label_loss(y[:, 1:], y_pred["lm_logits"][:, :-1], sample_weight)
        return loss + sum(self.losses)

    def _next_tokens(self, inputs):
        """The token ids, and -100 at padding and right after it."""
        token_ids, real = ops.cast(inputs["token_ids"], "int32"), inputs["padding_mask"]
        if real is None:
            real = token_ids != (-1 if self.pad_id is None else self.pad_id)
        real = ops.cast(real, "bool")
        after_real = ops.pad(real[:, :-1], [[0, 0], [1, 0]])
        return ops.where(real & after_real, token_ids, -100)

    # === Writing ===
    def initial_state(self, inputs, max_new_tokens):
        """Caches that hold the prompts but for their last tokens; for `decoding.generate`.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, prompt).
            max_new_tokens: int, the room that is needed behind them.
        """
        token_ids, real = inputs["token_ids"], inputs["padding_mask"]
        batch, prompt = ops.shape(token_ids)[0], token_ids.shape[1]
        start = ops.sum(ops.cast(real, "int32"), axis=1)  # (batch,)
        seen = ops.pad(real, [[0, 0], [0, max_new_tokens]])  # (batch, column)
        caches = [
            block.self_attention.empty_cache(batch, prompt + max_new_tokens)
            for block in self._parts.blocks
        ]
        if prompt:
            mask = ops.tril(ops.ones((prompt, prompt + max_new_tokens), "bool"))
            mask = mask[None, None] & masks.keys(seen)  # (batch, 1, prompt, column)
            _, caches = self._run(token_ids, masks.real_positions(real), mask, caches, 0)
        column = ops.zeros_like(start) + prompt
        return {"caches": caches, "seen": seen, "start": start, "column": column}

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, the token's last hidden vector (batch, hidden), the state)."""
        column = state["column"][0] + index  # the same in all rows
        seen = state["seen"] | (ops.arange(state["seen"].shape[1]) == column)[None]
        position_ids = state["start"][:, None] + index  # (batch, 1)
        x, caches = self._run(
            token_ids[:, None], position_ids, masks.keys(seen), state["caches"], column, attention
        )
        state = {**state, "caches": caches, "seen": seen}
        return self._parts.finish(x)[:, 0], self._parts.normalize(x)[:, 0], state

    def _run(self, token_ids, position_ids, mask, caches, column, attention=None):
        """The blocks over new tokens whose keys and values are cached from `column` on."""
        x = self._parts.embed(token_ids, position_ids)  # (batch, length, hidden)
        written = []
        for block, cache in zip(self._parts.blocks, caches, strict=True):
            x, *weights, cache = block(
                x,
                attention_mask=mask,
                query_positions=position_ids,
                key_positions=position_ids,
                cache=cache,
                cache_index=column,
                return_weights=attention is not None,
            )
            if weights:
                keep_weights(attention, "self_attention", *weights)
            written.append(cache)
        return x, written


def text_inputs(pad_id):
    """The inputs of a language model by name, and what follows from them.

    Returns:
        the inputs, all but `token_ids` optional; position_ids (batch, length); the mask (batch, 1,
        length, length).
    """
    inputs = {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask", optional=True),
        "position_ids": keras.Input((None,), dtype="int32", name="position_ids", optional=True),
        "attention_mask": keras.Input(
            (None, None), dtype="bool", name="attention_mask", optional=True
        ),
    }
    real = layers.PaddingMask(pad_id, name="padding")(inputs["token_ids"], inputs["padding_mask"])
    position_ids = layers.PositionIds(name="positions")(real, inputs["position_ids"])
    mask = layers.AttentionMask("lm", name="mask")(real, None, inputs["attention_mask"])
    return inputs, position_ids, mask
