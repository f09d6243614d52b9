"""bert4keras' tokenizers."""

from kerasattn.compat.bert4keras.sp_tokenizer import SpTokenizer
from kerasattn.compat.bert4keras.tokenizer import Tokenizer, load_vocab, save_vocab

__all__ = ["SpTokenizer", "Tokenizer", "load_vocab", "save_vocab"]
