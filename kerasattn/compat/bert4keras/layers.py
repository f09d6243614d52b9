"""bert4keras' layers, with its arguments and the names of its weights.

As there, Keras' own stand beside them: `Dense` and `Dropout`, but not those that it replaces.
"""

import keras

from kerasattn.compat.bert4keras.attention import MultiHeadAttention
from kerasattn.compat.bert4keras.chains import ConditionalRandomField, MaximumEntropyMarkovModel
from kerasattn.compat.bert4keras.gated_attention import GatedAttentionUnit
from kerasattn.compat.bert4keras.loss import Loss
from kerasattn.compat.bert4keras.normalization import LayerNormalization, ScaleOffset
from kerasattn.compat.bert4keras.pointers import EfficientGlobalPointer, GlobalPointer
from kerasattn.compat.bert4keras.positions import (
    PositionEmbedding,
    RelativePositionEmbedding,
    RelativePositionEmbeddingT5,
    SinusoidalPositionEmbedding,
)
from kerasattn.compat.bert4keras.sequences import Concatenate1D, GlobalMaxPooling1D
from kerasattn.compat.bert4keras.transformer_layers import Embedding, FeedForward

__all__ = [
    "Concatenate1D",
    "ConditionalRandomField",
    "EfficientGlobalPointer",
    "Embedding",
    "FeedForward",
    "GatedAttentionUnit",
    "GlobalMaxPooling1D",
    "GlobalPointer",
    "LayerNormalization",
    "Loss",
    "MaximumEntropyMarkovModel",
    "MultiHeadAttention",
    "PositionEmbedding",
    "RelativePositionEmbedding",
    "RelativePositionEmbeddingT5",
    "ScaleOffset",
    "SinusoidalPositionEmbedding",
]

OTHERS = {
    name: x for name, x in vars(keras.layers).items() if name not in __all__ and name[0] != "_"
}
globals().update(OTHERS)
__all__ += sorted(OTHERS)
