"""Losses, metrics, callbacks and checkpoints for training."""

from kerasattn.training.checkpoint import ResumableCheckpoint, restore, save

__all__ = ["ResumableCheckpoint", "restore", "save"]
