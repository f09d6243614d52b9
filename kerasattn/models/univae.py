import types

import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.latent_text import LatentText
from kerasattn.models.parts import Parts
from kerasattn.models.univae_halves import UniVAEHalves
from kerasattn.models.univae_settings import check
from kerasattn.ops import gaussian, masks, vmf
from kerasattn.training.losses import token_cross_entropy, token_weights, weighted_mean
from kerasattn.training.metrics import Perplexity
from kerasattn.weights.tables import univae as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class UniVAE(UniVAEHalves, LatentText, BaseModel):
    """A variational autoencoder for text in one Transformer, with a latent for each upper layer.

    The same blocks read a sentence and write it. In each of the top `num_latent_layers` blocks the
    vector at position 0 of the reading is squeezed into a latent z and put back in its place; the
    writing sees that one vector, and nothing else of the reading. So the sentence reaches its copy
    only through num_latent_layers × latent_dim numbers, each layer's at another scale.

    Reading and writing meet in that column alone, so they are run one after the other: no logits
    and no last block for the reading, and none of it in generation.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: int, of the blocks.
        num_latent_layers: int from 1 to num_layers - 1, the blocks that carry a latent.
        latent_dim: int, numbers of a latent; None, with latent=None, for the hidden vectors as
            they are.
        latent: "vmf" (von Mises-Fisher), "gaussian", "quantized" (VQ-VAE), or None (autoencoder).
        kappa: float >= 0, concentration of the von Mises-Fisher distribution.
        codebook_size: int, codes of a latent layer of the quantized kind.
        kl_weight: float >= 0, of the Gaussian's KL; `training.AnnealWeight` changes it in `fit`.
        free_bits: float >= 0, bits that each dimension of a Gaussian latent carries for nothing.
        isotropy_weight: float >= 0, of a loss that makes von Mises-Fisher latents use every
            direction of their spheres, as samples do; see `layers.IsotropyRegularization`.
        swap_noise: float in [0, 1), of the latents, those that the writing gets of another sentence
            while training, so that it learns to doubt; see `layers.SwapNoise`.
        max_length: int, the longest sentence, with [CLS] and [SEP].
        word_dropout: float in [0, 1), of the tokens that the writing is fed while training, those
            that are hidden; see `layers.WordDropout`. `training.AnnealWeight` changes it in `fit`.
        length: "fixed" writes from position max_length on, so that positions tell nothing of the
            length; "conditioned" starts after the last token read, so that they choose it.
        backbone: "roformer" (rotary positions) or "bert" (learned absolute positions).
        embedding_dim: int, width of the embeddings if it differs from hidden_dim.
        max_positions: int, rows of the "bert" position table; by default 2 × max_length.
        activation: of the feed-forward parts and the head.
        dropout, attention_dropout: float in [0, 1).
        layer_norm_epsilon, head_norm_epsilon: float > 0.
        initializer_range: float > 0, standard deviation of the kernels at the start.
        pad_id, cls_id, sep_id: int, of [PAD], [CLS] and [SEP].
        unk_id: int, of [UNK], which word_dropout puts in a word's place.
        tokenizer: an object of `kerasattn.tokenizers`, so that methods take and return strings.
        seed: int or None, of dropout and sampling; keras.utils.set_random_seed is for weights.

    Inputs:
        token_ids: int (batch, length), [CLS] ... [SEP] and padding, length at most max_length.
        padding_mask: bool (batch, length), optional.

    Outputs:
        hidden: (batch, length, hidden_dim), of the writing.
        lm_logits: (batch, length, vocabulary_size); position i predicts token i + 1.
        latents: (batch, num_latent_layers, latent_dim); samples in training, else their means.
        kl: (batch,), with latent="gaussian": nats that the latents carry.

    Raises:
        ValueError: for settings that do not go together, saying which.

    Example:
    >>> from kerasattn.models import UniVAE
    >>> model = UniVAE(30, num_layers=3, num_heads=2, hidden_dim=16, intermediate_dim=32,
    ...                num_latent_layers=2, latent_dim=4, max_length=8)
    >>> latents = model.encode([[2, 7, 8, 3, 0]])
    >>> latents.shape, model.generate(latents, jit=False).shape
    ((1, 2, 4), (1, 8))

    Source: Su Jianlin, "UniVAE: a Transformer-based single-model, multi-scale VAE", 2021,
    https://kexue.fm/archives/8475.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        num_latent_layers=4,
        latent_dim=16,
        latent="vmf",
        kappa=32.0,
        codebook_size=512,
        kl_weight=1.0,
        free_bits=0.0,
        isotropy_weight=0.0,
        swap_noise=0.0,
        word_dropout=0.0,
        max_length=32,
        length="fixed",
        backbone="roformer",
        embedding_dim=None,
        max_positions=None,
        activation="gelu",
        dropout=0.1,
        attention_dropout=None,
        layer_norm_epsilon=1e-12,
        head_norm_epsilon=1e-12,
        initializer_range=0.02,
        pad_id=0,
        cls_id=2,
        sep_id=3,
        unk_id=1,
        tokenizer=None,
        seed=None,
        dtype=None,
        name="univae",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check(config)
        # Both halves have positions; heads are our own.
        make = Parts({**config, "max_length": max_positions or 2 * max_length, "heads": ()})
        policy = make.policy

        # === Layers ===
        token_embedding = make.table(vocabulary_size, "token_embedding")
        segment_embedding = make.table(2, "segment_embedding")
        position_embedding = rotary = None
        if backbone == "bert":
            position_embedding = make.positions()
        else:
            rotary = layers.RotaryEmbedding(dtype=policy, name="rotary")
        embedding_norm, embedding_dropout = make.norm(), make.dropout()
        embedding_projection = make.projection() if make.table_dim != hidden_dim else None
        blocks = make.blocks(rotary=rotary)
        # Latents are float32 in every policy: they are few, and they are all that gets across.
        latent_layers = range(num_layers - num_latent_layers, num_layers)
        latent_in, sampling, latent_out = {}, {}, {}
        for i in latent_layers if latent_dim else ():
            latent_in[i] = keras.layers.Dense(
                2 * latent_dim if latent == "gaussian" else latent_dim,
                kernel_initializer=make.initializer(),
                dtype="float32",
                name=f"latent_in_{i}",
            )
            # Of unit variance at the start, as the normalized vectors beside which it stands.
            spread = keras.initializers.VarianceScaling(latent_dim if latent == "vmf" else 1.0)
            latent_out[i] = keras.layers.Dense(
                hidden_dim, kernel_initializer=spread, dtype=policy, name=f"latent_out_{i}"
            )
            options = dict(name=f"latent_{i}", seed=make.seed(f"latent_{i}"), dtype="float32")
            if latent == "vmf":
                sampling[i] = layers.VonMisesFisherSampling(kappa, **options)
            elif latent == "gaussian":
                sampling[i] = layers.GaussianSampling(free_bits, kl_weight, **options)
            elif latent == "quantized":
                sampling[i] = layers.VectorQuantizer(codebook_size, **options)
        unit_norm = keras.layers.UnitNormalization(dtype="float32", name="mean_direction")
        head = layers.LanguageModelHead(
            token_embedding,
            activation=activation,
            layer_norm_epsilon=head_norm_epsilon,
            kernel_initializer=make.initializer(),
            dtype=policy,
            name="head",
        )
        padding = layers.PaddingMask(pad_id, name="padding")
        padding_but_first = layers.PaddingMask(pad_id, keep_first=True, name="padding_but_first")

        # === Parts ===
        divergences = []  # of Gaussian latents, (batch,) each

        def embed(token_ids, segment, position_ids):
            x = token_embedding(token_ids)  # (batch, length, table)
            x = x + segment_embedding(ops.full_like(token_ids, segment))
            if position_embedding is not None:
                x = position_embedding(x, position_ids=position_ids)
            x = embedding_dropout(embedding_norm(x))
            return x if embedding_projection is None else embedding_projection(x)

        def squeeze(i, first, rows):
            """The latent of block i from position 0: (batch, hidden) -> (batch, latent).

            `rows` (batch,) is False at rows of padding alone, which cost nothing.
            """
            if latent_dim is None:
                return first
            x = latent_in[i](first)
            if latent == "vmf":
                return sampling[i](unit_norm(x))
            if latent == "gaussian":
                mean, log_var = x[:, :latent_dim], x[:, latent_dim:]
                divergences.append(gaussian.kl(mean, log_var))
                return sampling[i](mean, log_var, rows)
            return x if latent is None else sampling[i](x, rows)

        def restore(i, z):
            """The vector that block i has at position 0: (batch, latent) -> (batch, 1, hidden)."""
            return (z if latent_dim is None else latent_out[i](z))[:, None]

        def read(token_ids, padding_mask, rows):
            position_ids = masks.positions(token_ids)
            places = dict(query_positions=position_ids, key_positions=position_ids)
            mask = masks.keys(padding_but_first(token_ids, padding_mask))
            x = embed(token_ids, 0, position_ids)  # (batch, length, hidden)
            latents, hidden = [], [x]
            for i, block in enumerate(blocks):
                if i in latent_layers:
                    latents.append(squeeze(i, x[:, 0], rows))
                    first = restore(i, latents[-1])
                    x = ops.concatenate([ops.cast(first, x.dtype), x[:, 1:]], axis=1)
                if i < num_layers - 1:  # the last block is read for its latent only
                    x = block(x, attention_mask=mask, **places)
                    hidden.append(x)
            return ops.stack(latents, axis=1), hidden

        def write(token_ids, padding_mask, latents, start, return_weights=False):
            position_ids = masks.positions(token_ids) + start[:, None]
            mask = masks.causal(token_ids) & masks.keys(padding(token_ids, padding_mask))
            # In latent layers a column stands before the tokens: z, at position 0, open to all.
            latent_mask = ops.concatenate([ops.ones_like(mask[..., :1]), mask], axis=-1)
            latent_positions = ops.pad(position_ids, [[0, 0], [1, 0]])
            x = embed(token_ids, 1, position_ids)  # (batch, length, hidden)
            hidden, weights = [x], []
            for i, block in enumerate(blocks):
                is_latent = i in latent_layers
                x = block(
                    x,
                    memory=restore(i, latents[:, i - num_layers]) if is_latent else None,
                    attention_mask=latent_mask if is_latent else mask,
                    query_positions=position_ids,
                    key_positions=latent_positions if is_latent else position_ids,
                    return_weights=return_weights,
                )
                if return_weights:
                    x, attention = x
                    weights.append(attention)
                hidden.append(x)
            return head(x), hidden, weights

        # === Model ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        padding_mask = keras.Input((None,), dtype="bool", name="padding_mask", optional=True)
        real = padding(token_ids, padding_mask)
        rows = ops.any(real, axis=1)  # (batch,)
        latents, read_hidden = read(token_ids, padding_mask, rows)
        if isotropy_weight:
            isotropy = layers.IsotropyRegularization(
                isotropy_weight, dtype="float32", name="isotropy"
            )
            latents = isotropy(latents, rows)
        if length == "fixed":
            start = ops.full_like(token_ids[:, 0], max_length)
        else:
            start = ops.sum(ops.cast(real, "int32"), axis=1)
        given, fed = latents, token_ids  # what the writing sees
        if swap_noise:
            options = dict(name="swap_noise", seed=make.seed("swap_noise"), dtype="float32")
            given = layers.SwapNoise(swap_noise, **options)(latents, rows)
        if word_dropout:
            options = dict(name="word_dropout", seed=make.seed("word_dropout"))
            kept = (pad_id, cls_id, sep_id)
            fed = layers.WordDropout(word_dropout, unk_id, kept, **options)(token_ids)
        logits, written_hidden, _ = write(fed, padding_mask, given, start)
        outputs = {"hidden": written_hidden[-1], "lm_logits": logits, "latents": latents}
        if latent == "gaussian":
            outputs["kl"] = sum(divergences[1:], divergences[0])
        super().__init__(
            {"token_ids": token_ids, "padding_mask": padding_mask},
            outputs,
            name=name,
        )

        # === Config ===
        self._config = {
            **config,
            "dtype": policy.name,
            "tokenizer": keras.saving.serialize_keras_object(tokenizer),
        }
        self._id_ranges = {"token_ids": vocabulary_size}
        self._hidden = [*read_hidden, *written_hidden]
        # In a namespace, where Keras does not look for layers: it has them all from the graph.
        self._parts = types.SimpleNamespace(
            write=write, embed=embed, restore=restore, blocks=blocks, head=head
        )
        self.tokenizer = tokenizer
        self.latent, self.length, self.kappa = latent, length, kappa
        self.num_layers, self.latent_layers = num_layers, latent_layers
        self.latent_shape = (num_latent_layers, latent_dim or hidden_dim)
        self.vocabulary_size, self.max_length = vocabulary_size, max_length
        # Rows of the table of positions; rotary ones have no end.
        self.max_positions = None if backbone == "roformer" else max_positions or 2 * max_length
        self.pad_id, self.cls_id, self.sep_id = pad_id, cls_id, sep_id
        self._perplexity = Perplexity()
        self._kl = keras.metrics.Mean(name="kl") if latent in ("vmf", "gaussian") else None

    def _check_inputs(self, inputs):
        checked = super()._check_inputs(inputs)
        length = checked["token_ids"].shape[1]
        if length is not None and not 1 <= length <= self.max_length:
            raise ValueError(
                f"Sentences have 1 to max_length = {self.max_length} tokens, got {length}."
            )
        return checked

    # === Loss ===
    def fit(self, x=None, y=None, **kwargs):
        """As `keras.Model.fit`, without a target: `fit(token_ids)`, `fit(dataset)`."""
        return super().fit(x, _target(x, y, kwargs), **kwargs)

    def evaluate(self, x=None, y=None, **kwargs):
        """As `keras.Model.evaluate`, without a target."""
        return super().evaluate(x, _target(x, y, kwargs), **kwargs)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Cross-entropy of the written half's real tokens, nats a token, and the latents' cost.

        The Gaussian's KL, in nats a sentence, is spread over the sentence's tokens, so that the sum
        is the negative evidence lower bound a token. The costs of latents, in training and in
        `evaluate` alike, are means over the sentences of the batch; rows of padding are none.

        `sample_weight` (batch,) or (batch, length) weighs the cross-entropy of sentences or tokens,
        and not the costs of latents, which the layers add by themselves. A loss that `compile` was
        given takes the place of the cross-entropy, and gets the targets y.
        """
        inputs = self._check_inputs(x)
        token_ids = ops.cast(inputs["token_ids"], "int32")
        real = inputs["padding_mask"]
        real = token_ids != self.pad_id if real is None else ops.cast(real, "bool")
        rows = ops.any(real, axis=1)
        weights = ops.cast(real[:, 1:], "float32")
        num_tokens = ops.sum(weights)
        if sample_weight is not None:
            weights = weights * token_weights(sample_weight, token_ids)[:, 1:]
        losses = token_cross_entropy(token_ids[:, 1:], y_pred["lm_logits"][:, :-1])
        self._perplexity.update_state(losses, sample_weight=weights)
        loss = weighted_mean(losses, weights)
        if self.latent == "gaussian":
            self._kl.update_state(y_pred["kl"], sample_weight=ops.cast(rows, "float32"))
        elif self.latent == "vmf":  # a constant: reported, not optimized
            count, dim = self.latent_shape
            self._kl.update_state(count * vmf.kl_to_uniform(dim, self.kappa))
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        cost = sum(self.losses, 0.0)
        if self.latent == "gaussian":
            cost = cost * ops.sum(ops.cast(rows, "float32")) / ops.maximum(num_tokens, 1.0)
        return loss + cost


def _target(x, y, kwargs):
    """A target that nobody looks at: without one, Keras drops sample_weight silently."""
    if y is not None or kwargs.get("sample_weight") is None:
        return y
    x = next(iter(x.values())) if isinstance(x, dict) else x
    return np.asarray(x) if isinstance(x, (list, tuple)) else x
