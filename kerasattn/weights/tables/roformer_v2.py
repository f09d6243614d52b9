"""RoFormerV2's checkpoints: TensorFlow ones as ZhuiyiTechnology has them, and folders of our own.

The rows are BERT's, of which it lacks all biases and norms. transformers has no such model; in
folders of Hugging Face's kind the names are RoFormer's and the model_type is "roformer_v2".
"""

import dataclasses

from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.tables import bert, roformer

SIZES = {
    theirs: ours
    for theirs, ours in (
        bert.SIZES
        | {
            "vocab_size": ("vocabulary_size", 12000),
            "rotary_value": ("rotary_value", False),
            "layer_norm_eps": ("layer_norm_epsilon", 1e-7),
        }
    ).items()
    if theirs != "initializer_range"
}
CONFIG = EncoderConfig("roformer_v2", "RoFormerV2", SIZES, bert.ARCHITECTURES | {"Model": ()})


def accepts(config):
    """Whether a config is of this version, also where it says so by its norm alone."""
    kind = config.get("model_type", "roformer_v2")
    by_norm = kind == "roformer" and config.get("norm_type") == "rms_norm"
    return kind == "roformer_v2" or by_norm


HUGGINGFACE = dataclasses.replace(
    bert.huggingface("RoFormerV2", roformer.HUGGINGFACE_TABLE, CONFIG), accepts=accepts
)
TENSORFLOW = bert.tensorflow(
    "RoFormerV2",
    bert.tensorflow_table(),
    CONFIG,
    tells=lambda config, names: (
        "bert/encoder/layer_0/output/dense/kernel" in names
        and "bert/encoder/layer_0/output/dense/bias" not in names
    ),
)
FORMATS = (HUGGINGFACE, TENSORFLOW)
