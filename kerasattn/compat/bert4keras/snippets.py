"""bert4keras' helpers: batches, decoding, texts."""

from kerasattn.compat.bert4keras.decoder import AutoRegressiveDecoder
from kerasattn.compat.bert4keras.generator import DataGenerator
from kerasattn.compat.bert4keras.text import (
    open,  # noqa: A004, their name
    sequence_padding,
    text_segmentate,
    to_array,
)
from kerasattn.compat.bert4keras.tokenizer import truncate_sequences
from kerasattn.compat.bert4keras.viterbi import ViterbiDecoder

__all__ = [
    "AutoRegressiveDecoder",
    "DataGenerator",
    "ViterbiDecoder",
    "open",
    "sequence_padding",
    "text_segmentate",
    "to_array",
    "truncate_sequences",
]
