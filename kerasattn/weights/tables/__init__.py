"""The tables themselves, one file a family: names of tensors and sizes, no Python classes."""

from kerasattn.weights.tables import (
    albert,
    bart,
    bert,
    distilbert,
    electra,
    ernie,
    gpt2,
    llama,
    nezha,
    openai_gpt,
    roberta,
    roformer,
    t5,
    transformer_xl,
    univae,
    xlnet,
)

__all__ = [
    "albert",
    "bart",
    "bert",
    "distilbert",
    "electra",
    "ernie",
    "gpt2",
    "llama",
    "nezha",
    "openai_gpt",
    "roberta",
    "roformer",
    "t5",
    "transformer_xl",
    "univae",
    "xlnet",
]
