"""RoFormer's checkpoints: Hugging Face folders, and TensorFlow ones as ZhuiyiTechnology has them.

The rows are BERT's but for a few.
"""

import numpy as np

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.rules import keras_layer, torch_dense
from kerasattn.weights.tables import bert

HUGGINGFACE_TABLE = bert.torch_table(
    "roformer",
    *torch_dense("embedding_projection", "roformer.embeddings_project"),
    *bert.torch_classifiers("classifier.out_proj", dense="classifier.dense"),
    ignored=("roformer.encoder.embed_positions.weight",),
)
TENSORFLOW_TABLE = bert.tensorflow_table(
    *keras_layer(
        "embedding_projection", "bert/encoder/embedding_hidden_mapping_in", "kernel", "bias"
    ),
)

# === Sizes ===

SIZES = bert.SIZES | {
    "vocab_size": ("vocabulary_size", 50000),
    "max_position_embeddings": ("max_length", 1536),
    "embedding_size": ("embedding_dim", None),
    "rotary_value": ("rotary_value", False),
}
CONFIG = EncoderConfig("roformer", "RoFormer", SIZES, bert.ARCHITECTURES | {"Model": ()})


def position_table(values):
    """The sinusoids that Hugging Face keeps as a weight: (max_length, head size), sin | cos."""
    dim = values["hidden_dim"] // values["num_heads"]
    frequencies = np.power(10000, 2 * np.arange((dim + 1) // 2) / dim)
    angles = np.arange(values["max_length"])[:, None] / frequencies
    table = np.concatenate([np.sin(angles), np.cos(angles[:, : dim // 2])], axis=1)
    return {"roformer.encoder.embed_positions.weight": table.astype("float32")}


HUGGINGFACE = bert.huggingface("RoFormer", HUGGINGFACE_TABLE, CONFIG, extra=position_table)
TENSORFLOW = bert.tensorflow(
    "RoFormer",
    TENSORFLOW_TABLE,
    CONFIG,
    tells=lambda config, names: (
        "bert/encoder/layer_0/output/dense/kernel" in names
        and "bert/encoder/layer_0/output/dense/bias" in names  # version 2 has none
        and "bert/embeddings/position_embeddings" not in names
        and not config.get("use_relative_position")
    ),
)
FORMATS = (HUGGINGFACE, TENSORFLOW)
