"""Activation names: one small table over `keras.activations`.

"gelu" is the exact form, x·Φ(x) with the error function. The tanh approximation of GPT-2 and T5 1.1
goes by its own names. Every other name means what it means to Keras.
"""

import keras


@keras.saving.register_keras_serializable(package="kerasattn")
def gelu(x):
    """x·Φ(x), with the error function. Source: https://arxiv.org/abs/1606.08415, section 2."""
    return keras.ops.gelu(x, approximate=False)


@keras.saving.register_keras_serializable(package="kerasattn")
def gelu_tanh(x):
    """The tanh approximation of GELU. Source: https://arxiv.org/abs/1606.08415, section 2."""
    return keras.ops.gelu(x, approximate=True)


NAMES = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
}


def get(activation):
    """Returns the function that a name, a callable, a Keras config or None (identity) stands for.

    Raises:
        ValueError: if the name is unknown.

    Example:

    >>> from kerasattn.ops import activations
    >>> activations.get("gelu_new").__name__
    'gelu_tanh'
    """
    if isinstance(activation, str) and activation in NAMES:
        return NAMES[activation]
    try:
        return keras.activations.get(activation)
    except ValueError as error:
        raise ValueError(
            f"Unknown activation {activation!r}: give one of {sorted(NAMES)}, a name that "
            "keras.activations.get knows, or a callable."
        ) from error


def serialize(activation):
    """Returns what `get` turns back into the function: a name where it has one, else a config."""
    for name, function in NAMES.items():
        if activation is function:
            return name
    return keras.activations.serialize(activation)
