"""Losses, metrics, schedules, callbacks, checkpoints and evaluation, for training."""

from kerasattn.training import adapters, evaluation, losses, metrics
from kerasattn.training.callbacks import AnnealWeight, CodeUsage, StepCallback
from kerasattn.training.checkpoint import (
    ResumableCheckpoint,
    restore_checkpoint,
    save_checkpoint,
)
from kerasattn.training.crf_loss import CRFLoss
from kerasattn.training.margin_loss import MarginLoss
from kerasattn.training.memory import keep_memory
from kerasattn.training.metrics import Perplexity
from kerasattn.training.ngram import CharacterNGram
from kerasattn.training.piecewise_linear import PiecewiseLinear
from kerasattn.training.progress import Progress
from kerasattn.training.schedules import InverseSquareRoot, WarmupCosine
from kerasattn.training.text_metrics import TextMetrics

__all__ = [
    "AnnealWeight",
    "CRFLoss",
    "CharacterNGram",
    "CodeUsage",
    "InverseSquareRoot",
    "MarginLoss",
    "Perplexity",
    "PiecewiseLinear",
    "Progress",
    "ResumableCheckpoint",
    "StepCallback",
    "TextMetrics",
    "WarmupCosine",
    "adapters",
    "evaluation",
    "keep_memory",
    "losses",
    "metrics",
    "restore_checkpoint",
    "save_checkpoint",
]
