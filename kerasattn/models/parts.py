"""The parts that encoders are made of, each with the settings of the constructor; a head."""

import dataclasses

import keras

from kerasattn import heads, layers
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds
from kerasattn.weights.configs import HEADS


@dataclasses.dataclass
class Text:
    """What a model reads: its inputs by name, and what follows from them.

    Ids are (batch, length), as is `real`, which is True at real tokens; `mask` (batch, 1, 1 or
    length, length) says what may be attended.
    """

    inputs: dict
    token_ids: keras.KerasTensor
    segment_ids: keras.KerasTensor
    real: keras.KerasTensor
    mask: keras.KerasTensor


class Parts:
    """Makes the layers of an encoder.

    Args:
        config: dict of the arguments of the model's constructor, called as those of `BERT`.
    """

    def __init__(self, config):
        self.config = config
        _check(config)
        self.policy = keras.dtype_policies.get(config["dtype"] or keras.config.dtype_policy())

    def initializer(self):
        """A new one each time: one object would give equal kernels."""
        return keras.initializers.TruncatedNormal(stddev=self.config["initializer_range"])

    def seed(self, name):
        """That of the layer of a name, of dropout and draws."""
        return seeds.child(self.config["seed"], name)

    @property
    def table_dim(self):
        """Width of the embeddings."""
        return self.config.get("embedding_dim") or self.config["hidden_dim"]

    # === Layers ===
    def table(self, size, name):
        """A vector for each of `size` ids."""
        return layers.TokenEmbedding(
            size,
            self.table_dim,
            embeddings_initializer=self.initializer(),
            dtype=self.policy,
            name=name,
        )

    def positions(self, name="position_embedding"):
        """A vector for each position, added."""
        return layers.LearnedPositionEmbedding(
            self.config["max_length"],
            embeddings_initializer=self.initializer(),
            dtype=self.policy,
            name=name,
        )

    def norm(self, name="embedding_norm"):
        return keras.layers.LayerNormalization(
            epsilon=self.config["layer_norm_epsilon"], dtype=self.policy, name=name
        )

    def dropout(self, name="embedding_dropout"):
        return keras.layers.Dropout(
            self.config["dropout"], seed=self.seed(name), dtype=self.policy, name=name
        )

    def projection(self, name="embedding_projection"):
        """From the width of the embeddings to that of the blocks."""
        return keras.layers.Dense(
            self.config["hidden_dim"],
            kernel_initializer=self.initializer(),
            dtype=self.policy,
            name=name,
        )

    def block(self, name, **options):
        """One block; `options` are further arguments of `TransformerBlock`."""
        config = self.config
        return layers.TransformerBlock(
            config["num_heads"],
            config["intermediate_dim"],
            activation=config["activation"],
            dropout=config["dropout"],
            attention_dropout=config["attention_dropout"],
            layer_norm_epsilon=config["layer_norm_epsilon"],
            kernel_initializer=self.initializer(),
            seed=self.seed(name),
            dtype=self.policy,
            name=name,
            **options,
        )

    def blocks(self, **options):
        """All blocks, `block_0` first."""
        return [self.block(f"block_{i}", **options) for i in range(self.config["num_layers"])]

    # === Inputs ===
    def text(self, segments=True, more=()):
        """The inputs of the model, and what follows from them.

        Args:
            segments: bool, whether the model has segments; "unilm" reads them in any case.
            more: names of further optional inputs, int (batch, length).
        """
        config = self.config

        def given(name, shape=(None,), dtype="int32"):
            return keras.Input(shape, dtype=dtype, name=name, optional=name != "token_ids")

        segments = segments or config["application"] == "unilm"
        names = ("token_ids", *(["segment_ids"] if segments else []), *more, "position_ids")
        inputs = {name: given(name) for name in names}
        inputs["padding_mask"] = given("padding_mask", dtype="bool")
        inputs["attention_mask"] = given("attention_mask", (None, None), "bool")
        token_ids = inputs["token_ids"]
        real = layers.PaddingMask(config["pad_id"], name="padding")(
            token_ids, inputs["padding_mask"]
        )
        segment_ids = None
        if segments:
            segment_ids = layers.SegmentIds(name="segments")(token_ids, inputs["segment_ids"])
        mask = layers.AttentionMask(config["application"], name="mask")(
            real, segment_ids, inputs["attention_mask"]
        )
        return Text(inputs, token_ids, segment_ids, real, mask)

    def position_ids(self, text, counted=None, **options):
        """The positions (batch, length): those given, or else those that count.

        Args:
            text: `Text`.
            counted: bool (batch, length), which tokens count, by default the real ones.
            **options: arguments of `PositionIds`.
        """
        counted = text.real if counted is None else counted
        return layers.PositionIds(**options, name="positions")(counted, text.inputs["position_ids"])

    # === Heads ===
    def outputs(
        self,
        hidden,
        token_embedding,
        mlm_activation=None,
        class_activation=None,
        judged=None,
        plain=False,
        mlm_bias=True,
    ):
        """The last hidden vectors and what the model's heads make of them, by name.

        Args:
            hidden: (batch, length, hidden_dim).
            token_embedding: the table that the masked-LM head is tied to.
            mlm_activation: of the masked-LM head, by default that of the blocks.
            class_activation: of the sequence classifier's own dense layer. By default it has none
                and reads the pooled vector.
            judged: (batch, hidden_dim), what that classifier reads, by default the first vector.
            plain: bool, whether the masked-LM head is the table and its bias alone.
            mlm_bias: bool, whether it has that bias.
        """
        config, wanted = self.config, set(self.config["heads"])
        made = dict(kernel_initializer=self.initializer(), dtype=self.policy)
        dropout = config.get("classifier_dropout")
        dropout = config["dropout"] if dropout is None else dropout

        outputs = {"hidden": hidden}
        pools_classes = "class" in wanted and class_activation is None
        if wanted & {"pooled", "nsp", "sop"} or pools_classes:
            outputs["pooled"] = heads.Pooler(**made, name="pooler")(hidden)
        if "mlm" in wanted:
            name = "mlm_logits" if config["application"] == "encoder" else "lm_logits"
            outputs[name] = layers.LanguageModelHead(
                token_embedding,
                activation=None if plain else mlm_activation or config["activation"],
                layer_norm_epsilon=config["layer_norm_epsilon"],
                use_bias=mlm_bias,
                **made,
                name="head",
            )(hidden)
        for name in ("nsp", "sop"):
            if name in wanted:
                outputs[f"{name}_logits"] = heads.Classification(2, **made, name=name)(
                    outputs["pooled"]
                )
        if "class" in wanted:
            if pools_classes:
                judged = outputs["pooled"]
            outputs["class_logits"] = heads.Classification(
                config["num_classes"],
                activation=class_activation,
                first=judged is None,
                dropout=dropout,
                seed=self.seed("classifier"),
                **made,
                name="classifier",
            )(hidden if judged is None else judged)
        if "token" in wanted:
            outputs["token_logits"] = heads.Classification(
                config["num_classes"],
                dropout=dropout,
                seed=self.seed("token_classifier"),
                **made,
                name="token_classifier",
            )(hidden)
        if "discriminator" in wanted:
            outputs["token_logits"] = heads.TokenDetection(
                activation=config["activation"], **made, name="discriminator"
            )(hidden)
        if "span" in wanted:
            outputs["start_logits"], outputs["end_logits"] = heads.Span(**made, name="span")(hidden)
        return outputs


def language_model_head(token_embedding, tied, initializer, policy, use_bias=False):
    """The logits of models that write, from the token table or from a kernel of their own."""
    return layers.LanguageModelHead(
        token_embedding if tied else None,
        use_bias=use_bias,
        vocabulary_size=None if tied else token_embedding.vocabulary_size,
        kernel_initializer=initializer,
        dtype=policy,
        name="head",
    )


def _check(config):
    """Refuses settings that do not go together."""
    check_settings(config)
    if config["hidden_dim"] % config["num_heads"]:
        raise ValueError(
            f"hidden_dim = {config['hidden_dim']} must be a multiple of num_heads = "
            f"{config['num_heads']}."
        )
    if isinstance(config["heads"], str) or not set(config["heads"]) <= set(HEADS):
        raise ValueError(f"heads are some of {tuple(HEADS)}, got {config['heads']!r}.")
    if {"token", "discriminator"} <= set(config["heads"]):
        raise ValueError('The heads "token" and "discriminator" would both give token_logits.')
