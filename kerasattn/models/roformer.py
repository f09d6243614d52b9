import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.ops import masks
from kerasattn.training.losses import token_cross_entropy, token_weights, weighted_mean
from kerasattn.weights.tables import roformer as tables

APPLICATIONS = ("encoder", "lm", "unilm")


@keras.saving.register_keras_serializable(package="kerasattn")
class RoFormer(BaseModel):
    """BERT with rotary positions: an encoder, a language model, or both in one sequence (UniLM).

    Args:
        vocabulary_size: int, number of tokens.
        num_layers, num_heads, hidden_dim, intermediate_dim: int, of the blocks.
        embedding_dim: int, width of the embeddings if it differs from hidden_dim.
        max_length: int, what the weights were trained for; longer inputs work too.
        num_segments: int, kinds of segments.
        application: "encoder" sees everything; "lm" is causal; "unilm" sees all of segment 0 and
            writes segment 1 from left to right.
        with_head: bool, whether there are logits.
        activation: of the feed-forward parts and the head; "gelu" is the erf form.
        dropout, attention_dropout: float in [0, 1).
        layer_norm_epsilon: float > 0.
        initializer_range: float > 0, standard deviation of the kernels at the start.
        rotary_value: must be False: values are not rotated.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length).
        segment_ids: int (batch, length), by default 0; "unilm" needs it.
        padding_mask: bool (batch, length), True = real token, by default token_ids != pad_id.
            Positions count real tokens, so that padding may stand anywhere.

    Outputs:
        hidden: (batch, length, hidden_dim).
        mlm_logits ("encoder") or lm_logits ("lm", "unilm"): (batch, length, vocabulary_size).

    Raises:
        ValueError: for another application, odd heads, or rotary_value=True.

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
        with_head=True,
        activation="gelu",
        dropout=0.1,
        attention_dropout=None,
        layer_norm_epsilon=1e-12,
        initializer_range=0.02,
        rotary_value=False,
        pad_id=0,
        seed=None,
        dtype=None,
        name="roformer",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        _check(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        table_dim = embedding_dim or hidden_dim

        # === Layers ===
        def initializer():
            return keras.initializers.TruncatedNormal(stddev=initializer_range)

        def table(size, name):
            return layers.TokenEmbedding(
                size, table_dim, embeddings_initializer=initializer(), dtype=policy, name=name
            )

        token_embedding = table(vocabulary_size, "token_embedding")
        segment_embedding = table(num_segments, "segment_embedding")
        embedding_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=policy, name="embedding_norm"
        )
        embedding_dropout = keras.layers.Dropout(
            dropout, seed=seed, dtype=policy, name="embedding_dropout"
        )
        rotary = layers.RotaryEmbedding(dtype=policy, name="rotary")
        blocks = [
            layers.TransformerBlock(
                num_heads,
                intermediate_dim,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                layer_norm_epsilon=layer_norm_epsilon,
                rotary=rotary,
                kernel_initializer=initializer(),
                seed=None if seed is None else seed + i,
                dtype=policy,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]

        # === Model ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        given_segments = keras.Input((None,), dtype="int32", name="segment_ids", optional=True)
        given_mask = keras.Input((None,), dtype="bool", name="padding_mask", optional=True)
        segment_ids = layers.SegmentIds(name="segments")(token_ids, given_segments)
        real = layers.PaddingMask(pad_id, name="padding")(token_ids, given_mask)  # (batch, length)

        mask = masks.keys(real)  # (batch, 1, 1 or length, length)
        if application == "lm":
            mask = mask & masks.causal(token_ids)
        elif application == "unilm":
            mask = mask & masks.prefix(segment_ids)
        position_ids = ops.maximum(ops.cumsum(ops.cast(real, "int32"), axis=1) - 1, 0)

        x = token_embedding(token_ids) + segment_embedding(segment_ids)  # (batch, length, table)
        x = embedding_dropout(embedding_norm(x))
        if table_dim != hidden_dim:
            x = keras.layers.Dense(
                hidden_dim,
                kernel_initializer=initializer(),
                dtype=policy,
                name="embedding_projection",
            )(x)
        hidden = [x]  # each (batch, length, hidden)
        for block in blocks:
            x = block(
                x,
                attention_mask=mask,
                query_positions=position_ids,
                key_positions=position_ids,
            )
            hidden.append(x)
        outputs = {"hidden": x}
        if with_head:
            head = layers.LanguageModelHead(
                token_embedding,
                activation=activation,
                layer_norm_epsilon=layer_norm_epsilon,
                kernel_initializer=initializer(),
                dtype=policy,
                name="head",
            )
            # (batch, length, vocabulary)
            outputs["mlm_logits" if application == "encoder" else "lm_logits"] = head(x)
        super().__init__(
            {"token_ids": token_ids, "segment_ids": given_segments, "padding_mask": given_mask},
            outputs,
            name=name,
        )

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._id_ranges = {"token_ids": vocabulary_size, "segment_ids": num_segments}
        self._hidden = hidden
        self.application, self.pad_id = application, pad_id

    def _check_inputs(self, inputs):
        checked = super()._check_inputs(inputs)
        if self.application == "unilm" and checked["segment_ids"] is None:
            raise ValueError(
                'application="unilm" needs segment_ids: 0 where it reads, 1 where it writes.'
            )
        return checked

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Cross-entropy in nats a token, unless `compile` was given a loss.

        "encoder": of the labels y (batch, length), where -100 counts for nothing. "lm": of each
        next real token, without y. "unilm": of the tokens of segment 1.
        `sample_weight` (batch,) or (batch, length) weighs sentences or tokens.
        """
        if self._compile_loss is not None or not set(y_pred) & {"mlm_logits", "lm_logits"}:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        inputs = self._check_inputs(x)
        if self.application == "encoder":
            if y is None:
                raise ValueError("The masked-LM loss needs labels y, -100 where nothing is asked.")
            labels, logits = ops.cast(y, "int32"), y_pred["mlm_logits"]
            real = labels != -100
        else:
            labels, logits = ops.cast(inputs["token_ids"], "int32"), y_pred["lm_logits"]
            real = inputs["padding_mask"]
            real = labels != self.pad_id if real is None else ops.cast(real, "bool")
            if self.application == "unilm":
                real = real & (inputs["segment_ids"] == 1)
        weights = ops.cast(real, "float32")
        if sample_weight is not None:
            weights = weights * token_weights(sample_weight, labels)
        labels = ops.where(real, labels, 0)
        if self.application != "encoder":  # each position predicts the next token
            labels, weights, logits = labels[:, 1:], weights[:, 1:], logits[:, :-1]
        return weighted_mean(token_cross_entropy(labels, logits), weights) + sum(self.losses)


def _check(config):
    """Refuses settings that do not go together."""
    if config["application"] not in APPLICATIONS:
        raise ValueError(
            f"application must be one of {APPLICATIONS}, got {config['application']!r}."
        )
    if config["rotary_value"]:
        raise ValueError(
            "rotary_value=True (values rotated as queries and keys are) is not supported yet."
        )
    width, heads = config["hidden_dim"], config["num_heads"]
    if width % heads or width // heads % 2:
        raise ValueError(
            f"Rotary positions turn pairs: hidden_dim = {width} must be an even multiple of "
            f"num_heads = {heads}."
        )
