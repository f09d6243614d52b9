"""Keras layers, one concept a file."""

from kerasattn.layers.feed_forward import FeedForward
from kerasattn.layers.gaussian_sampling import GaussianSampling
from kerasattn.layers.language_model_head import LanguageModelHead
from kerasattn.layers.rotary_embedding import RotaryEmbedding
from kerasattn.layers.token_embedding import TokenEmbedding
from kerasattn.layers.vector_quantizer import VectorQuantizer
from kerasattn.layers.von_mises_fisher_sampling import VonMisesFisherSampling

__all__ = [
    "FeedForward",
    "GaussianSampling",
    "LanguageModelHead",
    "RotaryEmbedding",
    "TokenEmbedding",
    "VectorQuantizer",
    "VonMisesFisherSampling",
]
