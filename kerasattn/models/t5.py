import types

import keras

from kerasattn import layers
from kerasattn.models.encoder_decoder import EncoderDecoder, pair_inputs
from kerasattn.ops import masks, seeds
from kerasattn.weights.tables import t5 as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class T5(EncoderDecoder):
    """An encoder-decoder whose positions are a bias of the scores, shared by all blocks of a stack.

    By default the sizes and parts of version 1.1; version 1.0 has activation="relu", gated=False,
    tied_head=True and intermediate_dim=3072.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_decoder_layers: int, blocks of the encoder and of the decoder, by default
            the same.
        num_heads, head_dim, hidden_dim, intermediate_dim: int, of the blocks; heads need not fill
            hidden_dim. Scores are not scaled.
        activation: of the feed-forward parts; "gelu_tanh" is the tanh form.
        gated: bool, whether they are gated.
        num_buckets, max_distance: int, see `layers.RelativePositionBias`.
        with_head: bool, whether there are logits.
        tied_head: bool, whether they come from the token table.
        scale_output: bool, whether the head reads hidden * hidden_dim ** -0.5; by default if tied.
        cross_position_bias: bool, whether the cross-attention has the decoder's bias too, as
            bert4keras has it.
        dropout: float in [0, 1).
        layer_norm_epsilon: float > 0.
        initializer_factor: float > 0, of the standard deviations at the start.
        pad_id, start_id, end_id: int, of padding, of what the decoder starts with, of the end.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length).
        decoder_token_ids: int (batch, decoder length), start_id first; see `shift_right`.
        padding_mask: bool (batch, length), True = real token, by default token_ids != pad_id.
        decoder_padding_mask: bool (batch, decoder length), by default all True.

    Outputs:
        hidden: (batch, decoder length, hidden_dim).
        encoder_hidden: (batch, length, hidden_dim).
        lm_logits: (batch, decoder length, vocabulary_size).

    Example:
    >>> from kerasattn.models import T5
    >>> model = T5(30, num_layers=2, num_heads=2, head_dim=8, hidden_dim=16, intermediate_dim=32)
    >>> outputs = model({"token_ids": [[7, 8, 1]], "decoder_token_ids": [[0, 9]]})
    >>> tuple(outputs["lm_logits"].shape)
    (1, 2, 30)

    Source: https://arxiv.org/abs/1910.10683, section 2.1; version 1.1:
    https://arxiv.org/abs/2002.05202, table 1.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_decoder_layers=None,
        num_heads=12,
        head_dim=64,
        hidden_dim=768,
        intermediate_dim=2048,
        activation="gelu_tanh",
        gated=True,
        num_buckets=32,
        max_distance=128,
        with_head=True,
        tied_head=False,
        scale_output=None,
        cross_position_bias=False,
        dropout=0.1,
        layer_norm_epsilon=1e-6,
        initializer_factor=1.0,
        pad_id=0,
        start_id=0,
        end_id=1,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        scaled = tied_head if scale_output is None else scale_output

        # === Layers ===
        def initializer():
            return keras.initializers.VarianceScaling(
                initializer_factor**2, mode="fan_in", distribution="untruncated_normal"
            )

        def stack(name, count, cross_attention):
            return [
                layers.TransformerBlock(
                    num_heads,
                    intermediate_dim,
                    activation=activation,
                    gated=gated,
                    dropout=dropout,
                    norm="pre",
                    norm_type="rms",
                    layer_norm_epsilon=layer_norm_epsilon,
                    cross_attention=cross_attention,
                    head_dim=head_dim,
                    attention_scale=1.0,
                    use_bias=False,
                    feed_forward_dropout=dropout,
                    kernel_initializer=initializer(),
                    seed=seeds.child(seed, f"{name}_block_{i}"),
                    dtype=policy,
                    name=f"{name}_block_{i}",
                )
                for i in range(count)
            ]

        def position_bias(name, bidirectional):
            return layers.RelativePositionBias(
                num_heads,
                num_buckets,
                max_distance,
                bidirectional,
                embeddings_initializer=keras.initializers.RandomNormal(
                    stddev=initializer_factor * hidden_dim**-0.5
                ),
                dtype=policy,
                name=f"{name}_position_bias",
            )

        def norm(name):
            return keras.layers.RMSNormalization(
                epsilon=layer_norm_epsilon, dtype=policy, name=f"{name}_norm"
            )

        token_embedding = layers.TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=initializer_factor),
            dtype=policy,
            name="token_embedding",
        )
        drop = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "dropout"), dtype=policy, name="dropout"
        )
        encoder_bias = position_bias("encoder", True)
        decoder_bias = position_bias("decoder", False)
        encoder_blocks = stack("encoder", num_layers, False)
        decoder_blocks = stack("decoder", num_decoder_layers or num_layers, True)
        encoder_norm, decoder_norm = norm("encoder"), norm("decoder")
        # A layer: Keras takes a symbolic tensor times a number to be sparse.
        output_scale = keras.layers.Rescaling(hidden_dim**-0.5, dtype=policy, name="output_scale")
        head = None
        if with_head:
            head = layers.LanguageModelHead(
                token_embedding if tied_head else None,
                use_bias=False,
                vocabulary_size=None if tied_head else vocabulary_size,
                kernel_initializer=initializer(),
                dtype=policy,
                name="head",
            )

        # === Parts ===
        def read(token_ids, real):
            hidden = [drop(token_embedding(token_ids))]  # each (batch, length, hidden)
            bias, mask = encoder_bias(hidden[0]), masks.keys(real)
            for block in encoder_blocks:
                hidden.append(block(hidden[-1], attention_mask=mask, bias=bias))
            hidden[-1] = drop(encoder_norm(hidden[-1]))
            return hidden

        def embed(decoder_token_ids, position_ids=None):
            return drop(token_embedding(decoder_token_ids))

        def biases(x, keys, context, position_ids=None):
            """(1, heads, query, key), of the self-attention and of the cross-attention."""
            bias = decoder_bias(x, keys, query_positions=position_ids)
            if not cross_position_bias:
                return bias, None
            return bias, decoder_bias(x, context, query_positions=position_ids)

        def logits(hidden):
            return head(output_scale(hidden) if scaled else hidden)

        # === Model ===
        inputs, real, mask = pair_inputs(pad_id)
        read_hidden = read(inputs["token_ids"], real)
        context, context_mask = read_hidden[-1], masks.keys(real)
        hidden = [embed(inputs["decoder_token_ids"])]  # each (batch, decoder length, hidden)
        bias, context_bias = biases(hidden[0], hidden[0], context)
        for block in decoder_blocks:
            x = block(
                hidden[-1],
                attention_mask=mask,
                bias=bias,
                context=context,
                context_mask=context_mask,
                context_bias=context_bias,
            )
            hidden.append(x)
        hidden[-1] = drop(decoder_norm(hidden[-1]))
        outputs = {"hidden": hidden[-1], "encoder_hidden": context}
        if with_head:
            outputs["lm_logits"] = logits(hidden[-1])  # (batch, decoder length, vocabulary)
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._id_ranges = dict.fromkeys(("token_ids", "decoder_token_ids"), vocabulary_size)
        self._hidden = [*read_hidden, *hidden]
        self._parts = types.SimpleNamespace(
            read=read,
            embed=embed,
            blocks=decoder_blocks,
            biases=biases,
            finish=head and (lambda x: logits(decoder_norm(x))),
        )
        self.vocabulary_size = vocabulary_size
        self.pad_id, self.start_id, self.end_id = pad_id, start_id, end_id
        self._form = self.formats[0 if gated else 2]  # that it is saved in
        # Queries start smaller, for scores are not scaled.
        for block in encoder_blocks + decoder_blocks:
            for attention in (block.self_attention, block.cross_attention):
                if attention is not None:
                    kernel = attention.query.kernel
                    kernel.assign(kernel.value * head_dim**-0.5)

    def save_pretrained(self, folder):
        """Writes the weights and the config; whether it is gated tells under which names."""
        self._form.save(self, self._config, folder)


@keras.saving.register_keras_serializable(package="kerasattn")
class MT5(T5):
    """T5 1.1 for many languages: `T5` with folders of its own name.

    Example:
    >>> from kerasattn.models import MT5
    >>> model = MT5(30, num_layers=1, num_heads=2, head_dim=8, hidden_dim=16, intermediate_dim=32)
    >>> model.generate([[7, 8, 1]], max_new_tokens=3).shape
    (1, 3)

    Source: https://arxiv.org/abs/2010.11934.
    """

    formats = tables.MT5_FORMATS
