"""Models, one a file, each read from top to bottom."""

from kerasattn.models.loading import load_model
from kerasattn.models.registry import MODELS
from kerasattn.models.roformer import RoFormer
from kerasattn.models.univae import UniVAE

__all__ = ["MODELS", "RoFormer", "UniVAE", "load_model"]
