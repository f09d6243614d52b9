"""bert4keras' BERT, of which its other encoders and decoders change a method or two."""

import keras

from kerasattn import layers
from kerasattn.compat.bert4keras.normalization import ScaleOffset
from kerasattn.compat.bert4keras.transformer import Transformer, as_list, one_or_all
from kerasattn.compat.bert4keras.transformer_layers import Embedding, FirstToken, Sum, Unmasked


class BERT(Transformer):
    """BERT; RoBERTa is the same.

    Args:
        max_position: int, rows of the position table.
        segment_vocab_size: int, kinds of segments, 0 for none.
        with_pool: whether the pooled vector is an output; a str is its activation, True is "tanh".
        with_nsp: bool, whether the probabilities of the next sentence are, instead of it.
        with_mlm: whether those of words are; a str is their activation, True is "softmax".
        hierarchical_position: True or the alpha, for as many positions as the table squared.
        custom_position_ids: bool, whether positions are an input.
        shared_segment_embeddings: bool, whether segments have the tokens' table.
        mask_segments: bool, whether then segment id 0 is padding, as in bert4keras.
        **kwargs: of `Transformer`.
    """

    norm_options = dict(epsilon=1e-12)
    embedding_norm = dict(epsilon=1e-12)
    mlm_norm = dict(epsilon=1e-12)
    use_bias = True
    embedding_names = ("bert/embeddings/word_embeddings", "cls/predictions/output_bias")

    def __init__(
        self,
        max_position,
        segment_vocab_size=2,
        with_pool=False,
        with_nsp=False,
        with_mlm=False,
        hierarchical_position=None,
        custom_position_ids=False,
        shared_segment_embeddings=False,
        mask_segments=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.max_position = max_position
        self.segment_vocab_size = segment_vocab_size
        self.with_pool = with_pool or bool(with_nsp)
        self.with_nsp = with_nsp
        self.with_mlm = with_mlm
        self.hierarchical_position = hierarchical_position
        self.custom_position_ids = custom_position_ids
        self.shared_segment_embeddings = shared_segment_embeddings
        self.mask_segments = mask_segments

    # === Inputs ===
    def get_inputs(self):
        """Token ids, segment ids if there are segments, positions if they are custom."""
        names = ["Input-Token"]
        if self.segment_vocab_size > 0 or self.application == "unilm":
            names.append("Input-Segment")
        if self.custom_position_ids:
            names.append("Input-Position")
        return [self.input_ids(name) for name in names]

    def split(self, inputs):
        """The inputs by kind: token ids, segment ids or None, positions or None."""
        token_ids, *more = as_list(inputs)
        has_segments = self.segment_vocab_size > 0 or self.application == "unilm"
        segment_ids = more.pop(0) if has_segments and more else None
        position_ids = more.pop(0) if self.custom_position_ids and more else None
        return token_ids, segment_ids, position_ids

    def compute_attention_bias(self, inputs=None):
        if self.attention_bias is None and self.given:
            token_ids, segment_ids, _ = self.split(self.given)
            mask_segments = (
                self.shared_segment_embeddings and self.mask_segments and segment_ids is not None
            )
            kind = {"encoder": "", "lm": "-LM", "unilm": "-UniLM"}[self.application]
            needed = mask_segments or self.application == "unilm"
            self.attention_bias = self.attention_mask(
                f"Attention{kind}-Mask",
                token_ids,
                segment_ids if needed else None,
                application=self.application,
                mask_segments=mask_segments,
            )
        return self.attention_bias

    # === Embeddings ===
    def embed(self, inputs):
        """The sum of the tokens' and the segments' vectors."""
        self.start(inputs)
        token_ids, segment_ids, _ = self.split(inputs)
        x = self.table(token_ids, self.vocab_size, "Embedding-Token", mask_zero=True)
        if self.segment_vocab_size > 0:
            name = "Embedding-Token" if self.shared_segment_embeddings else "Embedding-Segment"
            s = self.table(segment_ids, self.segment_vocab_size, name)
            if self.shared_segment_embeddings and not self.mask_segments:
                s = self.apply(s, Unmasked, name="Embedding-Segment-Unmasked")
            x = self.apply([x, s], Sum, name="Embedding-Token-Segment")
        return x

    def table(self, ids, size, name, **options):
        """A vector for each id."""
        return self.apply(
            ids,
            Embedding,
            input_dim=size,
            output_dim=self.embedding_size,
            embeddings_initializer=self.initializer,
            **options,
            name=name,
        )

    def add_positions(self, x, position_ids=None):
        """A vector for each position, added."""
        return self.apply(
            x,
            layers.LearnedPositionEmbedding,
            {} if position_ids is None else {"position_ids": position_ids},
            max_length=self.max_position,
            hierarchical=self.hierarchical_position or False,
            embeddings_initializer=self.initializer,
            name="Embedding-Position",
        )

    def map_embeddings(self, x):
        """From the width of the embeddings to that of the layers, if they differ."""
        if self.embedding_size == self.hidden_size:
            return x
        return self.dense(x, self.hidden_size, "Embedding-Mapping", use_bias=self.use_bias)

    def apply_embeddings(self, inputs):
        x = self.add_positions(self.embed(inputs), self.split(inputs)[2])
        x = self.norm(x, "Embedding-Norm", **self.embedding_norm)
        return self.map_embeddings(self.dropout(x, "Embedding-Dropout"))

    # === Layers ===
    def layer_names(self, index):
        """The names of a layer's attention and of its feed-forward part."""
        return f"Transformer-{index}-MultiHeadSelfAttention", f"Transformer-{index}-FeedForward"

    def self_attention(self, x, name, index):
        """The attention of a layer to itself, with the mask and the positions."""
        mask, positions = self.compute_attention_bias(index), self.compute_position_bias(x)
        return self.attend(x, name, mask=mask, positions=positions)

    def apply_main_layers(self, inputs, index):
        attention, feed_forward = self.layer_names(index)
        x = self.add(inputs, self.self_attention(inputs, attention, index), attention)
        x = self.norm(x, f"{attention}-Norm")
        x = self.add(x, self.feed_forward(x, feed_forward), feed_forward)
        return self.norm(x, f"{feed_forward}-Norm")

    # === Heads ===
    def apply_final_layers(self, inputs):
        outputs = []
        if self.with_pool:
            outputs.append(self.pool(inputs))
        if self.with_mlm:
            outputs.append(self.predict_words(inputs))
        return one_or_all(outputs) if outputs else inputs

    def pool(self, x):
        """The pooled vector, or what it says of the next sentence."""
        x = self.apply(x, FirstToken, name="Pooler")
        activation = "tanh" if self.with_pool is True else self.with_pool
        x = self.dense(
            x, self.hidden_size, "Pooler-Dense", activation=activation, use_bias=self.use_bias
        )
        if self.with_nsp:
            x = self.dense(x, 2, "NSP-Proba", activation="softmax", use_bias=self.use_bias)
        return x

    def predict_words(self, x):
        """The masked-LM head, which is the language model's too."""
        x = self.dense(x, self.embedding_size, "MLM-Dense", activation=self.head_activation)
        x = self.logits(self.norm(x, "MLM-Norm", **self.mlm_norm))
        x = self.apply(x, ScaleOffset, scale=False, dtype="float32", name="MLM-Bias")
        return self.activate(x, self.with_mlm, "MLM-Activation")

    @property
    def head_activation(self):
        """Of a head's dense layer: the first of those of gated feed-forward parts."""
        return as_list(self.hidden_act)[0]

    def logits(self, x):
        """A number for each token, by the table of the embeddings."""
        return self.apply(x, Embedding, {"mode": "dense"}, name="Embedding-Token")

    def activate(self, x, activation, name):
        """An activation, in float32; True is softmax."""
        activation = "softmax" if activation is True else activation
        return self.apply(
            x, keras.layers.Activation, activation=activation, dtype="float32", name=name
        )

    # === Weights ===
    def variable_mapping(self):
        mapping = {
            "Embedding-Token": ["bert/embeddings/word_embeddings"],
            "Embedding-Segment": ["bert/embeddings/token_type_embeddings"],
            "Embedding-Position": ["bert/embeddings/position_embeddings"],
            "Embedding-Norm": norm_names("bert/embeddings/LayerNorm"),
            "Embedding-Mapping": dense_names("bert/encoder/embedding_hidden_mapping_in"),
            "Pooler-Dense": dense_names("bert/pooler/dense"),
            "NSP-Proba": [
                "cls/seq_relationship/output_weights",
                "cls/seq_relationship/output_bias",
            ],
            "MLM-Dense": dense_names("cls/predictions/transform/dense"),
            "MLM-Norm": norm_names("cls/predictions/transform/LayerNorm"),
            "MLM-Bias": ["cls/predictions/output_bias"],
        }
        for i in range(self.num_hidden_layers):
            mapping |= layer_names_in_checkpoint(*self.layer_names(i), f"bert/encoder/layer_{i}")
        return mapping


def dense_names(*prefixes):
    """The names of the kernels and biases of dense layers."""
    return [f"{prefix}/{end}" for prefix in prefixes for end in ("kernel", "bias")]


def norm_names(prefix):
    """The names of the weights of a norm."""
    return [f"{prefix}/beta", f"{prefix}/gamma"]


def attention_names(prefix):
    """The names of the weights of an attention, BERT's by a prefix such as "layer_0/attention"."""
    own = (f"{prefix}/self/{part}" for part in ("query", "key", "value"))
    return dense_names(*own, f"{prefix}/output/dense")


def layer_names_in_checkpoint(attention, feed_forward, prefix):
    """The names of BERT's tensors by the layers of one block."""
    return {
        attention: attention_names(f"{prefix}/attention"),
        f"{attention}-Norm": norm_names(f"{prefix}/attention/output/LayerNorm"),
        feed_forward: dense_names(f"{prefix}/intermediate/dense", f"{prefix}/output/dense"),
        f"{feed_forward}-Norm": norm_names(f"{prefix}/output/LayerNorm"),
    }


def replaced(mapping, old, new):
    """A mapping with another text in the names of the tensors."""
    return {layer: [name.replace(old, new) for name in names] for layer, names in mapping.items()}


def refuse_heads(model, given, *heads):
    """Refuses heads that a family does not have."""
    asked = [head for head in heads if given.get(head)]
    if asked:
        raise ValueError(f"{type(model).__name__} has no heads for {', '.join(asked)}.")
