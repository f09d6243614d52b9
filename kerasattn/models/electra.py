import keras

from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.weights.tables import electra as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class ELECTRA(Encoder):
    """ELECTRA: a generator that fills in words, or a discriminator that tells which were filled in.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_length,
            num_segments, application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, initializer_range, pad_id, seed: as `BERT`.
        embedding_dim: int, width of the embeddings if it differs from hidden_dim.

    Inputs: as `BERT`.

    Outputs:
        as `BERT`; with the head "mlm" it is a generator. With "discriminator", the default,
        token_logits (batch, length) are above 0 where a word was replaced. The class of a sequence
        is read from its first vector.

    Raises:
        ValueError: as `BERT`.

    Example:
    >>> from kerasattn.models import ELECTRA
    >>> model = ELECTRA(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32,
    ...                 embedding_dim=8)
    >>> tuple(model([[2, 7, 8, 3, 0]])["token_logits"].shape)
    (1, 5)

    Source: https://arxiv.org/abs/2003.10555.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=4,
        hidden_dim=256,
        intermediate_dim=1024,
        embedding_dim=None,
        max_length=512,
        num_segments=2,
        application="encoder",
        heads=("discriminator",),
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
        name="electra",
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
        x = token_embedding(text.token_ids) + segment_embedding(text.segment_ids)
        x = position_embedding(x, make.position_ids(text))
        x = dropout(norm(x))  # (batch, length, table)
        if make.table_dim != hidden_dim:
            x = make.projection()(x)
        hidden = [x]  # each (batch, length, hidden)
        for block in blocks:
            hidden.append(block(hidden[-1], attention_mask=text.mask))
        outputs = make.outputs(
            hidden[-1], token_embedding, mlm_activation="gelu", class_activation="gelu"
        )
        super().__init__(make, text, hidden, outputs, max_positions=max_length)
