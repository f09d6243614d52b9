import keras

from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.models.settings import check_settings
from kerasattn.weights.tables import albert as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class ALBERT(Encoder):
    """ALBERT: narrow embeddings, and blocks that many layers share.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_length,
            num_segments, application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, initializer_range, pad_id, seed: as `BERT`.
        embedding_dim: int, width of the embeddings; by default hidden_dim.
        num_groups: int, groups of blocks. Each serves an equal share of the layers.
        group_blocks: int, blocks of a group; a layer is all of them.

    Inputs: as `BERT`.

    Outputs: as `BERT`; with the head "sop" (sentence order) also sop_logits (batch, 2).

    Raises:
        ValueError: as `BERT`; for more groups than layers.

    Example:
    >>> from kerasattn.models import ALBERT
    >>> model = ALBERT(30, num_layers=4, num_heads=2, hidden_dim=16, intermediate_dim=32,
    ...                embedding_dim=8, num_groups=2)
    >>> len(model.hidden_states([[2, 7, 8, 3, 0]]))
    5

    Source: https://arxiv.org/abs/1909.11942, sections 3.1 and 3.2.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_groups=1,
        group_blocks=1,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        embedding_dim=128,
        max_length=512,
        num_segments=2,
        application="encoder",
        heads=("mlm",),
        num_classes=2,
        activation="gelu_tanh",
        dropout=0.0,
        attention_dropout=None,
        classifier_dropout=0.1,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        pad_id=0,
        seed=None,
        dtype=None,
        name="albert",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        if not 1 <= num_groups <= num_layers or group_blocks < 1:
            raise ValueError(
                f"num_groups must be from 1 to num_layers = {num_layers}, group_blocks at least 1, "
                f"got {num_groups} and {group_blocks}."
            )

        # === Layers ===
        make = Parts(config)
        token_embedding = make.table(vocabulary_size, "token_embedding")
        segment_embedding = make.table(num_segments, "segment_embedding")
        position_embedding = make.positions()
        norm, dropout, projection = make.norm(), make.dropout(), make.projection()
        groups = [
            [make.block(f"group_{i}_block_{j}") for j in range(group_blocks)]
            for i in range(num_groups)
        ]

        # === Model ===
        text = make.text()
        x = token_embedding(text.token_ids) + segment_embedding(text.segment_ids)
        x = position_embedding(x, make.position_ids(text))
        x = projection(dropout(norm(x)))
        hidden = [x]  # each (batch, length, hidden)
        for i in range(num_layers):
            for block in groups[i * num_groups // num_layers]:
                x = block(x, attention_mask=text.mask)
            hidden.append(x)
        outputs = make.outputs(x, token_embedding)
        super().__init__(make, text, hidden, outputs, max_positions=max_length)
