"""bert4keras' helpers: batches, decoding, texts."""

from kerasattn.compat.bert4keras.decoder import AutoRegressiveDecoder
from kerasattn.compat.bert4keras.generator import DataGenerator
from kerasattn.compat.bert4keras.helpers import (
    convert_to_str,
    convert_to_unicode,
    delete_arguments,
    insert_arguments,
    is_one_of,
    is_string,
    longest_common_subsequence,
    longest_common_substring,
    lowercase_and_normalize,
    softmax,
    string_matching,
    strQ2B,
)
from kerasattn.compat.bert4keras.parallel import parallel_apply, parallel_apply_generator
from kerasattn.compat.bert4keras.resizing import orthogonally_resize
from kerasattn.compat.bert4keras.text import (
    open,  # noqa: A004, their name
    sequence_padding,
    text_segmentate,
    to_array,
)
from kerasattn.compat.bert4keras.tokenizer import truncate_sequences
from kerasattn.compat.bert4keras.viterbi import ViterbiDecoder
from kerasattn.compat.bert4keras.web_serving import WebServing

uniout = None  # it printed Chinese in Python 2; Python 3 does so by itself

__all__ = [
    "AutoRegressiveDecoder",
    "DataGenerator",
    "ViterbiDecoder",
    "WebServing",
    "convert_to_str",
    "convert_to_unicode",
    "delete_arguments",
    "insert_arguments",
    "is_one_of",
    "is_string",
    "longest_common_subsequence",
    "longest_common_substring",
    "lowercase_and_normalize",
    "open",
    "orthogonally_resize",
    "parallel_apply",
    "parallel_apply_generator",
    "sequence_padding",
    "softmax",
    "strQ2B",
    "string_matching",
    "text_segmentate",
    "to_array",
    "truncate_sequences",
    "uniout",
]
