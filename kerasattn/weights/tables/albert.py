"""ALBERT's checkpoints: Hugging Face folders, and TensorFlow ones as Google has them."""

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import Table, keras_layer, torch_dense
from kerasattn.weights.tables import bert

OURS = "group_{i}_block_{j}"
BLOCK_DENSE = {
    "self_attention/query": "attention/query",
    "self_attention/key": "attention/key",
    "self_attention/value": "attention/value",
    "self_attention/output": "attention/dense",
    "feed_forward/intermediate": "ffn",
    "feed_forward/output": "ffn_output",
}
BLOCK_NORM = {
    "self_attention_norm": "attention/LayerNorm",
    "feed_forward_norm": "full_layer_layer_norm",
}
TABLE = Table(
    (
        *bert.torch_embeddings("albert", decoder="predictions.decoder"),
        *torch_dense("embedding_projection", "albert.encoder.embedding_hidden_mapping_in"),
        *bert.torch_blocks(
            "albert.encoder.albert_layer_groups.{i}.albert_layers.{j}",
            BLOCK_DENSE,
            BLOCK_NORM,
            ours=OURS,
        ),
        *torch_dense("pooler/dense", "albert.pooler"),
        *bert.torch_mlm(
            "predictions.dense", "predictions.LayerNorm", "predictions.bias", "predictions.decoder"
        ),
        *torch_dense("sop/output", "sop_classifier.classifier"),
        *bert.torch_classifiers(),
    ),
    ignored=("*.position_ids",),
    prefix="albert.",
)

TENSORFLOW_DENSE = {
    "self_attention/query": "attention_1/self/query",
    "self_attention/key": "attention_1/self/key",
    "self_attention/value": "attention_1/self/value",
    "self_attention/output": "attention_1/output/dense",
    "feed_forward/intermediate": "ffn_1/intermediate/dense",
    "feed_forward/output": "ffn_1/intermediate/output/dense",
}
TENSORFLOW_NORM = {"self_attention_norm": "LayerNorm", "feed_forward_norm": "LayerNorm_1"}
TENSORFLOW_TABLE = bert.tensorflow_table(
    *keras_layer(
        "embedding_projection", "bert/encoder/embedding_hidden_mapping_in", "kernel", "bias"
    ),
    *bert.tensorflow_blocks(
        "bert/encoder/transformer/group_{i}/inner_group_{j}",
        TENSORFLOW_DENSE,
        TENSORFLOW_NORM,
        ours=OURS,
    ),
    pairs="sop",
)

SIZES = bert.SIZES | {
    "vocab_size": ("vocabulary_size", 30000),
    "hidden_size": ("hidden_dim", 4096),
    "intermediate_size": ("intermediate_dim", 16384),
    "num_attention_heads": ("num_heads", 64),
    "embedding_size": ("embedding_dim", 128),
    "num_hidden_groups": ("num_groups", 1),
    "inner_group_num": ("group_blocks", 1),
    "hidden_act": ("activation", "gelu_new"),
    "hidden_dropout_prob": ("dropout", 0.0),
    "attention_probs_dropout_prob": ("attention_dropout", 0.0),
    "classifier_dropout_prob": ("classifier_dropout", 0.1),
}
del SIZES["classifier_dropout"]
ARCHITECTURES = bert.ARCHITECTURES | {"ForPreTraining": ("mlm", "sop")}
CONFIG = EncoderConfig("albert", "Albert", SIZES, ARCHITECTURES)
FORMATS = (
    bert.huggingface("ALBERT", TABLE, CONFIG),
    *(
        bert.tensorflow(
            "ALBERT",
            TENSORFLOW_TABLE,
            CONFIG,
            config_file=config_file,
            tells=lambda config, names: any(
                name.startswith("bert/encoder/transformer/group_0") for name in names
            ),
        )
        for config_file in ("albert_config.json", "bert_config.json")
    ),
)
