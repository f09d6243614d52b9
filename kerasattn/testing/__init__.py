"""What every layer and every model must pass, for ours and for yours."""

from kerasattn.testing.check_layer import check_layer
from kerasattn.testing.check_model import check_model
from kerasattn.testing.one_sequence import OneSequenceUniVAE

__all__ = ["OneSequenceUniVAE", "check_layer", "check_model"]
