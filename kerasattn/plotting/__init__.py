"""Pictures: functions that return a matplotlib figure."""

from kerasattn.plotting.attention import (
    attention_grid,
    attention_lines,
    attention_map,
    attention_of,
    attention_over_image,
    attention_step,
)
from kerasattn.plotting.latent_text import latent_text_pictures
from kerasattn.plotting.latents import latent_map, similarity
from kerasattn.plotting.lines import line_chart
from kerasattn.plotting.masks import mask_grid
from kerasattn.plotting.memory import hops_grid, steps_grid
from kerasattn.plotting.pictures import picture_grid
from kerasattn.plotting.training import training_curves

__all__ = [
    "attention_grid",
    "attention_lines",
    "attention_map",
    "attention_of",
    "attention_over_image",
    "attention_step",
    "hops_grid",
    "latent_map",
    "latent_text_pictures",
    "line_chart",
    "mask_grid",
    "picture_grid",
    "similarity",
    "steps_grid",
    "training_curves",
]
