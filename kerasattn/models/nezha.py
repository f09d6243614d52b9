import keras

from kerasattn import layers
from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.weights.tables import nezha as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class NEZHA(Encoder):
    """NEZHA: BERT with fixed vectors of distances, added to keys and values, for positions.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, num_segments,
            application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, initializer_range, pad_id, seed: as `BERT`.
        max_length: int, what the weights were trained for; longer inputs work too.
        max_distance: int, from which on all distances are one.

    Inputs:
        as `BERT`, but position_ids count from 0 by default, except with application="unilm", where
        they count real tokens: between these stands no padding in the other applications.

    Outputs: as `BERT`.

    Raises:
        ValueError: as `BERT`.

    Example:
    >>> from kerasattn.models import NEZHA
    >>> model = NEZHA(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> tuple(model([[2, 7, 8, 3, 0]])["mlm_logits"].shape)
    (1, 5, 30)

    Source: https://arxiv.org/abs/1909.00204, section 2.1.
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
        max_distance=64,
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
        pad_id=0,
        seed=None,
        dtype=None,
        name="nezha",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}

        # === Layers ===
        make = Parts(config)
        token_embedding = make.table(vocabulary_size, "token_embedding")
        segment_embedding = make.table(num_segments, "segment_embedding")
        relative_embedding = layers.RelativePositionEmbedding(
            hidden_dim // num_heads, max_distance, dtype=make.policy, name="relative_embedding"
        )
        norm, dropout = make.norm(), make.dropout()
        blocks = make.blocks()

        # === Model ===
        text = make.text()
        # Distances in a batch of their own take the memory of (batch, length, length, head_dim).
        position_ids = text.inputs["position_ids"]
        if application == "unilm":
            position_ids = make.position_ids(text)
        x = token_embedding(text.token_ids) + segment_embedding(text.segment_ids)
        distances = relative_embedding(
            x, query_positions=position_ids, key_positions=position_ids
        )  # ([batch], length, length, head_dim)
        hidden = [dropout(norm(x))]  # each (batch, length, hidden)
        for block in blocks:
            x = block(
                hidden[-1],
                attention_mask=text.mask,
                relative_keys=distances,
                relative_values=distances,
            )
            hidden.append(x)
        outputs = make.outputs(x, token_embedding)
        super().__init__(make, text, hidden, outputs)
