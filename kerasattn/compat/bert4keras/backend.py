"""What bert4keras keeps in its backend: which form of GELU "gelu" means."""

from kerasattn.ops import activations

GELUS = {"erf": "gelu", "tanh": "gelu_tanh"}
_gelu = "gelu"


def set_gelu(version):
    """Says which form "gelu" has in bert4keras' models that are built from now on.

    Models that exist already, and all other models here, stay as they are. One model alone gets
    the tanh form by `build_transformer_model(..., hidden_act="gelu_tanh")`.

    Args:
        version: "erf", which is the default, or "tanh".

    Raises:
        ValueError: for another version.

    Example:
    >>> from kerasattn.compat.bert4keras import set_gelu
    >>> set_gelu("erf")
    """
    global _gelu
    if str(version).lower() not in GELUS:
        raise ValueError(f"The version of gelu is one of {list(GELUS)}, got {version!r}.")
    _gelu = GELUS[str(version).lower()]


def get_activation(activation):
    """The function that a name stands for now; see `set_gelu`."""
    return activations.get(_gelu if activation == "gelu" else activation)
