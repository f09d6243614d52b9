"""DistilBERT's checkpoints, as Hugging Face has them."""

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import Table
from kerasattn.weights.tables import bert

BLOCK_DENSE = {
    "self_attention/query": "attention/q_lin",
    "self_attention/key": "attention/k_lin",
    "self_attention/value": "attention/v_lin",
    "self_attention/output": "attention/out_lin",
    "feed_forward/intermediate": "ffn/lin1",
    "feed_forward/output": "ffn/lin2",
}
BLOCK_NORM = {
    "self_attention_norm": "sa_layer_norm",
    "feed_forward_norm": "output_layer_norm",
}
TABLE = Table(
    (
        *bert.torch_embeddings("distilbert", decoder="vocab_projector"),
        *bert.torch_blocks("distilbert.transformer.layer.{i}", BLOCK_DENSE, BLOCK_NORM),
        *bert.torch_mlm(
            "vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector"
        ),
        *bert.torch_classifiers(dense="pre_classifier"),
    ),
    ignored=("*.position_ids",),
    prefix="distilbert.",
)
SIZES = {
    "vocab_size": ("vocabulary_size", 30522),
    "n_layers": ("num_layers", 6),
    "n_heads": ("num_heads", 12),
    "dim": ("hidden_dim", 768),
    "hidden_dim": ("intermediate_dim", 3072),
    "max_position_embeddings": ("max_length", 512),
    "activation": ("activation", "gelu"),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
    "seq_classif_dropout": ("classifier_dropout", 0.2),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),  # Hugging Face has no such key, and this value
    "initializer_range": ("initializer_range", 0.02),
    "pad_token_id": ("pad_id", 0),
}
ARCHITECTURES = {
    "Model": (),
    "ForMaskedLM": ("mlm",),
    "ForSequenceClassification": ("class",),
    "ForTokenClassification": ("token",),
    "ForQuestionAnswering": ("span",),
}
CONFIG = EncoderConfig("distilbert", "DistilBert", SIZES, ARCHITECTURES)
FORMATS = (bert.huggingface("DistilBERT", TABLE, CONFIG),)
