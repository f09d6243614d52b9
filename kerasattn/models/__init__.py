"""Models, one a file, each read from top to bottom."""

from kerasattn.models.bert import BERT
from kerasattn.models.gpt2 import GPT2
from kerasattn.models.loading import from_pretrained, load_model
from kerasattn.models.openai_gpt import OpenAIGPT
from kerasattn.models.registry import MODELS
from kerasattn.models.roformer import RoFormer
from kerasattn.models.univae import UniVAE

__all__ = [
    "BERT",
    "GPT2",
    "MODELS",
    "OpenAIGPT",
    "RoFormer",
    "UniVAE",
    "from_pretrained",
    "load_model",
]
