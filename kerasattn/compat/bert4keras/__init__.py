"""bert4keras' names, for scripts that come from it.

What stands in bert4keras' `layers`, `snippets`, `tokenizers` and `optimizers` stands in modules of
these names here, and but for the optimizers also in this package.
"""

from kerasattn.compat.bert4keras import layers, optimizers, snippets, tokenizers
from kerasattn.compat.bert4keras.layers import (
    ConditionalRandomField,
    EfficientGlobalPointer,
    GatedAttentionUnit,
    GlobalPointer,
    Loss,
    MaximumEntropyMarkovModel,
    PositionEmbedding,
    RelativePositionEmbedding,
    RelativePositionEmbeddingT5,
    SinusoidalPositionEmbedding,
)
from kerasattn.compat.bert4keras.losses import (
    multilabel_categorical_crossentropy,
    sparse_multilabel_categorical_crossentropy,
)
from kerasattn.compat.bert4keras.snippets import (
    AutoRegressiveDecoder,
    DataGenerator,
    ViterbiDecoder,
    sequence_padding,
    text_segmentate,
    truncate_sequences,
)
from kerasattn.compat.bert4keras.tokenizers import SpTokenizer, Tokenizer, load_vocab

__all__ = [
    "AutoRegressiveDecoder",
    "ConditionalRandomField",
    "DataGenerator",
    "EfficientGlobalPointer",
    "GatedAttentionUnit",
    "GlobalPointer",
    "Loss",
    "MaximumEntropyMarkovModel",
    "PositionEmbedding",
    "RelativePositionEmbedding",
    "RelativePositionEmbeddingT5",
    "SinusoidalPositionEmbedding",
    "SpTokenizer",
    "Tokenizer",
    "ViterbiDecoder",
    "layers",
    "load_vocab",
    "multilabel_categorical_crossentropy",
    "optimizers",
    "sequence_padding",
    "snippets",
    "sparse_multilabel_categorical_crossentropy",
    "text_segmentate",
    "tokenizers",
    "truncate_sequences",
]
