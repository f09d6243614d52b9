"""Models, one a file, each read from top to bottom."""

from kerasattn.models.albert import ALBERT
from kerasattn.models.aoa_reader import AoAReader
from kerasattn.models.bahdanau import Bahdanau
from kerasattn.models.bart import BART
from kerasattn.models.bert import BERT
from kerasattn.models.bidaf import BiDAF
from kerasattn.models.bilstm_crf import BiLSTMCRF
from kerasattn.models.capsnet import CapsNet
from kerasattn.models.categorical_hmm import CategoricalHMM
from kerasattn.models.conv_s2s import ConvS2S
from kerasattn.models.cove import CoVe
from kerasattn.models.distilbert import DistilBERT
from kerasattn.models.electra import ELECTRA
from kerasattn.models.elmo import ELMo
from kerasattn.models.ernie import ERNIE
from kerasattn.models.gaussian_hmm import GaussianHMM
from kerasattn.models.gpt2 import GPT2
from kerasattn.models.han import HAN
from kerasattn.models.hopfield_network import HopfieldNetwork
from kerasattn.models.lattice_lstm import LatticeLSTMCRF
from kerasattn.models.llama import Llama
from kerasattn.models.loading import from_pretrained, load_model
from kerasattn.models.luong import Luong
from kerasattn.models.mass import MASS
from kerasattn.models.memory_network import MemoryNetwork
from kerasattn.models.neural_turing_machine import NeuralTuringMachine
from kerasattn.models.nezha import NEZHA
from kerasattn.models.openai_gpt import OpenAIGPT
from kerasattn.models.registry import MODELS
from kerasattn.models.rnn_classifier import RNNClassifier
from kerasattn.models.rnn_encoder_decoder import RNNEncoderDecoder
from kerasattn.models.rnn_reader import RNNReader
from kerasattn.models.roberta import RoBERTa
from kerasattn.models.roformer import RoFormer
from kerasattn.models.roformer_v2 import RoFormerV2
from kerasattn.models.sentences import sentence_encoder
from kerasattn.models.show_and_tell import ShowAndTell
from kerasattn.models.show_attend_tell import ShowAttendTell
from kerasattn.models.sutskever import Sutskever
from kerasattn.models.t5 import MT5, T5
from kerasattn.models.t5_encoder import MT5Encoder, T5Encoder
from kerasattn.models.tagger import Tagger
from kerasattn.models.transformer import Transformer
from kerasattn.models.transformer_crf import TransformerCRF
from kerasattn.models.transformer_xl import TransformerXL
from kerasattn.models.univae import UniVAE
from kerasattn.models.xlnet import XLNet

__all__ = [
    "ALBERT",
    "BART",
    "BERT",
    "ELECTRA",
    "ERNIE",
    "GPT2",
    "HAN",
    "MASS",
    "MODELS",
    "MT5",
    "NEZHA",
    "T5",
    "AoAReader",
    "Bahdanau",
    "BiDAF",
    "BiLSTMCRF",
    "CapsNet",
    "CategoricalHMM",
    "CoVe",
    "ConvS2S",
    "DistilBERT",
    "ELMo",
    "GaussianHMM",
    "HopfieldNetwork",
    "LatticeLSTMCRF",
    "Llama",
    "Luong",
    "MT5Encoder",
    "MemoryNetwork",
    "NeuralTuringMachine",
    "OpenAIGPT",
    "RNNClassifier",
    "RNNEncoderDecoder",
    "RNNReader",
    "RoBERTa",
    "RoFormer",
    "RoFormerV2",
    "ShowAndTell",
    "ShowAttendTell",
    "Sutskever",
    "T5Encoder",
    "Tagger",
    "Transformer",
    "TransformerCRF",
    "TransformerXL",
    "UniVAE",
    "XLNet",
    "from_pretrained",
    "load_model",
    "sentence_encoder",
]
