"""bert4keras' other encoders: what each does otherwise than BERT."""

import keras

from kerasattn import layers
from kerasattn.compat.bert4keras.bert import (
    BERT,
    attention_names,
    dense_names,
    norm_names,
    refuse_heads,
    replaced,
)


class ALBERT_Unshared(BERT):
    """ALBERT whose layers start alike and are then trained apart."""

    def variable_mapping(self):
        mapping = super().variable_mapping()
        prefix = "bert/encoder/transformer/group_0/inner_group_0"
        for i in range(self.num_hidden_layers):
            attention, feed_forward = self.layer_names(i)
            mapping |= {
                attention: attention_names(f"{prefix}/attention_1"),
                f"{attention}-Norm": norm_names(f"{prefix}/LayerNorm"),
                feed_forward: dense_names(
                    f"{prefix}/ffn_1/intermediate/dense",
                    f"{prefix}/ffn_1/intermediate/output/dense",
                ),
                f"{feed_forward}-Norm": norm_names(f"{prefix}/LayerNorm_1"),
            }
        return mapping


class ALBERT(ALBERT_Unshared):
    """ALBERT, whose layers are one layer."""

    norm_options = {}  # but for the norms of the embeddings and of the head

    def layer_names(self, index):
        return "Transformer-MultiHeadSelfAttention", "Transformer-FeedForward"


class NEZHA(BERT):
    """NEZHA: BERT with fixed vectors for distances, in every attention.

    With `custom_position_ids` these are distances of the positions given.
    """

    norm_options = {}
    embedding_norm = {}
    p_bias = "typical_relative"

    def add_positions(self, x, position_ids=None):
        return x

    def compute_position_bias(self, inputs=None):
        if self.position_bias is None:
            widths = [self.attention_key_size]
            if self.attention_head_size != self.attention_key_size:
                widths.append(self.attention_head_size)  # values have vectors of their own
            ends = ("", "-Value")
            self.position_bias = [
                self.distances(inputs, width, f"Embedding-Relative-Position{end}")
                for width, end in zip(widths, ends)
            ]
        return self.position_bias

    def distances(self, x, width, name):
        """The vectors of all distances, from -64 to 64."""
        position_ids = self.split(self.given)[2]
        arguments = {}
        if position_ids is not None:
            arguments = {"query_positions": position_ids, "key_positions": position_ids}
        return self.apply(
            x,
            layers.RelativePositionEmbedding,
            arguments,
            embedding_dim=width,
            max_distance=64,
            name=name,
        )


class RoFormer(NEZHA):
    """RoFormer: BERT with rotary positions."""

    p_bias = "rotary"

    def compute_position_bias(self, inputs=None):
        if self.position_bias is None:
            position_ids = self.split(self.given)[2] if self.given else None
            self.position_bias = self.apply(
                inputs,
                layers.SinusoidalPositionEncoding,
                {} if position_ids is None else {"position_ids": position_ids},
                mode=None,
                encoding_dim=self.attention_key_size,
                dtype="float32",
                name="Embedding-Rotary-Position",
            )
        return self.position_bias


class RoFormerV2(RoFormer):
    """RoFormerV2: RoFormer without biases, its norms without weights."""

    use_bias = False
    attention_options = feed_forward_options = dict(use_bias=False)
    norm_options = dict(zero_mean=False, scale=False, offset=False)
    has_conditions = False

    def initializer(self, shape, dtype=None, order=2, gain=1.0):
        """Normal numbers, the smaller the more layers there are: (layers)^(-1 / order) * gain.

        Args:
            shape: of the weights; that of a table of tokens has its width last.
        """
        width = shape[1] if len(shape) > 1 and not 10 <= shape[0] <= 10000 else shape[0]
        scale = gain * self.num_hidden_layers ** (-1.0 / order)
        # 0.8796 is the deviation of normal numbers that are cut off at two.
        stddev = scale / (0.87962566103423978 * width**0.5)
        return keras.random.truncated_normal(shape, stddev=stddev, dtype=dtype)

    def apply_embeddings(self, inputs):
        x = self.dropout(self.embed(inputs), "Embedding-Dropout")
        return self.map_embeddings(self.norm(x, "Embedding-Norm"))

    def predict_words(self, x):
        if self.embedding_size != self.hidden_size:
            x = self.dense(x, self.embedding_size, "Output-Mapping", use_bias=False)
        x = self.logits(self.dropout(x, "Output-MLM-Dropout"))
        return self.activate(x, self.with_mlm, "Output-MLM-Activation")

    def variable_mapping(self):
        mapping = super().variable_mapping()
        lacks = ("beta", "gamma", "bias")
        return {
            layer: [name for name in names if not name.endswith(lacks)]
            for layer, names in mapping.items()
        }


class ELECTRA(BERT):
    """ELECTRA's discriminator.

    Args:
        max_position: int, rows of the position table.
        with_discriminator: whether each token's probability of being replaced is the output; a
            str is its activation, True is "sigmoid".
        **kwargs: of `BERT`, but for its heads.
    """

    embedding_names = ("electra/embeddings/word_embeddings",)

    def __init__(self, max_position, with_discriminator=False, **kwargs):
        refuse_heads(self, kwargs, "with_pool", "with_nsp", "with_mlm")
        super().__init__(max_position, **kwargs)
        self.with_discriminator = with_discriminator

    def apply_final_layers(self, inputs):
        if not self.with_discriminator:
            return inputs
        activation = self.with_discriminator
        x = self.dense(
            inputs, self.hidden_size, "Discriminator-Dense", activation=self.head_activation
        )
        return self.dense(
            x,
            1,
            "Discriminator-Prediction",
            activation="sigmoid" if activation is True else activation,
        )

    def variable_mapping(self):
        mapping = super().variable_mapping()
        mapping["Embedding-Mapping"] = dense_names("electra/embeddings_project")
        mapping = replaced(mapping, "bert/", "electra/")
        return mapping | {
            "Discriminator-Dense": dense_names("discriminator_predictions/dense"),
            "Discriminator-Prediction": dense_names("discriminator_predictions/dense_1"),
        }
