"""Models, one a file, each read from top to bottom."""

from kerasattn.models.univae import UniVAE

__all__ = ["UniVAE"]
