"""bert4keras' names, for scripts that come from it.

What stands in bert4keras' `backend`, `layers`, `models`, `optimizers`, `snippets` and `tokenizers`
stands in modules of these names here; the most common of it is in this package too.
"""

from kerasattn.compat.bert4keras import (
    backend,
    layers,
    models,
    optimizers,
    snippets,
    tokenizers,
)
from kerasattn.compat.bert4keras.backend import set_gelu
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
from kerasattn.compat.bert4keras.models import build_transformer_model
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
    "backend",
    "build_transformer_model",
    "layers",
    "load_vocab",
    "models",
    "multilabel_categorical_crossentropy",
    "optimizers",
    "sequence_padding",
    "set_gelu",
    "snippets",
    "sparse_multilabel_categorical_crossentropy",
    "text_segmentate",
    "tokenizers",
    "truncate_sequences",
]
