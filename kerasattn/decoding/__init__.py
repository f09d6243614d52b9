"""Generation: strategies over any step function, in one compiled loop."""

from kerasattn.decoding.decoder import Decoder, StepFunction
from kerasattn.decoding.generate import Generated, draw_uniforms, generate, make_request
from kerasattn.decoding.strategies import Beam, Greedy, Sampling

__all__ = [
    "Beam",
    "Decoder",
    "Generated",
    "Greedy",
    "Sampling",
    "StepFunction",
    "draw_uniforms",
    "generate",
    "make_request",
]
