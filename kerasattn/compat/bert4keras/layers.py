"""bert4keras' layers, with its arguments and the names of its weights."""

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
from kerasattn.compat.bert4keras.transformer_layers import Embedding, FeedForward

__all__ = [
    "ConditionalRandomField",
    "EfficientGlobalPointer",
    "Embedding",
    "FeedForward",
    "GatedAttentionUnit",
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
