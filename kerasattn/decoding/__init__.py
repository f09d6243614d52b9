"""Generation: strategies over any step function, in one compiled loop."""

from kerasattn.decoding.attention import attention_weights
from kerasattn.decoding.decoder import Decoder, StepFunction
from kerasattn.decoding.generate import Generated, draw_uniforms, generate, make_request
from kerasattn.decoding.processors import (
    AllowedTokens,
    NoRepeatNgram,
    Processor,
    RepetitionPenalty,
)
from kerasattn.decoding.score import score
from kerasattn.decoding.strategies import Beam, Contrastive, Exhaustive, Greedy, Sampling

__all__ = [
    "AllowedTokens",
    "Beam",
    "Contrastive",
    "Decoder",
    "Exhaustive",
    "Generated",
    "Greedy",
    "NoRepeatNgram",
    "Processor",
    "RepetitionPenalty",
    "Sampling",
    "StepFunction",
    "attention_weights",
    "draw_uniforms",
    "generate",
    "make_request",
    "score",
]
