"""Tokenizers that run inside the graph: strings to token ids and back."""

from kerasattn.tokenizers.base import SPECIAL_TOKENS, Tokenizer
from kerasattn.tokenizers.character import CharacterTokenizer

__all__ = ["SPECIAL_TOKENS", "CharacterTokenizer", "Tokenizer"]
