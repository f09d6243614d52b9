"""The families by name."""

from kerasattn.models.roformer import RoFormer
from kerasattn.models.univae import UniVAE

MODELS = {
    "roformer": RoFormer,
    "univae": UniVAE,
}
