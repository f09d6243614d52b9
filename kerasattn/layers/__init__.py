"""Keras layers, one concept a file."""

from kerasattn.layers.feed_forward import FeedForward
from kerasattn.layers.language_model_head import LanguageModelHead
from kerasattn.layers.rotary_embedding import RotaryEmbedding
from kerasattn.layers.token_embedding import TokenEmbedding

__all__ = ["FeedForward", "LanguageModelHead", "RotaryEmbedding", "TokenEmbedding"]
