"""Pure functions on tensors: no layer, no state."""

from kerasattn.ops import (
    activations,
    attention,
    compiled,
    crf,
    gaussian,
    hmm,
    isotropy,
    masks,
    positions,
    relative,
    rotary,
    routing,
    sampling,
    seeds,
    spans,
    vmf,
)

__all__ = [
    "activations",
    "attention",
    "compiled",
    "crf",
    "gaussian",
    "hmm",
    "isotropy",
    "masks",
    "positions",
    "relative",
    "rotary",
    "routing",
    "sampling",
    "seeds",
    "spans",
    "vmf",
]
