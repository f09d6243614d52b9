"""What bert4keras keeps in its backend: `keras`, `K`, the form of GELU, functions of tensors.

They have modules of their own, and are here for scripts that look for them here; `tf` too, which is
imported when it is asked for.
"""

import keras

from kerasattn.compat.bert4keras import keras_functions as K
from kerasattn.compat.bert4keras.losses import (
    multilabel_categorical_crossentropy,
    sparse_multilabel_categorical_crossentropy,
)
from kerasattn.compat.bert4keras.masking import sequence_masking
from kerasattn.compat.bert4keras.rotation import apply_rotary_position_embeddings
from kerasattn.compat.bert4keras.tensors import (
    align,
    attention_normalize,
    batch_gather,
    gelu_erf,
    gelu_tanh,
    leaky_relu,
    piecewise_linear,
    recompute_grad,
    root_mean_square,
    sinusoidal_embeddings,
    swish,
)
from kerasattn.ops import activations

__all__ = [
    "K",
    "align",
    "apply_rotary_position_embeddings",
    "attention_normalize",
    "batch_gather",
    "gelu_erf",
    "gelu_tanh",
    "get_activation",
    "keras",
    "leaky_relu",
    "multilabel_categorical_crossentropy",
    "piecewise_linear",
    "recompute_grad",
    "root_mean_square",
    "search_layer",
    "sequence_masking",
    "set_gelu",
    "sinusoidal_embeddings",
    "sparse_multilabel_categorical_crossentropy",
    "swish",
]

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


def __getattr__(name):
    if name == "tf":
        import tensorflow

        return tensorflow
    raise AttributeError(f"bert4keras' backend has no {name!r} here.")


def search_layer(inputs, name, exclude_from=None):
    """The layer of a name among those that lead to a symbolic tensor, also inside of models.

    Args:
        inputs: a symbolic tensor, or a layer.
        name: str.
        exclude_from: set of layers that are not gone through, or None.

    Returns:
        the layer, or None if there is none.

    Example:
    >>> import keras
    >>> from kerasattn.compat.bert4keras.backend import search_layer
    >>> x = keras.layers.Dense(3, name="first")(keras.Input((2,)))
    >>> search_layer(keras.layers.Dense(1)(x), "first").units
    3
    """
    found = isinstance(inputs, keras.layers.Layer)
    waiting = [inputs if found else inputs._keras_history.operation]
    seen = {id(layer) for layer in exclude_from or ()}
    while waiting:
        layer = waiting.pop()
        if layer.name == name:
            return layer
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        if isinstance(layer, keras.Model):
            waiting += layer.layers
        waiting += [node.operation for past in layer._inbound_nodes for node in past.parent_nodes]
    return None
