"""What causal language models share: the loss of the next token, and writing token by token."""

import keras
import numpy as np
from keras import ops

from kerasattn import decoding, layers
from kerasattn.models.base import BaseModel, as_numpy, check_range
from kerasattn.ops import masks
from kerasattn.training.losses import label_loss


class LanguageModel(BaseModel):
    """A model whose every position sees what stands before it and tells the next token.

    A subclass sets, most of it by `_keep`, beside what `BaseModel` asks for,

        self._parts: namespace of the parts that the constructor ran, to be run again on one token:
            `embed(token_ids, position_ids)`, the list `blocks`, and `finish(x)`, which gives
            logits (None without a head).
        self.vocabulary_size: int;
        self.max_positions: int, the rows of its position table, or None for no limit;
        self.pad_id, self.start_id, self.end_id: int or None; end_id may be several.

    Its positions count real tokens, so padding may stand anywhere. The step interface of
    `kerasattn.decoding` is `initial_state` and `step`.
    """

    max_positions = None

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
    def generate(self, token_ids, strategy=None, max_new_tokens=32, padding_mask=None, **options):
        """Continues prompts.

        Args:
            token_ids: int (batch, length), padded on either side. A prompt without a token starts
                from start_id.
            strategy: of `kerasattn.decoding`: `Greedy()` by default, `Sampling(...)`, `Beam(...)`.
            max_new_tokens: int >= 0.
            padding_mask: bool (batch, length), True = real token; by default token_ids != pad_id.
            **options: of `decoding.generate`. `end_id` is by default the model's own, None for no
                end; `pad_id` is what stands after the end.

        Returns:
            numpy int32 (batch, max_new_tokens), the new tokens alone; or what
            `decoding.generate` returns for several hypotheses, or with scores.

        Raises:
            ValueError: for ids out of range, or more tokens than the model has positions for.
        """
        if self._parts.finish is None:
            raise ValueError(f"{self.name} has no head to write with: build it with_head=True.")
        token_ids, real = self._read_prompts(token_ids, padding_mask)
        if self.max_positions is not None:
            longest = int(real.sum(axis=1).max(initial=0)) + max_new_tokens - 1
            if longest > self.max_positions:
                raise ValueError(
                    f"{self.name} has {self.max_positions} positions; prompts and max_new_tokens = "
                    f"{max_new_tokens} take {longest}. Shorten either."
                )
        return decoding.generate(
            self,
            {"token_ids": token_ids[:, :-1], "padding_mask": real[:, :-1]},
            strategy,
            start_ids=token_ids[:, -1],
            max_new_tokens=max_new_tokens,
            **writing_options(self, options),
        )

    def _read_prompts(self, token_ids, padding_mask):
        """Prompts of at least one token that end in the last column, and where they are real.

        All but the last column are a multiple of 8: few shapes to compile.
        """
        token_ids, real = read_ids("token_ids", token_ids, padding_mask, self)
        order = np.argsort(real, axis=1, kind="stable")  # padding first
        token_ids, real = (np.take_along_axis(x, order, axis=1) for x in (token_ids, real))
        longest = max(int(real.sum(axis=1).max(initial=0)), 1)
        width = 1 + to_bucket(longest - 1)
        token_ids, real = (np.pad(x, ((0, 0), (width, 0)))[:, -width:] for x in (token_ids, real))
        empty = ~real[:, -1]
        if empty.any():
            if self.start_id is None:
                raise ValueError(f"{self.name} has no start_id: give prompts of 1 token or more.")
            token_ids[empty, -1], real[empty, -1] = self.start_id, True
        return token_ids, real

    def initial_state(self, inputs, max_new_tokens):
        """Caches that hold the prompts but for their last tokens; for `decoding.generate`.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, prompt).
            max_new_tokens: int, the room that is needed behind them.
        """
        token_ids, real = inputs["token_ids"], inputs["padding_mask"]
        batch, prompt = token_ids.shape[0], token_ids.shape[1]
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

    def step(self, token_ids, index, state):
        """Feeds one token a row: (logits (batch, vocabulary_size), the state after it)."""
        column = state["column"][0] + index  # the same in all rows
        seen = state["seen"] | (ops.arange(state["seen"].shape[1]) == column)[None]
        position_ids = state["start"][:, None] + index  # (batch, 1)
        x, caches = self._run(
            token_ids[:, None], position_ids, masks.keys(seen), state["caches"], column
        )
        return self._parts.finish(x)[:, 0], {**state, "caches": caches, "seen": seen}

    def _run(self, token_ids, position_ids, mask, caches, column):
        """The blocks over new tokens whose keys and values are cached from `column` on."""
        x = self._parts.embed(token_ids, position_ids)  # (batch, length, hidden)
        written = []
        for block, cache in zip(self._parts.blocks, caches, strict=True):
            x, cache = block(
                x,
                attention_mask=mask,
                query_positions=position_ids,
                key_positions=position_ids,
                cache=cache,
                cache_index=column,
            )
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


# === What encoder-decoders need too ===


def read_ids(name, token_ids, padding_mask, model):
    """Token ids and their padding mask as numpy (batch, length), checked.

    Raises:
        ValueError: for other shapes or dtypes, or ids that are not in the vocabulary.
    """
    token_ids = as_numpy(token_ids)
    if token_ids.ndim != 2 or (token_ids.size and token_ids.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} takes integers of the shape (batch, length), got {token_ids.dtype} of the "
            f"shape {token_ids.shape}."
        )
    check_range(name, token_ids, model.vocabulary_size)
    token_ids = token_ids.astype("int32")
    if padding_mask is None:
        return token_ids, token_ids != (-1 if model.pad_id is None else model.pad_id)
    real = as_numpy(padding_mask).astype(bool)
    if real.shape != token_ids.shape:
        raise ValueError(
            f"The padding mask of {name} must be of their shape {token_ids.shape}, got "
            f"{real.shape}."
        )
    return token_ids, real


def to_bucket(length):
    """The next multiple of 8: few shapes to compile."""
    return -(-length // 8) * 8


def writing_options(model, options):
    """Options of `decoding.generate`, with the model's ids where none are given."""
    options = {"end_id": model.end_id, **options}
    if options.get("pad_id") is None:
        fill = [model.pad_id, *np.atleast_1d(options["end_id"]), 0]
        options["pad_id"] = int(next(i for i in fill if i is not None))
    return options


def check_length(name, token_ids, max_positions):
    """Refuses more tokens than there are positions: a compiled model would read garbage."""
    length = None if token_ids is None else token_ids.shape[1]
    if None not in (length, max_positions) and length > max_positions:
        raise ValueError(
            f"{name} takes at most {max_positions} tokens, the positions that there are; got "
            f"{length}."
        )
