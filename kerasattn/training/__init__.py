"""Losses, metrics, schedules, callbacks, checkpoints and evaluation, for training."""

from kerasattn.training import evaluation, losses, metrics
from kerasattn.training.callbacks import AnnealWeight, CodeUsage, StepCallback
from kerasattn.training.checkpoint import (
    ResumableCheckpoint,
    restore_checkpoint,
    save_checkpoint,
)
from kerasattn.training.metrics import Perplexity
from kerasattn.training.ngram import CharacterNGram
from kerasattn.training.progress import Progress
from kerasattn.training.schedules import WarmupCosine
from kerasattn.training.text_metrics import TextMetrics

__all__ = [
    "AnnealWeight",
    "CharacterNGram",
    "CodeUsage",
    "Perplexity",
    "Progress",
    "ResumableCheckpoint",
    "StepCallback",
    "TextMetrics",
    "WarmupCosine",
    "evaluation",
    "losses",
    "metrics",
    "restore_checkpoint",
    "save_checkpoint",
]
