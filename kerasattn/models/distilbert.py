import keras

from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.weights.tables import distilbert as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class DistilBERT(Encoder):
    """DistilBERT: BERT of half the depth, without segments and without a pooler.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_length,
            application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, initializer_range, pad_id, seed: as `BERT`.

    Inputs:
        as `BERT`, but segment_ids are read by application="unilm" alone.

    Outputs: as `BERT`. The class of a sequence is read from its first vector.

    Raises:
        ValueError: as `BERT`.

    Example:
    >>> from kerasattn.models import DistilBERT
    >>> model = DistilBERT(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32,
    ...                    heads=("class",), num_classes=3)
    >>> tuple(model([[2, 7, 8, 3, 0]])["class_logits"].shape)
    (1, 3)

    Source: https://arxiv.org/abs/1910.01108.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=6,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        max_length=512,
        application="encoder",
        heads=("mlm",),
        num_classes=2,
        activation="gelu",
        dropout=0.1,
        attention_dropout=None,
        classifier_dropout=0.2,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        pad_id=0,
        seed=None,
        dtype=None,
        name="distilbert",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}

        # === Layers ===
        make = Parts(config)
        token_embedding = make.table(vocabulary_size, "token_embedding")
        position_embedding = make.positions()
        norm, dropout = make.norm(), make.dropout()
        blocks = make.blocks()

        # === Model ===
        text = make.text(segments=False)
        x = position_embedding(token_embedding(text.token_ids), make.position_ids(text))
        hidden = [dropout(norm(x))]  # each (batch, length, hidden)
        for block in blocks:
            hidden.append(block(hidden[-1], attention_mask=text.mask))
        outputs = make.outputs(hidden[-1], token_embedding, class_activation="relu")
        super().__init__(make, text, hidden, outputs, max_positions=max_length)
