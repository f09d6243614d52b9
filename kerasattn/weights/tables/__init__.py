"""The tables themselves, one file a family: names of tensors and sizes, no Python classes."""

from kerasattn.weights.tables import bert, roformer, univae

__all__ = ["bert", "roformer", "univae"]
