"""What is wrong with a config, the ids of tokens, or a class, said before anything is built."""

import reprlib

import numpy as np

SIZES = (
    "vocab_size",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
    "embedding_size",
    "attention_head_size",
    "attention_key_size",
    "sequence_length",
)


def check_sizes(**settings):
    """Refuses sizes that are no whole numbers from 1 on, rates outside of [0, 1), and the like.

    Args:
        **settings: those of `Transformer`; None is passed over.
    """
    for name in (*SIZES, "num_hidden_layers"):
        value, least = settings.get(name), int(name in SIZES)
        if value is not None and (not is_whole(value) or value < least):
            raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}.")
    for name in ("dropout_rate", "attention_dropout_rate"):
        value = settings.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < 1):
            raise ValueError(f"{name} must be a number in [0, 1), got {value!r}.")
    several = settings["hidden_act"]
    several = several if isinstance(several, list | tuple) else [several]
    if not several or not all(isinstance(a, str) or callable(a) for a in several):
        raise ValueError(
            "hidden_act must be a name or a function, or a list of them, got "
            f"{settings['hidden_act']!r}."
        )


def is_whole(value):
    """Whether something is an int, of numpy too, and no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_kept(keep_tokens):
    """Refuses what is no list of ids."""
    if not _are_ids(keep_tokens):
        raise ValueError(f"keep_tokens takes a list of ids, got {reprlib.repr(keep_tokens)}.")


def check_compound(compound_tokens):
    """Refuses what is no list of lists of ids, or of pairs of ids and as many weights."""
    if not isinstance(compound_tokens, list | tuple | np.ndarray):
        raise ValueError(f"compound_tokens takes a list of lists of ids, got {compound_tokens!r}.")
    for item in compound_tokens:
        ids, weights = ids_and_weights(item)
        good = _are_ids(ids)
        if good and weights is not None:
            good = np.shape(weights) == np.shape(ids) and np.sum(weights) != 0
        if not good:
            raise ValueError(
                "compound_tokens takes lists of ids, or pairs of such a list and as many weights "
                f"whose sum is not 0, got {item!r}."
            )


def ids_and_weights(item):
    """A compound token as ids and their weights, None if it has none."""
    sized = isinstance(item, list | tuple)
    weighted = sized and len(item) == 2 and not np.isscalar(item[0])
    return item if weighted else (item, None)


def _are_ids(ids):
    if not isinstance(ids, list | tuple | range | np.ndarray) or not len(ids):
        return False
    return all(np.ndim(i) == 0 and is_whole(i) and i >= 0 for i in ids)


def check_below(what, ids, count):
    """Refuses ids of rows that are not there."""
    if max(ids) >= count:
        raise ValueError(f"{what} takes ids from 0 to {count - 1}, got {max(ids)}.")
