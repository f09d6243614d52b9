import keras

from kerasattn import layers
from kerasattn.models.encoder_decoder import EncoderDecoder, pair_inputs
from kerasattn.models.parts import language_model_head
from kerasattn.models.settings import check_settings
from kerasattn.ops import masks, seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class Transformer(EncoderDecoder):
    """The encoder-decoder of attention alone, with sinusoidal positions and post-norm blocks.

    Its loss is smoothed. `training.InverseSquareRoot` is the schedule that it was trained with.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: int, of the blocks.
        num_decoder_layers: int, of the decoder; by default as the encoder's.
        activation: of the feed-forward parts.
        dropout: float in [0, 1), of the embeddings and of each part's output.
        attention_dropout: float in [0, 1), of the attention weights.
        label_smoothing: float in [0, 1), the share of each label that the loss spreads over all
            tokens.
        layer_norm_epsilon: float > 0.
        share_embeddings: bool, whether what is read, what is written and the logits have one table;
            otherwise the decoder's is that of the logits too.
        pad_id, start_id, end_id: int, of padding, of what the decoder starts with, of the end.
        seed: int or None, of the dropouts.

    Inputs: a dict of `token_ids` (batch, length), which is read, and `decoder_token_ids` (batch,
        decoder length); `padding_mask` and `decoder_padding_mask`, True = real token. By default
        the first is token_ids != pad_id, and all tokens of the decoder are real. Positions count
        all tokens, padding too, so padding stands behind.

    Outputs: a dict of `hidden` (batch, decoder length, hidden_dim), `lm_logits` (batch, decoder
        length, vocabulary_size) float32 and `encoder_hidden` (batch, length, hidden_dim).

    Raises:
        ValueError: for numbers that no model can be built of, or bad inputs.

    Example:
    >>> from kerasattn.models import Transformer
    >>> model = Transformer(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> inputs = {"token_ids": [[7, 8, 2]], "decoder_token_ids": [[1, 9]]}
    >>> weights = model.attention_weights(inputs)
    >>> weights["self_attention"].shape, weights["cross_attention"].shape
    ((1, 2, 2, 2, 2), (1, 2, 2, 2, 3))

    Source: https://arxiv.org/abs/1706.03762 (Vaswani et al. 2017), section 3 and 5.4.
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers=6,
        num_heads=8,
        hidden_dim=512,
        intermediate_dim=2048,
        num_decoder_layers=None,
        activation="relu",
        dropout=0.1,
        attention_dropout=0.0,
        label_smoothing=0.1,
        layer_norm_epsilon=1e-6,
        share_embeddings=True,
        pad_id=0,
        start_id=1,
        end_id=2,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be in [0, 1), got {label_smoothing}.")
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        def stack(name, count):
            return [
                layers.TransformerBlock(
                    num_heads,
                    intermediate_dim,
                    activation=activation,
                    dropout=dropout,
                    attention_dropout=attention_dropout,
                    layer_norm_epsilon=layer_norm_epsilon,
                    cross_attention=name == "decoder",
                    use_bias=False,
                    feed_forward_bias=True,
                    seed=seeds.child(seed, f"{name}_block_{i}"),
                    dtype=policy,
                    name=f"{name}_block_{i}",
                )
                for i in range(count)
            ]

        def table(name):
            return layers.TokenEmbedding(
                vocabulary_size,
                hidden_dim,
                # Times the root of hidden_dim, which follows, they vary as much as positions.
                embeddings_initializer=keras.initializers.RandomNormal(stddev=hidden_dim**-0.5),
                dtype=policy,
                name=name,
            )

        token_embedding = table("token_embedding")
        decoder_embedding = token_embedding
        if not share_embeddings:
            decoder_embedding = table("decoder_token_embedding")
        # A layer: Keras takes a symbolic tensor times a number to be sparse.
        embedding_scale = keras.layers.Rescaling(
            hidden_dim**0.5, dtype=policy, name="embedding_scale"
        )
        positions = layers.SinusoidalPositionEncoding(dtype=policy, name="positions")
        drop = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "dropout"), dtype=policy, name="dropout"
        )
        encoder_blocks = stack("encoder", num_layers)
        decoder_blocks = stack("decoder", num_decoder_layers or num_layers)
        head = language_model_head(decoder_embedding, True, None, policy)

        # === Parts ===
        def vectors(table, token_ids, position_ids):
            x = embedding_scale(table(token_ids))  # (batch, length, hidden)
            return drop(positions(x, position_ids=position_ids))

        def read(token_ids, real):
            hidden = [vectors(token_embedding, token_ids, masks.positions(token_ids))]
            for block in encoder_blocks:
                hidden.append(block(hidden[-1], attention_mask=masks.keys(real)))
            return hidden

        def embed(token_ids, position_ids):
            return vectors(decoder_embedding, token_ids, position_ids)

        # === Model ===
        inputs, real, mask = pair_inputs(pad_id)
        read_hidden = read(inputs["token_ids"], real)
        context, context_mask = read_hidden[-1], masks.keys(real)
        decoder_token_ids = inputs["decoder_token_ids"]
        # each (batch, decoder length, hidden)
        hidden = [embed(decoder_token_ids, masks.positions(decoder_token_ids))]
        attention = {"self_attention": [], "cross_attention": []}
        for block in decoder_blocks:
            x, weights, context_weights = block(
                hidden[-1],
                attention_mask=mask,
                context=context,
                context_mask=context_mask,
                return_weights=True,
                return_context_weights=True,
            )
            hidden.append(x)
            attention["self_attention"].append(weights)
            attention["cross_attention"].append(context_weights)
        outputs = {"hidden": hidden[-1], "encoder_hidden": context}
        outputs["lm_logits"] = head(hidden[-1])  # (batch, decoder length, vocabulary)
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
        self.label_smoothing = label_smoothing
        self._attention = attention
