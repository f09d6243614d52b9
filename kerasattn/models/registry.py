"""The families by name."""

from kerasattn.models.bert import BERT
from kerasattn.models.gpt2 import GPT2
from kerasattn.models.openai_gpt import OpenAIGPT
from kerasattn.models.roformer import RoFormer
from kerasattn.models.univae import UniVAE

MODELS = {
    "bert": BERT,
    "gpt": OpenAIGPT,
    "gpt2": GPT2,
    "roformer": RoFormer,
    "univae": UniVAE,
}
