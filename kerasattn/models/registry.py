"""The families by name."""

from kerasattn.models.bert import BERT
from kerasattn.models.roformer import RoFormer
from kerasattn.models.univae import UniVAE

MODELS = {
    "bert": BERT,
    "roformer": RoFormer,
    "univae": UniVAE,
}
