import keras

from kerasattn import layers
from kerasattn.models.encoder_decoder import EncoderDecoder, pair_inputs
from kerasattn.models.parts import language_model_head
from kerasattn.models.settings import check_settings
from kerasattn.ops import masks, seeds
from kerasattn.weights.tables import bart as tables

OFFSET = 2  # of positions: the tables' first two rows are not used


@keras.saving.register_keras_serializable(package="kerasattn")
class BART(EncoderDecoder):
    """An encoder-decoder of post-norm blocks with learned positions and one token table.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: int, of the blocks.
        num_decoder_layers, num_decoder_heads, decoder_intermediate_dim: int, of the decoder's
            blocks; by default as the encoder's.
        max_length: int, positions of either text.
        with_head: bool, whether there are logits.
        tied_head: bool, whether they come from the token table.
        scale_embedding: bool, whether token vectors are multiplied by the root of hidden_dim.
        activation: of the feed-forward parts; "gelu" is the erf form.
        dropout, attention_dropout, feed_forward_dropout: float in [0, 1).
        layer_norm_epsilon: float > 0.
        initializer_range: float > 0, standard deviation of the kernels at the start.
        pad_id, start_id, end_id: int, of padding, of what the decoder starts with, of the end.
        seed: int or None, of the dropouts.

    Inputs, outputs: as `T5`. Positions count all tokens, padding too, so padding stands behind.

    Raises:
        ValueError: for texts longer than max_length.

    Example:
    >>> from kerasattn.models import BART
    >>> model = BART(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> outputs = model({"token_ids": [[0, 7, 8, 2]], "decoder_token_ids": [[2, 9]]})
    >>> tuple(outputs["lm_logits"].shape)
    (1, 2, 30)

    Source: https://arxiv.org/abs/1910.13461, section 2.1.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=16,
        hidden_dim=1024,
        intermediate_dim=4096,
        num_decoder_layers=None,
        num_decoder_heads=None,
        decoder_intermediate_dim=None,
        max_length=1024,
        with_head=True,
        tied_head=True,
        scale_embedding=False,
        activation="gelu",
        dropout=0.1,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
        layer_norm_epsilon=1e-5,
        initializer_range=0.02,
        pad_id=1,
        start_id=2,
        end_id=2,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        def initializer():
            return keras.initializers.TruncatedNormal(stddev=initializer_range)

        def stack(name, count, num_heads, intermediate_dim):
            return [
                layers.TransformerBlock(
                    num_heads,
                    intermediate_dim,
                    activation=activation,
                    dropout=dropout,
                    attention_dropout=attention_dropout,
                    feed_forward_dropout=feed_forward_dropout,
                    layer_norm_epsilon=layer_norm_epsilon,
                    cross_attention=name == "decoder",
                    kernel_initializer=initializer(),
                    seed=seeds.child(seed, f"{name}_block_{i}"),
                    dtype=policy,
                    name=f"{name}_block_{i}",
                )
                for i in range(count)
            ]

        def positions(name):
            return layers.LearnedPositionEmbedding(
                max_length + OFFSET,
                embeddings_initializer=initializer(),
                dtype=policy,
                name=f"{name}_position_embedding",
            )

        def norm(name):
            return keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=policy, name=f"{name}_embedding_norm"
            )

        token_embedding = layers.TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=initializer(),
            dtype=policy,
            name="token_embedding",
        )
        # A layer: Keras takes a symbolic tensor times a number to be sparse.
        embedding_scale = keras.layers.Rescaling(
            hidden_dim**0.5, dtype=policy, name="embedding_scale"
        )
        encoder_positions, decoder_positions = positions("encoder"), positions("decoder")
        encoder_norm, decoder_norm = norm("encoder"), norm("decoder")
        drop = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "dropout"), dtype=policy, name="dropout"
        )
        encoder_blocks = stack("encoder", num_layers, num_heads, intermediate_dim)
        decoder_blocks = stack(
            "decoder",
            num_decoder_layers or num_layers,
            num_decoder_heads or num_heads,
            decoder_intermediate_dim or intermediate_dim,
        )
        head = None
        if with_head:
            head = language_model_head(
                token_embedding, tied_head, initializer(), policy, use_bias=True
            )

        # === Parts ===
        def vectors(token_ids, position_ids, table, norm):
            x = token_embedding(token_ids)  # (batch, length, hidden)
            if scale_embedding:
                x = embedding_scale(x)
            return drop(norm(table(x, position_ids=position_ids + OFFSET)))

        def read(token_ids, real):
            position_ids = masks.positions(token_ids)
            hidden = [vectors(token_ids, position_ids, encoder_positions, encoder_norm)]
            for block in encoder_blocks:
                hidden.append(block(hidden[-1], attention_mask=masks.keys(real)))
            return hidden

        def embed(token_ids, position_ids):
            return vectors(token_ids, position_ids, decoder_positions, decoder_norm)

        # === Model ===
        inputs, real, mask = pair_inputs(pad_id)
        read_hidden = read(inputs["token_ids"], real)
        context, context_mask = read_hidden[-1], masks.keys(real)
        decoder_token_ids = inputs["decoder_token_ids"]
        # each (batch, decoder length, hidden)
        hidden = [embed(decoder_token_ids, masks.positions(decoder_token_ids))]
        for block in decoder_blocks:
            x = block(hidden[-1], attention_mask=mask, context=context, context_mask=context_mask)
            hidden.append(x)
        outputs = {"hidden": hidden[-1], "encoder_hidden": context}
        if with_head:
            outputs["lm_logits"] = head(hidden[-1])  # (batch, decoder length, vocabulary)
            head.bias.trainable = False  # as published: a constant
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep(
            config,
            policy,
            [*read_hidden, *hidden],
            read=read,
            embed=embed,
            blocks=decoder_blocks,
            biases=lambda *_: (None, None),
            normalize=lambda x: x,
            finish=head,
        )
        self.max_positions = max_length
