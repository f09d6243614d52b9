"""The families by name."""

from kerasattn.models.albert import ALBERT
from kerasattn.models.bart import BART
from kerasattn.models.bert import BERT
from kerasattn.models.distilbert import DistilBERT
from kerasattn.models.electra import ELECTRA
from kerasattn.models.elmo import ELMo
from kerasattn.models.ernie import ERNIE
from kerasattn.models.gpt2 import GPT2
from kerasattn.models.llama import Llama
from kerasattn.models.mass import MASS
from kerasattn.models.nezha import NEZHA
from kerasattn.models.openai_gpt import OpenAIGPT
from kerasattn.models.roberta import RoBERTa
from kerasattn.models.roformer import RoFormer
from kerasattn.models.roformer_v2 import RoFormerV2
from kerasattn.models.t5 import MT5, T5
from kerasattn.models.t5_encoder import MT5Encoder, T5Encoder
from kerasattn.models.transformer_xl import TransformerXL
from kerasattn.models.univae import UniVAE
from kerasattn.models.xlnet import XLNet

MODELS = {
    "bert": BERT,
    "roberta": RoBERTa,
    "ernie": ERNIE,
    "distilbert": DistilBERT,
    "electra": ELECTRA,
    "albert": ALBERT,
    "nezha": NEZHA,
    "gpt": OpenAIGPT,
    "gpt2": GPT2,
    "llama": Llama,
    "t5": T5,
    "mt5": MT5,
    "t5_encoder": T5Encoder,
    "mt5_encoder": MT5Encoder,
    "bart": BART,
    "mass": MASS,
    "roformer_v2": RoFormerV2,
    "roformer": RoFormer,
    "univae": UniVAE,
    "xlnet": XLNet,
    "transformer_xl": TransformerXL,
    "elmo": ELMo,
}
