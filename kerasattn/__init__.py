"""Attention models for Keras 3, made of parts that can be read, changed and recombined."""

import importlib

# These register their classes, so that Keras can load models that hold them.
from kerasattn import compat, heads, layers, models, tokenizers
from kerasattn.models.loading import from_pretrained

__version__ = "0.1.0"

__all__ = [
    "compat",
    "data",
    "decoding",
    "export",
    "from_pretrained",
    "heads",
    "layers",
    "models",
    "ops",
    "plotting",
    "testing",
    "tokenizers",
    "training",
    "weights",
]


def __getattr__(name):
    # The other subpackages are imported when first used, so that `import kerasattn` stays light.
    if name in __all__:
        return importlib.import_module(f"kerasattn.{name}")
    raise AttributeError(f"module 'kerasattn' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
