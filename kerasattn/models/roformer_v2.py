import keras

from kerasattn import layers
from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.models.roformer import check_rotary
from kerasattn.models.settings import check_settings
from kerasattn.weights.tables import roformer_v2 as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class RoFormerV2(Encoder):
    """RoFormer with less: no biases, norms without weights, and kernels that start smaller.

    Kernels start with variance 1 / (inputs · num_layers), which keeps what post-norm blocks add to
    what they read in scale, however many there are.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, num_segments,
            application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, pad_id, seed: as `BERT`. The masked-LM head is
            the token table alone; other heads have biases.
        max_length, rotary_value: as `RoFormer`.

    Inputs, Outputs: as `BERT`.

    Raises:
        ValueError: for another application, or odd heads.

    Example:
    >>> from kerasattn.models import RoFormerV2
    >>> model = RoFormerV2(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> tuple(model([[2, 7, 8, 3, 0]])["mlm_logits"].shape)
    (1, 5, 30)

    Source: https://kexue.fm/archives/8998.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        max_length=512,
        num_segments=2,
        application="encoder",
        heads=("mlm",),
        num_classes=2,
        activation="gelu",
        dropout=0.1,
        attention_dropout=None,
        classifier_dropout=None,
        layer_norm_epsilon=1e-7,
        rotary_value=False,
        pad_id=0,
        seed=None,
        dtype=None,
        name="roformer_v2",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        check_rotary(config)

        # === Layers ===
        make = _Parts(config)
        token_embedding = make.table(vocabulary_size, "token_embedding")
        segment_embedding = make.table(num_segments, "segment_embedding")
        norm, dropout = make.norm(), make.dropout()
        blocks = make.blocks(
            norm_type="plain_rms",
            use_bias=False,
            rotary=layers.RotaryEmbedding(dtype=make.policy, name="rotary"),
            rotary_value=rotary_value,
        )

        # === Model ===
        text = make.text()
        position_ids = make.position_ids(text)
        x = token_embedding(text.token_ids) + segment_embedding(text.segment_ids)
        hidden = [norm(dropout(x))]  # each (batch, length, hidden)
        for block in blocks:
            x = block(
                hidden[-1],
                attention_mask=text.mask,
                query_positions=position_ids,
                key_positions=position_ids,
            )
            hidden.append(x)
        outputs = make.outputs(x, token_embedding, plain=True, mlm_bias=False)
        super().__init__(make, text, hidden, outputs)


class _Parts(Parts):
    """An encoder's parts, as this one has them."""

    def initializer(self):
        variance = 1 / self.config["num_layers"]
        return keras.initializers.VarianceScaling(variance, "fan_in", "truncated_normal")

    def table(self, size, name):
        variance = 1 / self.config["num_layers"]
        return layers.TokenEmbedding(
            size,
            self.table_dim,
            embeddings_initializer=keras.initializers.VarianceScaling(
                variance, "fan_out", "truncated_normal"
            ),
            dtype=self.policy,
            name=name,
        )

    def norm(self, name="embedding_norm"):
        return layers.PlainRMSNormalization(
            self.config["layer_norm_epsilon"], dtype=self.policy, name=name
        )
