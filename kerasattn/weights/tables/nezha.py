"""NEZHA's checkpoints: Hugging Face folders, and TensorFlow ones as Huawei has them."""

import numpy as np

from kerasattn.ops import positions
from kerasattn.weights.configs import EncoderConfig
from kerasattn.weights.tables import bert

SIZES = bert.SIZES | {
    "vocab_size": ("vocabulary_size", 21128),
    "max_relative_position": ("max_distance", 64),
}
CONFIG = EncoderConfig("nezha", "Nezha", SIZES, bert.ARCHITECTURES)
BUFFER = "nezha.encoder.layer.{i}.attention.self.relative_positions_encoding.positions_encoding"


def relative_tables(values):
    """What Hugging Face keeps in each layer: a sinusoid for each pair of positions."""
    length, width = values["max_length"], values["hidden_dim"] // values["num_heads"]
    places = np.arange(length, dtype="int32")
    distances = np.clip(
        places[None] - places[:, None], -values["max_distance"], values["max_distance"]
    )
    rows = distances + values["max_distance"]
    table = np.asarray(positions.sinusoidal(np.arange(rows.max() + 1, dtype="int32"), width))
    return {BUFFER.format(i=i): table[rows] for i in range(values["num_layers"])}


HUGGINGFACE = bert.huggingface(
    "NEZHA",
    bert.torch_table("nezha", ignored=("*.relative_positions_encoding.*",)),
    CONFIG,
    extra=relative_tables,
)
TENSORFLOW = bert.tensorflow(
    "NEZHA",
    bert.tensorflow_table(),
    CONFIG,
    tells=lambda config, names: bool(config.get("use_relative_position")),
)
FORMATS = (HUGGINGFACE, TENSORFLOW)
