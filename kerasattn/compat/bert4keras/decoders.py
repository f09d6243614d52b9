"""bert4keras' decoders: the GPTs."""

from kerasattn.compat.bert4keras.bert import (
    BERT,
    dense_names,
    norm_names,
    refuse_heads,
    replaced,
)
from kerasattn.compat.bert4keras.transformer import one_or_all


class GPT(BERT):
    """The first GPT: a language model of post-norm layers, whose embeddings have no norm.

    Args:
        final_activation: of the logits.
        **kwargs: of `BERT`, but for its heads.
    """

    application = "lm"
    embedding_names = ("gpt/embeddings/word_embeddings",)

    def __init__(self, final_activation="softmax", **kwargs):
        refuse_heads(self, kwargs, "with_pool", "with_nsp", "with_mlm")
        super().__init__(**kwargs)
        self.final_activation = final_activation

    def apply_embeddings(self, inputs):
        x = self.add_positions(self.embed(inputs), self.split(inputs)[2])
        return self.map_embeddings(self.dropout(x, "Embedding-Dropout"))

    def apply_final_layers(self, inputs):
        x = inputs
        if self.embedding_size != self.hidden_size:
            x = self.dense(x, self.embedding_size, "Output-Mapping", use_bias=False)
        return self.activate(self.logits(x), self.final_activation, "LM-Activation")

    def variable_mapping(self):
        mapping = replaced(super().variable_mapping(), "bert/", "gpt/")
        return replaced(mapping, "encoder", "transformer")


class GPT2(GPT):
    """GPT-2: a language model of pre-norm layers. Its input is the token ids."""

    norm_options = dict(epsilon=1e-5)

    def __init__(self, **kwargs):
        super().__init__(**{**kwargs, "segment_vocab_size": 0, "custom_position_ids": False})

    def get_inputs(self):
        """The token ids; segment ids too if the application reads them."""
        return one_or_all(super().get_inputs())

    def apply_embeddings(self, inputs):
        return self.map_embeddings(self.add_positions(self.embed(inputs)))

    def apply_main_layers(self, inputs, index):
        attention, feed_forward = self.layer_names(index)
        x = self.norm(inputs, f"{attention}-Norm")
        x = self.add(inputs, self.self_attention(x, attention, index), attention)
        y = self.norm(x, f"{feed_forward}-Norm")
        return self.add(x, self.feed_forward(y, feed_forward), feed_forward)

    def apply_final_layers(self, inputs):
        x = self.dropout(self.norm(inputs, "Output-Norm"), "Output-Dropout")
        return super().apply_final_layers(x)

    def variable_mapping(self):
        mapping = replaced(super().variable_mapping(), "output/LayerNorm", "input/LayerNorm")
        return mapping | {"Output-Norm": norm_names("gpt/output/LayerNorm")}


class GPT2_ML(GPT2):
    """GPT2-ML: the first GPT with norms around the feed-forward part alone.

    Its input is the token ids.
    """

    embedding_names = ("newslm/embeddings/word_embed",)

    def apply_embeddings(self, inputs):
        x = self.add_positions(self.embed(inputs))
        return self.map_embeddings(self.norm(x, "Embedding-Norm"))

    def apply_main_layers(self, inputs, index):
        attention, feed_forward = self.layer_names(index)
        x = self.add(inputs, self.self_attention(inputs, attention, index), attention)
        y = self.norm(x, f"{feed_forward}-Norm-0")
        x = self.add(x, self.feed_forward(y, feed_forward), feed_forward)
        return self.norm(x, f"{feed_forward}-Norm-1")

    def apply_final_layers(self, inputs):
        return GPT.apply_final_layers(self, inputs)

    def variable_mapping(self):
        mapping = {
            "Embedding-Token": ["newslm/embeddings/word_embed"],
            "Embedding-Position": ["newslm/embeddings/pos_embed"],
            "Embedding-Norm": norm_names("newslm/embeddings/LayerNorm_embed_norm"),
        }
        for i in range(self.num_hidden_layers):
            attention, feed_forward = self.layer_names(i)
            prefix = f"newslm/layer{i:02}"
            parts = ("query_layer", "key_layer", "value_layer", "context_projection_layer")
            mapping |= {
                attention: dense_names(*(f"{prefix}/{part}" for part in parts)),
                f"{feed_forward}-Norm-0": norm_names(f"{prefix}/LayerNorm_mlp_ln0"),
                feed_forward: dense_names(f"{prefix}/intermediate", f"{prefix}/output"),
                f"{feed_forward}-Norm-1": norm_names(f"{prefix}/LayerNorm_mlp_ln1"),
            }
        return mapping
