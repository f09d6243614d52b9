"""What encoder-decoders share: the loss of the labels, and writing token by token."""

import functools

import keras
import numpy as np
from keras import ops

from kerasattn import decoding, layers
from kerasattn.models.base import BaseModel
from kerasattn.models.steps import Steps, keep_weights
from kerasattn.models.writing import (
    check_count,
    check_length,
    fed_tokens,
    read_ids,
    to_bucket,
    writing_options,
)
from kerasattn.ops import masks
from kerasattn.training.losses import label_loss


class EncoderDecoder(Steps, BaseModel):
    """A model that reads one text both ways and writes another from left to right.

    A subclass sets, most of it by `_keep`, beside what `BaseModel` asks for,

        self._parts: namespace of the parts that the constructor ran, to be run again for writing:
            `read(token_ids, real)`, the encoder's hidden vectors, layer by layer;
            `embed(decoder_token_ids, position_ids)`, the list `blocks` of the decoder,
            `biases(x, keys, context, position_ids)`, of its self- and cross-attention or None,
            `normalize(x)`, which gives the last hidden vectors, and `finish(x)`, which gives
            logits (None without a head).
        self.vocabulary_size: int;
        self.max_positions: int, the rows of its position tables, or None for no limit;
        self.max_source_length: int, the longest text that is read, or None for those positions;
        self.pad_id, self.start_id, self.end_id: int; end_id may be several or None.

    The step interface of `kerasattn.decoding` is `initial_state`, `hidden_step`, `reorder` and what
    `Steps` makes of them.
    """

    max_positions = max_source_length = None
    label_smoothing = 0.0  # of the loss
    _attention = (
        None  # a dict of lists of symbolic weights (batch, heads, query, key), layer by layer
    )

    def _check_inputs(self, inputs):
        checked = super()._check_inputs(inputs)
        if checked["decoder_token_ids"] is None:
            raise ValueError(
                f"{self.name} needs decoder_token_ids beside token_ids; of labels, shift_right("
                "labels)."
            )
        check_length("token_ids", checked["token_ids"], self._most_read())
        check_length("decoder_token_ids", checked["decoder_token_ids"], self.max_positions)
        return checked

    def _most_read(self):
        """The most tokens of a text that is read, or None."""
        most = self.max_source_length
        return self.max_positions if most is None else most

    # === Loss ===
    def shift_right(self, labels):
        """The decoder's tokens that tell these labels: start_id, then all labels but the last.

        (batch, length) int, -100 where nothing is asked -> (batch, length) int32.
        """
        labels = ops.cast(labels, "int32")
        token_ids = ops.where(ops.equal(labels, -100), self.pad_id, labels)
        return ops.concatenate(
            [ops.full_like(token_ids[:, :1], self.start_id), token_ids[:, :-1]], axis=1
        )

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Cross-entropy of the labels, in nats each, unless `compile` was given a loss.

        y: labels (batch, length), what each position of the decoder is to tell, -100 where nothing
        is asked; by default the decoder's own next real token. `sample_weight` (batch,) or (batch,
        length) weighs them.
        """
        if self._compile_loss is not None or "lm_logits" not in y_pred:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None:
            y = self._next_tokens(self._check_inputs(x))
        loss = label_loss(y, y_pred["lm_logits"], sample_weight, self.label_smoothing)
        return loss + sum(self.losses)

    def _next_tokens(self, inputs):
        """The decoder's tokens one to the left, and -100 where padding would be told."""
        token_ids = ops.cast(inputs["decoder_token_ids"], "int32")
        real = inputs["decoder_padding_mask"]
        real = token_ids != self.pad_id if real is None else ops.cast(real, "bool")
        labels = ops.where(real, token_ids, -100)[:, 1:]
        return ops.pad(labels, [[0, 0], [0, 1]], constant_values=-100)

    # === Attention ===
    def attention_weights(self, inputs):
        """Where each of the decoder's tokens looks, all at once; for models that keep it.

        `generate(return_attention=True)` and `decoding.attention_weights` tell it of what is
        written.

        Args:
            inputs: as those of a call.

        Returns:
            dict of numpy float32 (batch, layers, heads, query, key): "cross_attention", of the
            decoder's tokens and those that were read, and what else the model keeps.

        Raises:
            ValueError: for a model that keeps none.
        """
        if self._attention is None:
            raise ValueError(
                f"{type(self).__name__} keeps no attention weights of its calls; "
                "decoding.attention_weights tells those of its steps, if it has any."
            )
        found = self._attention_model(self._check_inputs(inputs), training=False)
        return {
            name: np.stack([ops.convert_to_numpy(x) for x in weights], axis=1)
            for name, weights in found.items()
        }

    @functools.cached_property  # past Keras' tracking, which would look for layers inside
    def _attention_model(self):
        weights = {name: list(weights) for name, weights in self._attention.items()}
        return keras.Model(self._inputs_struct, weights)

    # === Writing ===
    def generate(self, token_ids, strategy=None, max_new_tokens=32, padding_mask=None, **options):
        """Writes a text for each that it reads.

        Args:
            token_ids: int (batch, length), what is read.
            strategy: of `kerasattn.decoding`, such as `Sampling(...)`; `Greedy()` by default.
            max_new_tokens: int >= 0.
            padding_mask: bool (batch, length), True = real token; by default token_ids != pad_id.
            **options: of `decoding.generate`. `end_id` is by default the model's own, None for no
                end; `pad_id` is what stands after the end; `start_ids` what comes first.

        Returns:
            numpy int32 (batch, max_new_tokens), without the start token; or what
            `decoding.generate` returns for several hypotheses, or with scores.

        Raises:
            ValueError: for ids out of range, or more tokens than the model has positions for.
        """
        token_ids, real = read_ids("token_ids", token_ids, padding_mask, self)
        self.check_writes(token_ids.shape[1], strategy, max_new_tokens)
        length = token_ids.shape[1]
        width = min(to_bucket(max(length, 1)), self._most_read() or np.inf)
        more = ((0, 0), (0, int(width) - length))
        inputs, start_ids = self.writing_inputs(np.pad(token_ids, more), np.pad(real, more))
        options = {"start_ids": start_ids, **options}
        return decoding.generate(
            self,
            inputs,
            strategy,
            max_new_tokens=max_new_tokens,
            **writing_options(self, options),
        )

    def check_writes(self, num_read, strategy, max_new_tokens):
        """Refuses to write without a head, or without positions for that.

        Args:
            num_read: int, the tokens of the longest text.
            strategy, max_new_tokens: as those of `generate`.
        """
        if self._parts.finish is None:
            raise ValueError(f"{self.name} has no head to write with: build it with_head=True.")
        check_count("token_ids", num_read, self._most_read())
        fed = fed_tokens(strategy, max_new_tokens) + 1
        if self.max_positions is not None and fed > self.max_positions:
            raise ValueError(
                f"{self.name} has {self.max_positions} positions, got max_new_tokens = "
                f"{max_new_tokens}."
            )

    def writing_inputs(self, token_ids, real):
        """What `decoding.generate` takes for texts: the inputs, and start_ids (batch,).

        Args:
            token_ids: int (batch, length), what is read.
            real: bool (batch, length), where it is real.
        """
        start_ids = ops.full_like(token_ids[:, 0], self.start_id)
        return {"token_ids": token_ids, "padding_mask": real}, start_ids

    def initial_state(self, inputs, max_new_tokens):
        """Room for the decoder's keys and values, and those of what was read.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, length).
            max_new_tokens: int, the room that is needed.
        """
        context = self._parts.read(inputs["token_ids"], inputs["padding_mask"])[-1]
        attentions = [block.cross_attention for block in self._parts.blocks]
        batch = ops.shape(context)[0]
        return {
            "caches": [
                block.self_attention.empty_cache(batch, max_new_tokens)
                for block in self._parts.blocks
            ],
            "context": [attention.project_key_value(context) for attention in attentions],
            "real": inputs["padding_mask"],
        }

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, the token's last hidden vector (batch, hidden), the state)."""
        position_ids = ops.reshape(index, (1, 1))
        x = self._parts.embed(token_ids[:, None], position_ids)  # (batch, 1, hidden)
        room = state["caches"][0][1][:, 0, :, 0]  # (batch, max_new_tokens), for its length
        bias, context_bias = self._parts.biases(x, room, state["real"], position_ids)
        caches = []
        for block, cache, context in zip(
            self._parts.blocks, state["caches"], state["context"], strict=True
        ):
            x, *results = block(
                x,
                bias=bias,
                cache=cache,
                cache_index=index,
                context_cache=context,
                context_mask=masks.keys(state["real"]),
                context_bias=context_bias,
                return_weights=attention is not None,
                return_context_weights=attention is not None,
            )
            if attention is not None:
                keep_weights(attention, "self_attention", results[0])
                keep_weights(attention, "cross_attention", results.pop())
            caches.append(results[-1])
        state = {**state, "caches": caches}
        return self._parts.finish(x)[:, 0], self._parts.normalize(x)[:, 0], state

    def reorder(self, state, rows):
        """The state of other beams of the same texts: what was read is the same for all."""
        caches = keras.tree.map_structure(
            lambda leaf: ops.take(leaf, rows, axis=0), state["caches"]
        )
        return {**state, "caches": caches}


def pair_inputs(pad_id):
    """The inputs of an encoder-decoder by name, and what follows from them.

    Without a `decoder_padding_mask` the decoder takes all its tokens as real: what stands behind a
    text is not seen from within, and padding and the start token are often the same.

    Returns:
        the inputs; where the encoder's tokens are real (batch, length); the decoder's mask (batch,
        1, decoder length, decoder length).
    """

    def given(name, dtype):
        optional = name.endswith("mask")
        return keras.Input((None,), dtype=dtype, name=name, optional=optional)

    inputs = {
        "token_ids": given("token_ids", "int32"),
        "decoder_token_ids": given("decoder_token_ids", "int32"),
        "padding_mask": given("padding_mask", "bool"),
        "decoder_padding_mask": given("decoder_padding_mask", "bool"),
    }
    real = layers.PaddingMask(pad_id, name="padding")(inputs["token_ids"], inputs["padding_mask"])
    decoder_real = layers.PaddingMask(None, name="decoder_padding")(
        inputs["decoder_token_ids"], inputs["decoder_padding_mask"]
    )
    return inputs, real, layers.AttentionMask("lm", name="decoder_mask")(decoder_real)
