"""Losses, metrics, callbacks and checkpoints for training."""

from kerasattn.training.callbacks import AnnealWeight, CodeUsage
from kerasattn.training.checkpoint import ResumableCheckpoint, restore, save

__all__ = ["AnnealWeight", "CodeUsage", "ResumableCheckpoint", "restore", "save"]
