"""Tokenizers: strings to token ids and back, one interface for all.

WordPiece, SentencePiece and characters run inside of the graph; byte pair encoding, any
`tokenizer.json` and RoFormer's words run on the host.
"""

from kerasattn.tokenizers.base import SPECIAL_TOKENS, Tokenizer
from kerasattn.tokenizers.bpe import BytePairTokenizer
from kerasattn.tokenizers.character import CharacterTokenizer
from kerasattn.tokenizers.elmo import elmo_characters
from kerasattn.tokenizers.finder import from_pretrained
from kerasattn.tokenizers.host import HostTokenizer
from kerasattn.tokenizers.roformer import RoFormerTokenizer
from kerasattn.tokenizers.sentencepiece import SentencePieceTokenizer
from kerasattn.tokenizers.wordpiece import WordPieceTokenizer

__all__ = [
    "SPECIAL_TOKENS",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "HostTokenizer",
    "RoFormerTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "WordPieceTokenizer",
    "elmo_characters",
    "from_pretrained",
]
