"""What stands on an encoder: a layer for each kind of question, usable on any of them."""

from kerasattn.heads.classification import Classification, Span, TokenDetection
from kerasattn.heads.pooler import Pooler
from kerasattn.heads.sentence_embedding import SentenceEmbedding

__all__ = ["Classification", "Pooler", "SentenceEmbedding", "Span", "TokenDetection"]
