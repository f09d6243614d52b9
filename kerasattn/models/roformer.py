import keras

from kerasattn import layers
from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.models.settings import check_settings
from kerasattn.weights.tables import roformer as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class RoFormer(Encoder):
    """BERT with rotary positions: an encoder, a language model, or both in one sequence (UniLM).

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, num_segments,
            application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, initializer_range, pad_id, seed: as `BERT`.
        embedding_dim: int, width of the embeddings if it differs from hidden_dim.
        max_length: int, what the weights were trained for; longer inputs work too.
        rotary_value: bool, whether values are rotated as queries and keys are.

    Inputs, Outputs: as `BERT`.

    Raises:
        ValueError: for another application, or odd heads.

    Example:
    >>> from kerasattn.models import RoFormer
    >>> model = RoFormer(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> tuple(model([[2, 7, 8, 3, 0]])["mlm_logits"].shape)
    (1, 5, 30)

    Source: https://arxiv.org/abs/2104.09864; UniLM https://arxiv.org/abs/1905.03197.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        embedding_dim=None,
        max_length=1536,
        num_segments=2,
        application="encoder",
        heads=("mlm",),
        num_classes=2,
        activation="gelu",
        dropout=0.1,
        attention_dropout=None,
        classifier_dropout=None,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        rotary_value=False,
        pad_id=0,
        seed=None,
        dtype=None,
        name="roformer",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        check_rotary(config)

        # === Layers ===
        make = Parts(config)
        token_embedding = make.table(vocabulary_size, "token_embedding")
        segment_embedding = make.table(num_segments, "segment_embedding")
        norm, dropout = make.norm(), make.dropout()
        blocks = make.blocks(
            rotary=layers.RotaryEmbedding(dtype=make.policy, name="rotary"),
            rotary_value=rotary_value,
        )

        # === Model ===
        text = make.text()
        position_ids = make.position_ids(text)
        x = token_embedding(text.token_ids) + segment_embedding(text.segment_ids)
        x = dropout(norm(x))  # (batch, length, table)
        if make.table_dim != hidden_dim:
            x = make.projection()(x)
        hidden = [x]  # each (batch, length, hidden)
        for block in blocks:
            x = block(
                x,
                attention_mask=text.mask,
                query_positions=position_ids,
                key_positions=position_ids,
            )
            hidden.append(x)
        outputs = make.outputs(x, token_embedding, class_activation=activation)
        super().__init__(make, text, hidden, outputs)


def check_rotary(config):
    """Refuses heads whose features are no pairs."""
    width, heads = config["hidden_dim"], config["num_heads"]
    if width % heads or width // heads % 2:
        raise ValueError(
            f"Rotary positions turn pairs: hidden_dim = {width} must be an even multiple of "
            f"num_heads = {heads}."
        )
