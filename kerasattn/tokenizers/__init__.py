"""Tokenizers that run inside the graph: strings to token ids and back."""

from kerasattn.tokenizers.base import SPECIAL_TOKENS, Tokenizer
from kerasattn.tokenizers.character import CharacterTokenizer
from kerasattn.tokenizers.wordpiece import WordPieceTokenizer

__all__ = ["SPECIAL_TOKENS", "CharacterTokenizer", "Tokenizer", "WordPieceTokenizer"]
