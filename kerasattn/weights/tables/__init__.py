"""The tables themselves, one file a family: names of tensors and sizes, no Python classes."""

from kerasattn.weights.tables import (
    albert,
    bert,
    distilbert,
    electra,
    ernie,
    gpt2,
    nezha,
    openai_gpt,
    roberta,
    roformer,
    univae,
)

__all__ = [
    "albert",
    "bert",
    "distilbert",
    "electra",
    "ernie",
    "gpt2",
    "nezha",
    "openai_gpt",
    "roberta",
    "roformer",
    "univae",
]
