import keras

from kerasattn import layers
from kerasattn.models.encoder import Encoder
from kerasattn.models.parts import Parts
from kerasattn.weights.tables import ernie as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class ERNIE(Encoder):
    """ERNIE 1.0 and 2.0 of Baidu: BERT, with a vector for the kind of task where asked for.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim, max_length,
            num_segments, application, heads, num_classes, activation, dropout, attention_dropout,
            classifier_dropout, layer_norm_epsilon, initializer_range, pad_id, seed: as `BERT`.
        use_tasks: bool, whether there are kinds of tasks.
        num_tasks: int, how many.

    Inputs:
        as `BERT`, and, if `use_tasks`, task_ids: int (batch, length), by default 0.

    Outputs: as `BERT`.

    Raises:
        ValueError: as `BERT`.

    Example:
    >>> from kerasattn.models import ERNIE
    >>> model = ERNIE(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32,
    ...               use_tasks=True)
    >>> inputs = {"token_ids": [[1, 7, 8, 2, 0]], "task_ids": [[2, 2, 2, 2, 2]]}
    >>> tuple(model(inputs)["hidden"].shape)
    (1, 5, 16)

    Source: https://arxiv.org/abs/1904.09223; tasks https://arxiv.org/abs/1907.12412, section 3.3.
    """

    formats = tables.FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        intermediate_dim=3072,
        max_length=513,
        num_segments=2,
        use_tasks=False,
        num_tasks=3,
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
        name="ernie",
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
        text = make.text(more=("task_ids",) if use_tasks else ())
        x = token_embedding(text.token_ids) + segment_embedding(text.segment_ids)
        if use_tasks:
            task_ids = layers.SegmentIds(name="tasks")(text.token_ids, text.inputs["task_ids"])
            x = x + make.table(num_tasks, "task_embedding")(task_ids)
        x = position_embedding(x, make.position_ids(text))  # (batch, length, hidden)
        hidden = [dropout(norm(x))]
        for block in blocks:
            hidden.append(block(hidden[-1], attention_mask=text.mask))
        outputs = make.outputs(hidden[-1], token_embedding)
        super().__init__(
            make, text, hidden, outputs, id_ranges={"task_ids": num_tasks}, max_positions=max_length
        )
