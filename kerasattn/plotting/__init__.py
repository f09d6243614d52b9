"""Pictures: functions that return a matplotlib figure."""

from kerasattn.plotting.attention import attention_step
from kerasattn.plotting.latents import latent_map, similarity
from kerasattn.plotting.masks import mask_grid
from kerasattn.plotting.training import training_curves

__all__ = ["attention_step", "latent_map", "mask_grid", "similarity", "training_curves"]
