"""Weights made ready once, before a loop that reads them at every step."""

import contextlib
import contextvars

_ready = contextvars.ContextVar("kerasattn_prepared", default=None)


@contextlib.contextmanager
def preparing(layers):
    """A context in which `prepared(layer)` is what `layer.prepare()` gave at its beginning.

    What is made ready takes as much memory again as the weights that it is made of.

    Args:
        layers: iterable of layers, of which those without `prepare`, or not built, are left out.

    Example:
    >>> from kerasattn import layers
    >>> from kerasattn.ops.prepared import prepared, preparing
    >>> table = layers.TokenEmbedding(vocabulary_size=10, hidden_dim=4)
    >>> table.build()
    >>> with preparing([table]):
    ...     print(tuple(prepared(table).shape), prepared(table) is prepared(table))
    (4, 10) True
    """
    able = [layer for layer in layers if layer.built and hasattr(layer, "prepare")]
    ready = {id(layer): layer.prepare() for layer in able}
    token = _ready.set(ready)
    try:
        yield
    finally:
        _ready.reset(token)


def prepared(layer):
    """What `layer.prepare()` gave, None outside of `preparing`."""
    return (_ready.get() or {}).get(id(layer))
