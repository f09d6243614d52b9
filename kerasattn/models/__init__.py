"""Models, one a file, each read from top to bottom."""

from kerasattn.models.bert import BERT
from kerasattn.models.loading import from_pretrained, load_model
from kerasattn.models.registry import MODELS
from kerasattn.models.roformer import RoFormer
from kerasattn.models.univae import UniVAE

__all__ = ["BERT", "MODELS", "RoFormer", "UniVAE", "from_pretrained", "load_model"]
