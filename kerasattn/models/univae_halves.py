import functools

import keras
import numpy as np
from keras import ops

from kerasattn.models.base import BaseModel
from kerasattn.models.steps import Steps, keep_weights


class UniVAEHalves(Steps):
    """The halves of a `UniVAE` on their own, and its writing one token at a time.

    The step interface of `kerasattn.decoding` is `initial_state`, `hidden_step` and what `Steps`
    makes of it. The parts that the constructor ran over symbolic tensors are run again here:
    `self._parts`.
    """

    # === Parts as models of their own ===
    @functools.cached_property
    def encoder(self):
        """The reading alone: token_ids (and padding_mask) to the latents' means."""
        encoder = BaseModel(self._inputs_struct, self.output["latents"], name="encoder")
        encoder._id_ranges = self._id_ranges
        return encoder

    @functools.cached_property
    def decoder(self):
        """The writing alone, teacher forced.

        From decoder_token_ids (batch, length), latents (batch, num_latent_layers, latent_dim) and,
        with length="conditioned", lengths (batch,), to lm_logits (batch, length, vocabulary_size).
        """
        inputs = {
            "decoder_token_ids": keras.Input((None,), dtype="int32", name="decoder_token_ids"),
            "latents": keras.Input(self.latent_shape, dtype="float32", name="latents"),
        }
        if self.length == "conditioned":
            inputs["lengths"] = keras.Input((), dtype="int32", name="lengths")
        token_ids, latents = inputs["decoder_token_ids"], inputs["latents"]
        start = self._writing_start(token_ids, inputs)
        logits, _, _ = self._parts.write(token_ids, None, latents, start)
        decoder = BaseModel(inputs, logits, name="decoder")
        decoder._id_ranges = {"decoder_token_ids": self.vocabulary_size}
        return decoder

    def decoder_attention(self, inputs, training=False):
        """The attention weights of the writing, for the inputs of `decoder`.

        A list of (batch, heads, query, key), one a block; in latent layers key 0 is the latent.
        Dropout is off; `training` is there so that it is called as `decoder` is.
        Not a functional model: Keras takes every call of a layer to have as many outputs as its
        first one, and the first call of a block returns no weights.
        """
        token_ids = ops.convert_to_tensor(inputs["decoder_token_ids"], "int32")
        latents = ops.convert_to_tensor(inputs["latents"], "float32")
        start = self._writing_start(token_ids, inputs)
        return self._parts.write(token_ids, None, latents, start, return_weights=True)[2]

    def _writing_start(self, token_ids, inputs):
        if self.length == "conditioned":
            return ops.cast(inputs["lengths"], "int32")
        return ops.full_like(token_ids[:, 0], self.max_length)

    @property
    def quantizers(self):
        """The `VectorQuantizer`s, lowest latent layer first; empty for the other kinds."""
        if self.latent != "quantized":
            return []
        return [self.get_layer(f"latent_{i}") for i in self.latent_layers]

    # === One step at a time ===
    def initial_state(self, inputs, max_new_tokens):
        """Caches whose first column holds each latent; for `decoding.generate`.

        Args:
            inputs: dict of `latents` (batch, num_latent_layers, latent_dim) and `start` (batch,),
                the first position of the writing.
            max_new_tokens: int, the room that is needed.
        """
        batch = ops.shape(inputs["start"])[0]
        caches = []
        for i, block in enumerate(self._parts.blocks):
            attention = block.self_attention
            cache = attention.empty_cache(batch, 1 + max_new_tokens)
            if i in self.latent_layers:
                z = self._parts.restore(i, inputs["latents"][:, i - self.num_layers])
                first = attention.project_key_value(z, key_positions=np.zeros((1, 1), "int32"))
                cache = tuple(
                    ops.slice_update(old, (0, 0, 0, 0), ops.cast(new, old.dtype))
                    for old, new in zip(cache, first, strict=True)
                )
            caches.append(cache)
        seen = ops.zeros((batch, 1 + max_new_tokens), "bool")
        return {"caches": caches, "seen": seen, "start": inputs["start"]}

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, the token's last hidden vector (batch, hidden), the state)."""
        start, columns = state["start"], np.arange(state["seen"].shape[1])
        here = (columns == index + 1)[None] & (token_ids != self.pad_id)[:, None]
        seen = state["seen"] | here  # (batch, column): tokens that are not padding
        mask = seen[:, None, None, :]
        latent_mask = (seen | (columns == 0)[None])[:, None, None, :]
        position_ids = start[:, None] + index  # (batch, 1)
        x = self._parts.embed(token_ids[:, None], 1, position_ids)  # (batch, 1, hidden)
        caches = []
        for i, (block, cache) in enumerate(zip(self._parts.blocks, state["caches"], strict=True)):
            x, *weights, cache = block(
                x,
                attention_mask=latent_mask if i in self.latent_layers else mask,
                query_positions=position_ids,
                key_positions=position_ids,
                cache=cache,
                cache_index=index + 1,
                return_weights=attention is not None,
            )
            if weights:
                keep_weights(attention, "self_attention", *weights)
            caches.append(cache)
        state = {"caches": caches, "seen": seen, "start": start}
        return self._parts.head(x)[:, 0], x[:, 0], state
