import keras

from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.weights.tables import bert as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class BERT(Encoder):
    """BERT: an encoder, a language model, or both in one sequence (UniLM).

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: int, of the blocks.
        max_length: int, number of positions.
        num_segments: int, kinds of segments.
        application: "encoder" sees everything; "lm" is causal; "unilm" sees all of segment 0 and
            writes segment 1 from left to right.
        heads: names of what stands on the encoder: "mlm" (masked-LM, or LM in the other
            applications), "nsp" (next sentence), "pooled" (the pooler, which comes with "nsp" and
            "class" too), "class" (of the sequence), "token" (class of each token), "span" (of an
            answer); also "sop" and "discriminator", of `ALBERT` and `ELECTRA`.
        num_classes: int, of the heads "class" and "token". With 1, "class" is a regression.
        activation: of the feed-forward parts and the masked-LM head; "gelu" is the erf form.
        dropout, attention_dropout, classifier_dropout: float in [0, 1); None is `dropout`.
        layer_norm_epsilon: float > 0.
        initializer_range: float > 0, standard deviation of the kernels at the start.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length).
        segment_ids: int (batch, length), by default 0; "unilm" needs it.
        position_ids: int (batch, length), by default counting real tokens, so that padding may
            stand anywhere.
        padding_mask: bool (batch, length), True = real token, by default token_ids != pad_id.
        attention_mask: bool (batch, length, length), True = may attend: a further mask.

    Outputs:
        hidden: (batch, length, hidden_dim).
        pooled: (batch, hidden_dim).
        mlm_logits or, if application is not "encoder", lm_logits: (batch, length, vocabulary_size).
        nsp_logits: (batch, 2); class_logits: (batch, num_classes); token_logits: (batch, length,
        num_classes); start_logits, end_logits: (batch, length).

    Raises:
        ValueError: for another application or heads, or widths that do not divide.

    Example:
    >>> from kerasattn.models import BERT
    >>> model = BERT(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32,
    ...              heads=("mlm", "nsp"))
    >>> outputs = model([[2, 7, 8, 3, 0]])
    >>> tuple(outputs["mlm_logits"].shape), tuple(outputs["nsp_logits"].shape)
    ((1, 5, 30), (1, 2))

    Source: https://arxiv.org/abs/1810.04805; UniLM https://arxiv.org/abs/1905.03197.
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
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        pad_id=0,
        seed=None,
        dtype=None,
        name="bert",
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
        x = position_embedding(x, make.position_ids(text))  # (batch, length, hidden)
        hidden = [dropout(norm(x))]
        for block in blocks:
            hidden.append(block(hidden[-1], attention_mask=text.mask))
        outputs = make.outputs(hidden[-1], token_embedding)
        super().__init__(make, text, hidden, outputs, max_positions=max_length)
