"""bert4keras' names: models from its checkpoints, its conventions, its layer names."""

from kerasattn.compat.bert4keras.backend import set_gelu
from kerasattn.compat.bert4keras.models import build_transformer_model

__all__ = ["build_transformer_model", "set_gelu"]
