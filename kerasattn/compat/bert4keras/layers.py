"""bert4keras' layers, with its arguments and the names of its weights."""

from kerasattn.compat.bert4keras.chains import ConditionalRandomField, MaximumEntropyMarkovModel
from kerasattn.compat.bert4keras.gated_attention import GatedAttentionUnit
from kerasattn.compat.bert4keras.loss import Loss
from kerasattn.compat.bert4keras.pointers import EfficientGlobalPointer, GlobalPointer
from kerasattn.compat.bert4keras.positions import (
    PositionEmbedding,
    RelativePositionEmbedding,
    RelativePositionEmbeddingT5,
    SinusoidalPositionEmbedding,
)

__all__ = [
    "ConditionalRandomField",
    "EfficientGlobalPointer",
    "GatedAttentionUnit",
    "GlobalPointer",
    "Loss",
    "MaximumEntropyMarkovModel",
    "PositionEmbedding",
    "RelativePositionEmbedding",
    "RelativePositionEmbeddingT5",
    "SinusoidalPositionEmbedding",
]
