"""The tables themselves, one file a family: names of tensors and sizes, no Python classes."""

from kerasattn.weights.tables import bert, gpt2, openai_gpt, roformer, univae

__all__ = ["bert", "gpt2", "openai_gpt", "roformer", "univae"]
