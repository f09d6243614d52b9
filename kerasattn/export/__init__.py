"""SavedModels that take and return raw strings."""

from kerasattn.export.generate import export_generate
from kerasattn.export.latent_text import export_latent_text

__all__ = ["export_generate", "export_latent_text"]
