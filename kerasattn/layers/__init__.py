"""Keras layers, one concept a file."""

from kerasattn.layers.adaptive_embedding import AdaptiveEmbedding, AdaptiveSoftmax
from kerasattn.layers.attending_lstm import AttendingLSTM
from kerasattn.layers.attention_mask import AttentionMask
from kerasattn.layers.attention_over_attention import AttentionOverAttention
from kerasattn.layers.attention_pooling import AttentionPooling
from kerasattn.layers.bag_of_words import BagOfWords, WordScores
from kerasattn.layers.bidirectional_associative_memory import BidirectionalAssociativeMemory
from kerasattn.layers.bidirectional_attention_flow import BidirectionalAttentionFlow
from kerasattn.layers.binary_hopfield import BinaryHopfield
from kerasattn.layers.bottleneck_adapter import BottleneckAdapter
from kerasattn.layers.capsule_length import CapsuleLength
from kerasattn.layers.capsule_mask import CapsuleMask
from kerasattn.layers.categorical_emissions import CategoricalEmissions
from kerasattn.layers.character_convolution import CharacterConvolution
from kerasattn.layers.character_filters import CharacterFilters
from kerasattn.layers.crf import CRF
from kerasattn.layers.crf_decode import CRFDecode
from kerasattn.layers.doubly_stochastic import DoublyStochastic
from kerasattn.layers.efficient_global_pointer import EfficientGlobalPointer
from kerasattn.layers.feature_scores import FeatureScores
from kerasattn.layers.feed_forward import FeedForward
from kerasattn.layers.gated_attention_unit import GatedAttentionUnit
from kerasattn.layers.gated_convolution import GatedConvolution
from kerasattn.layers.gaussian_emissions import GaussianEmissions
from kerasattn.layers.gaussian_sampling import GaussianSampling
from kerasattn.layers.global_pointer import GlobalPointer
from kerasattn.layers.hard_attention import HardAttention
from kerasattn.layers.hidden_markov_chain import HiddenMarkovChain
from kerasattn.layers.highway import Highway
from kerasattn.layers.isotropy_regularization import IsotropyRegularization
from kerasattn.layers.language_model_head import LanguageModelHead
from kerasattn.layers.lattice_lstm import LatticeLSTM
from kerasattn.layers.learned_position_embedding import LearnedPositionEmbedding
from kerasattn.layers.local_attention import LocalAttention
from kerasattn.layers.maximum_entropy_markov_model import MaximumEntropyMarkovModel
from kerasattn.layers.maxout import Maxout
from kerasattn.layers.memories import Memories, MemoryMask, NextMemories
from kerasattn.layers.memory_hop import MemoryHop
from kerasattn.layers.modern_hopfield import ModernHopfield
from kerasattn.layers.multi_head_attention import MultiHeadAttention
from kerasattn.layers.multi_step_attention import MultiStepAttention
from kerasattn.layers.ntm_cell import NTMCell
from kerasattn.layers.padding_mask import PaddingMask
from kerasattn.layers.peephole_lstm_cell import PeepholeLSTMCell
from kerasattn.layers.plain_rms_normalization import PlainRMSNormalization
from kerasattn.layers.position_ids import PositionIds
from kerasattn.layers.primary_capsules import PrimaryCapsules
from kerasattn.layers.projected_lstm_cell import ProjectedLSTMCell
from kerasattn.layers.recurrent_decoder import RecurrentDecoder
from kerasattn.layers.reinforce_loss import ReinforceLoss
from kerasattn.layers.relative_attention import QueryBiases, RelativeAttention
from kerasattn.layers.relative_block import RelativeTransformerBlock
from kerasattn.layers.relative_position_bias import RelativePositionBias
from kerasattn.layers.relative_position_embedding import RelativePositionEmbedding
from kerasattn.layers.relative_sinusoids import RelativeSinusoids
from kerasattn.layers.rotary_embedding import RotaryEmbedding
from kerasattn.layers.routing_capsules import RoutingCapsules
from kerasattn.layers.scalar_mix import ScalarMix
from kerasattn.layers.segment_ids import SegmentIds
from kerasattn.layers.sentence_wise import SentenceWise
from kerasattn.layers.sinusoidal_position_encoding import SinusoidalPositionEncoding
from kerasattn.layers.soft_attention import SoftAttention
from kerasattn.layers.swap_noise import SwapNoise
from kerasattn.layers.time_ids import TimeIds
from kerasattn.layers.token_embedding import TokenEmbedding
from kerasattn.layers.transformer_block import TransformerBlock
from kerasattn.layers.two_streams import QueryStream, SameSegment, ToldStream, TwoStreamMasks
from kerasattn.layers.vector_quantizer import VectorQuantizer
from kerasattn.layers.von_mises_fisher_sampling import VonMisesFisherSampling
from kerasattn.layers.window_attention import WindowAttention
from kerasattn.layers.word_dropout import WordDropout

__all__ = [
    "CRF",
    "AdaptiveEmbedding",
    "AdaptiveSoftmax",
    "AttendingLSTM",
    "AttentionMask",
    "AttentionOverAttention",
    "AttentionPooling",
    "BagOfWords",
    "BidirectionalAssociativeMemory",
    "BidirectionalAttentionFlow",
    "BinaryHopfield",
    "BottleneckAdapter",
    "CRFDecode",
    "CapsuleLength",
    "CapsuleMask",
    "CategoricalEmissions",
    "CharacterConvolution",
    "CharacterFilters",
    "DoublyStochastic",
    "EfficientGlobalPointer",
    "FeatureScores",
    "FeedForward",
    "GatedAttentionUnit",
    "GatedConvolution",
    "GaussianEmissions",
    "GaussianSampling",
    "GlobalPointer",
    "HardAttention",
    "HiddenMarkovChain",
    "Highway",
    "IsotropyRegularization",
    "LanguageModelHead",
    "LatticeLSTM",
    "LearnedPositionEmbedding",
    "LocalAttention",
    "MaximumEntropyMarkovModel",
    "Maxout",
    "Memories",
    "MemoryHop",
    "MemoryMask",
    "ModernHopfield",
    "MultiHeadAttention",
    "MultiStepAttention",
    "NTMCell",
    "NextMemories",
    "PaddingMask",
    "PeepholeLSTMCell",
    "PlainRMSNormalization",
    "PositionIds",
    "PrimaryCapsules",
    "ProjectedLSTMCell",
    "QueryBiases",
    "QueryStream",
    "RecurrentDecoder",
    "ReinforceLoss",
    "RelativeAttention",
    "RelativePositionBias",
    "RelativePositionEmbedding",
    "RelativeSinusoids",
    "RelativeTransformerBlock",
    "RotaryEmbedding",
    "RoutingCapsules",
    "SameSegment",
    "ScalarMix",
    "SegmentIds",
    "SentenceWise",
    "SinusoidalPositionEncoding",
    "SoftAttention",
    "SwapNoise",
    "TimeIds",
    "TokenEmbedding",
    "ToldStream",
    "TransformerBlock",
    "TwoStreamMasks",
    "VectorQuantizer",
    "VonMisesFisherSampling",
    "WindowAttention",
    "WordDropout",
    "WordScores",
]
