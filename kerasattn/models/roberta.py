import keras

from kerasattn import layers
from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.weights.tables import roberta as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class RoBERTa(Encoder):
    """RoBERTa: BERT without next sentences, with other positions and heads.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, num_segments,
            application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, initializer_range, pad_id, seed: as `BERT`.
        max_length: int, rows of the position table; the first pad_id + 1 are not for tokens.

    Inputs:
        as `BERT`. Positions count from pad_id + 1 on; padding, and every token that is pad_id, has
        the position pad_id.

    Outputs: as `BERT`.

    Raises:
        ValueError: as `BERT`.

    Example:
    >>> from kerasattn.models import RoBERTa
    >>> model = RoBERTa(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> tuple(model([[0, 7, 8, 2, 1]])["mlm_logits"].shape)
    (1, 5, 30)

    Source: https://arxiv.org/abs/1907.11692.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        max_length=514,
        num_segments=1,
        application="encoder",
        heads=("mlm",),
        num_classes=2,
        activation="gelu",
        dropout=0.1,
        attention_dropout=None,
        classifier_dropout=None,
        layer_norm_epsilon=1e-5,
        initializer_range=0.02,
        pad_id=1,
        seed=None,
        dtype=None,
        name="roberta",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}

        # === Layers ===
        make = Parts(config)
        token_embedding = make.table(vocabulary_size, "token_embedding")
        segment_embedding = make.table(num_segments, "segment_embedding")
        position_embedding = make.positions()
        norm, dropout = make.norm(), make.dropout()
        blocks = make.blocks()

        # === Model ===
        text = make.text()
        words = layers.PaddingMask(pad_id, name="words")(text.token_ids) & text.real
        position_ids = make.position_ids(text, words, start=pad_id + 1, padding_position=pad_id)
        x = token_embedding(text.token_ids) + segment_embedding(text.segment_ids)
        x = position_embedding(x, position_ids)  # (batch, length, hidden)
        hidden = [dropout(norm(x))]
        for block in blocks:
            hidden.append(block(hidden[-1], attention_mask=text.mask))
        outputs = make.outputs(
            hidden[-1], token_embedding, mlm_activation="gelu", class_activation="tanh"
        )
        longest = max_length - pad_id - 1
        super().__init__(make, text, hidden, outputs, max_positions=longest)
