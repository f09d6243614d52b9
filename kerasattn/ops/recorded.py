"""Attention weights kept while a model runs, for those who want to look at them."""

import contextlib
import contextvars

_kept = contextvars.ContextVar("kerasattn_recorded", default=None)


@contextlib.contextmanager
def recording():
    """A context in which every `dot_product_attention` adds its weights to a list, in their order.

    The model must run eagerly there, as `model(inputs)` does: compiled functions have no numbers to
    keep.

    Example:
    >>> from kerasattn.models import BERT
    >>> from kerasattn.ops.recorded import recording
    >>> bert = BERT(30, num_layers=2, num_heads=4, hidden_dim=16, intermediate_dim=32)
    >>> with recording() as kept:
    ...     outputs = bert([[2, 7, 8, 3]])
    >>> len(kept), tuple(kept[0].shape)  # (batch, heads, query, key)
    (2, (1, 4, 4, 4))
    """
    kept = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


def record(weights):
    """Keeps weights (batch, heads, query, key), if anybody asked for them."""
    kept = _kept.get()
    if kept is not None:
        kept.append(weights)
