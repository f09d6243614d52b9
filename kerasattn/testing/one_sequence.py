"""UniVAE in the form of its paper, one sequence of twice the length, to compare ours with."""

import numpy as np
from keras import ops

from kerasattn.ops import masks
from kerasattn.ops.compiled import compiled


class OneSequenceUniVAE:
    """Runs the layers of a `UniVAE` over the text and its copy as one sequence.

    Where `UniVAE` reads and writes in two passes, here both halves go through every block, the
    masks keep them apart, and position 0 is replaced before each latent layer. It computes the
    same, for twice the work: it is there to check against, and to be measured against.

    Args:
        univae: `kerasattn.models.UniVAE`, whose layers (and weights) it shares.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import UniVAE
    >>> from kerasattn.testing import OneSequenceUniVAE
    >>> model = UniVAE(9, num_layers=2, num_heads=1, hidden_dim=8, intermediate_dim=8,
    ...                num_latent_layers=1, latent_dim=4, max_length=6)
    >>> ids = np.array([[2, 7, 8, 3, 0]])
    >>> other = OneSequenceUniVAE(model)(ids)["lm_logits"]
    >>> tuple(other.shape), float(np.abs(model(ids)["lm_logits"] - other).max()) < 1e-5
    ((1, 5, 9), True)

    Source: Su Jianlin, 2021, https://kexue.fm/archives/8475.
    """

    def __init__(self, univae):
        self.univae = univae
        self.config = univae.get_config()
        self._steps = {}

    def __call__(self, token_ids, latents=None, written_ids=None, padding_mask=None, start=None):
        """Reads and writes at once.

        Args:
            token_ids: int (batch, length), the half to be read.
            latents: (batch, num_latent_layers, latent_dim) to be put in; by default they are
                taken from the half that is read.
            written_ids: int (batch, written), the half to be written, by default the same.
            padding_mask: bool (batch, length), True = real, of both halves; by default all but
                the padding, and whatever stands at position 0.
            start: int (batch,), the first position of the written half, by default what the
                model's `length` says.

        Returns:
            dict of `hidden` (batch, length + written, hidden_dim) of both halves, `lm_logits`
            (batch, written, vocabulary_size) of the written one, and `latents`.
        """
        hidden, latents = self.hidden(token_ids, latents, written_ids, padding_mask, start)
        logits = self.logits(hidden[:, token_ids.shape[1] :])
        return {"hidden": hidden, "lm_logits": logits, "latents": latents}

    def hidden(self, token_ids, latents=None, written_ids=None, padding_mask=None, start=None):
        """The last hidden states of both halves, and the latents."""
        config, layer = self.config, self.univae.get_layer
        written_ids = token_ids if written_ids is None else written_ids
        halves = [ops.convert_to_tensor(half, "int32") for half in (token_ids, written_ids)]
        if padding_mask is None:
            real = [ops.not_equal(half, config["pad_id"]) for half in halves]
        else:
            real = [ops.cast(padding_mask, "bool")] * 2
        if start is None and config["length"] == "conditioned":
            start = ops.sum(ops.cast(real[0], "int32"), axis=1)
        start = config["max_length"] if start is None else ops.cast(start, "int32")[:, None]

        # === One sequence ===
        ids = ops.concatenate(halves, axis=1)  # (batch, length + written)
        segments = ops.concatenate([ops.zeros_like(halves[0]), ops.ones_like(halves[1])], axis=1)
        places = [masks.positions(half) for half in halves]
        places = ops.concatenate([places[0], places[1] + start], axis=1)
        real = ops.concatenate(real, axis=1) | ops.equal(masks.positions(ids), 0)
        apart = masks.autoencoder(segments) & masks.keys(real)
        joined = masks.autoencoder(segments, latent=True) & masks.keys(real)

        # === Block by block ===
        x = layer("token_embedding")(ids) + layer("segment_embedding")(segments)
        if config["backbone"] == "bert":
            x = layer("position_embedding")(x, position_ids=places)
        x = layer("embedding_dropout")(layer("embedding_norm")(x))
        if config["embedding_dim"] not in (None, config["hidden_dim"]):
            x = layer("embedding_projection")(x)
        plain_layers = config["num_layers"] - config["num_latent_layers"]
        taken = []
        for i in range(config["num_layers"]):
            if i >= plain_layers:
                if latents is None:
                    taken.append(self._take(i, x[:, 0]))
                else:
                    taken.append(ops.convert_to_tensor(latents)[:, i - plain_layers])
                z = (
                    taken[-1]
                    if config["latent_dim"] is None
                    else layer(f"latent_out_{i}")(taken[-1])
                )
                x = ops.concatenate([ops.cast(z, x.dtype)[:, None], x[:, 1:]], axis=1)
            x = layer(f"block_{i}")(
                x,
                attention_mask=apart if i < plain_layers else joined,
                query_positions=places,
                key_positions=places,
            )
        return x, ops.stack(taken, axis=1)

    def logits(self, hidden):
        """(batch, length, hidden_dim) -> (batch, length, vocabulary_size)."""
        return self.univae.get_layer("head")(hidden)

    def _take(self, i, first):
        """The latent of block i from the vector at position 0."""
        latent, dim = self.config["latent"], self.config["latent_dim"]
        if dim is None:
            return first
        x = self.univae.get_layer(f"latent_in_{i}")(first)
        if latent is None:
            return x
        sampling = self.univae.get_layer(f"latent_{i}")
        if latent == "vmf":
            return sampling(x / ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True)))
        return sampling(x[:, :dim], x[:, dim:]) if latent == "gaussian" else sampling(x)

    def generate(self, latents, max_new_tokens=None, start=None, whole_logits=False, stop=True):
        """Writes greedily as the reference does: all of the sequence anew for each token.

        Args:
            latents: (batch, num_latent_layers, latent_dim).
            max_new_tokens: int, by default max_length - 1.
            start: int (batch,), see `__call__`; needed with length="conditioned".
            whole_logits: bool, whether to compute the logits of every position, as the reference
                does, and not only of the one that is looked at.
            stop: bool, whether to end once every sentence has.

        Returns:
            numpy int32 (batch, 1 + max_new_tokens).
        """
        config = self.config
        steps = config["max_length"] - 1 if max_new_tokens is None else max_new_tokens
        if start is None:
            start = np.full(len(latents), config["max_length"], "int32")
        read = np.full((len(latents), config["max_length"]), config["pad_id"], "int32")
        read[:, 0] = config["cls_id"]
        ids = np.full((len(latents), 1 + steps), config["pad_id"], "int32")
        ids[:, 0] = config["cls_id"]
        done = np.zeros(len(latents), "bool")
        following = self._following(whole_logits)
        for step in range(steps):
            tokens = ops.convert_to_numpy(following(read, ids[:, :-1], latents, start, step))
            ids[:, step + 1] = np.where(done, config["pad_id"], tokens)
            done |= ids[:, step + 1] == config["sep_id"]
            if stop and done.all():
                break
        return ids

    def _following(self, whole_logits):
        """The compiled function of one step; shapes never change, so that it is traced once."""
        if whole_logits not in self._steps:

            def function(read, ids, latents, start, step):
                hidden, _ = self.hidden(read, latents, ids, start=start)
                written = hidden[:, read.shape[1] :]
                if whole_logits:
                    logits = ops.take(self.logits(written), step, axis=1)
                else:
                    logits = self.logits(ops.take(written, step, axis=1)[:, None])[:, 0]
                return ops.cast(ops.argmax(logits, axis=-1), "int32")

            self._steps[whole_logits] = compiled(function, lambda: self.univae.variables)
        return self._steps[whole_logits]
