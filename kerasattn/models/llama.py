import keras

from kerasattn import layers
from kerasattn.models.language_model import LanguageModel, text_inputs
from kerasattn.models.parts import language_model_head
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds
from kerasattn.weights.tables import llama as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class Llama(LanguageModel):
    """A language model with RMS norms, gated feed-forward parts, grouped heads, rotary positions.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: int, of the blocks.
        num_key_value_heads: int that divides num_heads, heads of the keys and values; by default
            num_heads.
        head_dim: int, width of a head, by default hidden_dim / num_heads.
        max_length: int, what the weights were trained for; longer inputs work too.
        with_head: bool, whether there are logits.
        tied_head: bool, whether they come from the token table.
        activation: of the gate.
        attention_bias, feed_forward_bias: bool, whether the projections have biases.
        attention_dropout: float in [0, 1).
        layer_norm_epsilon: float > 0.
        rotary_base: float > 0, of the rotary's frequencies.
        rotary_scaling: dict, how they are changed for a longer context, see
            `ops.positions.llama3_frequencies`; None for not at all.
        initializer_range: float > 0, standard deviation of the kernels at the start.
        start_id, end_id: int or None, tokens that begin and end a text; end_id may be several.
        pad_id: int, id of padding; None: nothing is padding, unless a padding_mask says so.
        seed: int or None, of the dropouts.

    Inputs, outputs: as `GPT2`.

    Example:
    >>> from kerasattn.models import Llama
    >>> model = Llama(30, num_layers=2, num_heads=4, hidden_dim=16, intermediate_dim=32,
    ...               num_key_value_heads=2)
    >>> tuple(model([[7, 8, 3]])["lm_logits"].shape)
    (1, 3, 30)

    Source: https://arxiv.org/abs/2302.13971, section 2.2; Llama 3 https://arxiv.org/abs/2407.21783.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=32,
        num_heads=32,
        hidden_dim=4096,
        intermediate_dim=11008,
        num_key_value_heads=None,
        head_dim=None,
        max_length=2048,
        with_head=True,
        tied_head=False,
        activation="silu",
        attention_bias=False,
        feed_forward_bias=False,
        attention_dropout=0.0,
        layer_norm_epsilon=1e-6,
        rotary_base=10000.0,
        rotary_scaling=None,
        initializer_range=0.02,
        start_id=None,
        end_id=None,
        pad_id=None,
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

        embed = layers.TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=initializer(),
            dtype=policy,
            name="token_embedding",
        )
        rotary = layers.RotaryEmbedding(
            rotary_base, interleaved=False, scaling=rotary_scaling, dtype=policy, name="rotary"
        )
        blocks = [
            layers.TransformerBlock(
                num_heads,
                intermediate_dim,
                activation=activation,
                gated=True,
                attention_dropout=attention_dropout,
                norm="pre",
                norm_type="rms",
                layer_norm_epsilon=layer_norm_epsilon,
                num_key_value_heads=num_key_value_heads,
                head_dim=head_dim,
                use_bias=attention_bias,
                feed_forward_bias=feed_forward_bias,
                rotary=rotary,
                kernel_initializer=initializer(),
                seed=seeds.child(seed, f"block_{i}"),
                dtype=policy,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        final_norm = keras.layers.RMSNormalization(
            epsilon=layer_norm_epsilon, dtype=policy, name="final_norm"
        )
        head = None
        if with_head:
            head = language_model_head(embed, tied_head, initializer(), policy)

        # === Model ===
        inputs, position_ids, mask = text_inputs(pad_id)
        hidden = [embed(inputs["token_ids"])]  # each (batch, length, hidden)
        for block in blocks:
            x = block(
                hidden[-1],
                attention_mask=mask,
                query_positions=position_ids,
                key_positions=position_ids,
            )
            hidden.append(x)
        hidden[-1] = final_norm(hidden[-1])
        outputs = {"hidden": hidden[-1]}
        if with_head:
            outputs["lm_logits"] = head(hidden[-1])  # (batch, length, vocabulary)
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep(
            config,
            policy,
            hidden,
            embed=lambda token_ids, position_ids: embed(token_ids),
            blocks=blocks,
            normalize=final_norm,
            finish=head and (lambda x: head(final_norm(x))),
        )
