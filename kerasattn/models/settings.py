"""What the arguments of every model's constructor may be, by their names."""

import math
import numbers
import re

SIZE = re.compile(r"num_\w+|group_blocks|max_\w+|memory_length|\w+_(dim|size)")  # at least 1
MAY_BE_0 = ("memory_length", "max_distance")
NEEDED = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim")
NEEDED += ("max_length",)


def check_settings(config):
    """Refuses numbers that no model can be built of: of the wrong type, or out of range.

    Args:
        config: dict of the arguments of a model's constructor. None is a default, and passes where
            there is one.

    Raises:
        ValueError: naming the argument.

    Example:
    >>> from kerasattn.models.settings import check_settings
    >>> check_settings({"num_layers": 2.0})
    Traceback (most recent call last):
    ValueError: num_layers must be an int of at least 1, got 2.0.
    """
    for name, value in config.items():
        if value is None and name not in NEEDED:
            continue
        if SIZE.fullmatch(name):
            least = 0 if name in MAY_BE_0 else 1
            check_whole(name, value, least)
        elif name.endswith("_epsilon") or name.startswith("initializer_"):
            if not (_is_number(value) and 0 < value < math.inf):
                raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")
        elif name.endswith(("dropout", "noise")) and not (_is_number(value) and 0 <= value < 1):
            raise ValueError(f"{name} must be in [0, 1), got {value!r}.")
        elif name == "seed" and not _is_whole(value):
            raise ValueError(f"seed must be an int or None, got {value!r}.")


def check_whole(name, value, least=0):
    """Refuses a value that is no int of at least so much.

    Example:
    >>> from kerasattn.models.settings import check_whole
    >>> check_whole("steps", 1, least=2)
    Traceback (most recent call last):
    ValueError: steps must be an int of at least 2, got 1.
    """
    if not _is_whole(value) or value < least:
        raise ValueError(f"{name} must be an int of at least {least}, got {value!r}.")


def _is_whole(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
