"""Pure functions on tensors: no layer, no state."""

from kerasattn.ops import (
    activations,
    attention,
    compiled,
    gaussian,
    masks,
    positions,
    rotary,
    sampling,
    seeds,
    uniformity,
    vmf,
)

__all__ = [
    "activations",
    "attention",
    "compiled",
    "gaussian",
    "masks",
    "positions",
    "rotary",
    "sampling",
    "seeds",
    "uniformity",
    "vmf",
]
