"""Writing token by token: what language models and encoders that write share."""

import numpy as np

from kerasattn import decoding
from kerasattn.models.base import as_numpy, check_range
from kerasattn.models.steps import Steps


class Writing(Steps):
    """Continues prompts, for a model with `initial_state` and `hidden_step`.

    A model sets vocabulary_size, pad_id, start_id, end_id, max_positions as `LanguageModel` says.
    """

    max_positions = start_id = end_id = None

    def generate(self, token_ids, strategy=None, max_new_tokens=32, padding_mask=None, **options):
        """Continues prompts.

        Args:
            token_ids: int (batch, length), padded on either side. A prompt without a token starts
                from start_id.
            strategy: of `kerasattn.decoding`, such as `Sampling(...)`; `Greedy()` by default.
            max_new_tokens: int >= 0.
            padding_mask: bool (batch, length), True = real token; by default token_ids != pad_id.
            **options: of `decoding.generate`. `end_id` is by default the model's own, None for no
                end; `pad_id` is what stands after the end. Processors look at prompts too.

        Returns:
            numpy int32 (batch, max_new_tokens), the new tokens alone; or what
            `decoding.generate` returns for several hypotheses, with scores, or as a stream,
            which gives token ids (batch,), step by step.

        Raises:
            ValueError: for ids out of range, or more tokens than the model has positions for.
        """
        token_ids, real = self._read_prompts(token_ids, padding_mask)
        self.check_writes(int(real.sum(axis=1).max(initial=0)), strategy, max_new_tokens)
        inputs, start_ids = self.writing_inputs(token_ids, real)
        if options.get("processors"):
            options.setdefault("history", np.where(real, token_ids, -1))
        return decoding.generate(
            self,
            inputs,
            strategy,
            start_ids=start_ids,
            max_new_tokens=max_new_tokens,
            **writing_options(self, options),
        )

    def writing_inputs(self, token_ids, real):
        """What `decoding.generate` takes for prompts: the inputs, and start_ids (batch,).

        Args:
            token_ids: int (batch, length), prompts that end in the last column.
            real: bool (batch, length), where they are real.
        """
        return {"token_ids": token_ids[:, :-1], "padding_mask": real[:, :-1]}, token_ids[:, -1]

    def prompt_hidden(self, inputs):
        """The hidden vectors (batch, length, hidden) of prompts but for their last tokens.

        Beside them, where the tokens are real (batch, length); None if there are none.
        """
        if not inputs["token_ids"].shape[1]:
            return None
        inputs = self._last_columns(inputs)
        return self(inputs, training=False)["hidden"], inputs["padding_mask"]

    def _last_columns(self, inputs):
        """As many as there are positions: the others are padding that fills a bucket."""
        if self.max_positions is None:
            return inputs
        return {name: x[:, -self.max_positions :] for name, x in inputs.items()}

    def check_writes(self, num_read, strategy, max_new_tokens):
        """Refuses to write without a head, or without positions for that.

        Args:
            num_read: int, the tokens of the longest prompt.
            strategy, max_new_tokens: as those of `generate`.
        """
        self._check_head()
        longest = num_read + fed_tokens(strategy, max_new_tokens)
        if self.max_positions is not None and longest > self.max_positions:
            raise ValueError(
                f"{self.name} has {self.max_positions} positions; prompts and max_new_tokens = "
                f"{max_new_tokens} take {longest}. Shorten either."
            )

    def _check_head(self):
        if self._parts.finish is None:
            raise ValueError(f"{self.name} has no head to write with: build it with_head=True.")

    def _read_prompts(self, token_ids, padding_mask):
        """Prompts of at least one token that end in the last column, and where they are real.

        All but the last column are a multiple of 8: few shapes to compile.
        """
        self._check_head()
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


def fed_tokens(strategy, max_new_tokens):
    """How many new tokens a strategy feeds at most: the last one only to look at its vector."""
    looks_ahead = isinstance(strategy, decoding.Contrastive)
    return max_new_tokens if looks_ahead else max_new_tokens - 1


def check_length(name, token_ids, max_positions):
    """Refuses more tokens than there are positions: a compiled model would read garbage."""
    if token_ids is not None:
        check_count(name, token_ids.shape[1], max_positions)


def check_count(name, length, max_positions):
    """As `check_length`, of a number of tokens."""
    if None not in (length, max_positions) and length > max_positions:
        raise ValueError(
            f"{name} takes at most {max_positions} tokens, the positions that there are; got "
            f"{length}."
        )
