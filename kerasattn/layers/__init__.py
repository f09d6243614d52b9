"""Keras layers, one concept a file."""

from kerasattn.layers.attention_mask import AttentionMask
from kerasattn.layers.feed_forward import FeedForward
from kerasattn.layers.gaussian_sampling import GaussianSampling
from kerasattn.layers.language_model_head import LanguageModelHead
from kerasattn.layers.learned_position_embedding import LearnedPositionEmbedding
from kerasattn.layers.multi_head_attention import MultiHeadAttention
from kerasattn.layers.padding_mask import PaddingMask
from kerasattn.layers.position_ids import PositionIds
from kerasattn.layers.prior_replacement import PriorReplacement
from kerasattn.layers.relative_position_bias import RelativePositionBias
from kerasattn.layers.relative_position_embedding import RelativePositionEmbedding
from kerasattn.layers.rotary_embedding import RotaryEmbedding
from kerasattn.layers.segment_ids import SegmentIds
from kerasattn.layers.sinusoidal_position_encoding import SinusoidalPositionEncoding
from kerasattn.layers.token_embedding import TokenEmbedding
from kerasattn.layers.transformer_block import TransformerBlock
from kerasattn.layers.uniformity_regularization import UniformityRegularization
from kerasattn.layers.vector_quantizer import VectorQuantizer
from kerasattn.layers.von_mises_fisher_sampling import VonMisesFisherSampling
from kerasattn.layers.word_dropout import WordDropout

__all__ = [
    "AttentionMask",
    "FeedForward",
    "GaussianSampling",
    "LanguageModelHead",
    "LearnedPositionEmbedding",
    "MultiHeadAttention",
    "PaddingMask",
    "PositionIds",
    "PriorReplacement",
    "RelativePositionBias",
    "RelativePositionEmbedding",
    "RotaryEmbedding",
    "SegmentIds",
    "SinusoidalPositionEncoding",
    "TokenEmbedding",
    "TransformerBlock",
    "UniformityRegularization",
    "VectorQuantizer",
    "VonMisesFisherSampling",
    "WordDropout",
]
