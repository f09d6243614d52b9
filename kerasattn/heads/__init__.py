"""What stands on an encoder: a layer for each kind of question, usable on any of them."""

from kerasattn.heads.classification import Classification, Span, TokenDetection
from kerasattn.heads.pooler import LastToken, Pooler

__all__ = ["Classification", "LastToken", "Pooler", "Span", "TokenDetection"]
