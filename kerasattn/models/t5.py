import keras

from kerasattn import layers
from kerasattn.models.encoder_decoder import EncoderDecoder, pair_inputs
from kerasattn.models.parts import language_model_head
from kerasattn.models.settings import check_settings
from kerasattn.ops import masks, seeds
from kerasattn.weights.tables import t5 as tables


class T5Parts:
    """Makes T5's layers.

    Args:
        config: dict of the arguments of the model's constructor, called as those of `T5`.
    """

    def __init__(self, config):
        self.config = config
        check_settings(config)
        self.policy = keras.dtype_policies.get(config["dtype"] or keras.config.dtype_policy())

    def initializer(self):
        """A new one each time: one object would give equal kernels."""
        return keras.initializers.VarianceScaling(
            self.config["initializer_factor"] ** 2,
            mode="fan_in",
            distribution="untruncated_normal",
        )

    def table(self):
        """A vector for each token."""
        stddev = self.config["initializer_factor"]
        return layers.TokenEmbedding(
            self.config["vocabulary_size"],
            self.config["hidden_dim"],
            embeddings_initializer=keras.initializers.RandomNormal(stddev=stddev),
            dtype=self.policy,
            name="token_embedding",
        )

    def dropout(self):
        config = self.config
        return keras.layers.Dropout(
            config["dropout"],
            seed=seeds.child(config["seed"], "dropout"),
            dtype=self.policy,
            name="dropout",
        )

    def blocks(self, name, count):
        """The blocks of the encoder or the decoder, `encoder_block_0` first."""
        config = self.config
        return [
            layers.TransformerBlock(
                config["num_heads"],
                config["intermediate_dim"],
                activation=config["activation"],
                gated=config["gated"],
                dropout=config["dropout"],
                norm="pre",
                norm_type="rms",
                layer_norm_epsilon=config["layer_norm_epsilon"],
                cross_attention=name == "decoder",
                head_dim=config["head_dim"],
                attention_scale=1.0,
                use_bias=False,
                feed_forward_dropout=config["dropout"],
                kernel_initializer=self.initializer(),
                seed=seeds.child(config["seed"], f"{name}_block_{i}"),
                dtype=self.policy,
                name=f"{name}_block_{i}",
            )
            for i in range(count)
        ]

    def position_bias(self, name, bidirectional):
        config = self.config
        stddev = config["initializer_factor"] * config["hidden_dim"] ** -0.5
        return layers.RelativePositionBias(
            config["num_heads"],
            config["num_buckets"],
            config["max_distance"],
            bidirectional,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=stddev),
            dtype=self.policy,
            name=f"{name}_position_bias",
        )

    def norm(self, name):
        epsilon = self.config["layer_norm_epsilon"]
        return keras.layers.RMSNormalization(
            epsilon=epsilon, dtype=self.policy, name=f"{name}_norm"
        )

    def reader(self, token_embedding, drop):
        """The encoder: a function from token ids and where they are real, and its blocks.

        The function returns the embedding output and every block's, each (batch, length, hidden),
        the last after the final norm.
        """
        bias = self.position_bias("encoder", True)
        blocks = self.blocks("encoder", self.config["num_layers"])
        norm = self.norm("encoder")

        def read(token_ids, real):
            hidden = [drop(token_embedding(token_ids))]
            biases, mask = bias(hidden[0]), masks.keys(real)
            for block in blocks:
                hidden.append(block(hidden[-1], attention_mask=mask, bias=biases))
            hidden[-1] = drop(norm(hidden[-1]))
            return hidden

        return read, blocks

    def shrink_queries(self, blocks):
        """Queries start smaller, for scores are not scaled."""
        for block in blocks:
            for attention in (block.self_attention, block.cross_attention):
                if attention is not None:
                    kernel = attention.query.kernel
                    kernel.assign(kernel.value * self.config["head_dim"] ** -0.5)


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
        scale_output: bool, whether the head reads hidden * hidden_dim ** -0.5; by default if tied,
            but not of `MT5`.
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
    >>> model = T5(30, num_layers=1, num_heads=2, head_dim=8, hidden_dim=16, intermediate_dim=32)
    >>> outputs = model({"token_ids": [[7, 8, 1]], "decoder_token_ids": [[0, 9]]})
    >>> tuple(outputs["lm_logits"].shape)
    (1, 2, 30)

    Source: https://arxiv.org/abs/1910.10683, section 2.1; version 1.1:
    https://arxiv.org/abs/2002.05202, table 1.
    """

    formats = tables.FORMATS
    scales_tied = True  # whether outputs are scaled before a tied head, by default

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
        scaled = tied_head and self.scales_tied if scale_output is None else scale_output

        # === Layers ===
        make = T5Parts(config)
        policy = make.policy
        token_embedding, drop = make.table(), make.dropout()
        read, encoder_blocks = make.reader(token_embedding, drop)
        decoder_bias = make.position_bias("decoder", False)
        decoder_blocks = make.blocks("decoder", num_decoder_layers or num_layers)
        decoder_norm = make.norm("decoder")
        # A layer: Keras takes a symbolic tensor times a number to be sparse.
        output_scale = keras.layers.Rescaling(hidden_dim**-0.5, dtype=policy, name="output_scale")
        head = None
        if with_head:
            head = language_model_head(token_embedding, tied_head, make.initializer(), policy)

        # === Parts ===
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
        self._keep(
            config,
            policy,
            [*read_hidden, *hidden],
            read=read,
            embed=embed,
            blocks=decoder_blocks,
            biases=biases,
            normalize=decoder_norm,
            finish=head and (lambda x: logits(decoder_norm(x))),
        )
        self._form = self.formats[0 if gated else 2]  # that it is saved in
        make.shrink_queries(encoder_blocks + decoder_blocks)

    def save_pretrained(self, folder):
        """Writes the weights and the config; whether it is gated tells under which names."""
        self._form.save(self, self._config, folder)


@keras.saving.register_keras_serializable(package="kerasattn")
class MT5(T5):
    """T5 1.1 for many languages: `T5` with folders of its own name.

    Example:
    >>> from kerasattn.models import MT5
    >>> model = MT5(30, num_layers=1, num_heads=2, head_dim=8, hidden_dim=16, intermediate_dim=32)
    >>> model.generate([[7, 8, 1]], max_new_tokens=3, jit=False).shape
    (1, 3)

    Source: https://arxiv.org/abs/2010.11934.
    """

    formats = tables.MT5_FORMATS
    scales_tied = False
