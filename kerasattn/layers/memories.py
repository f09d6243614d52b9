"""Memories: the hidden vectors of earlier segments, one layer below another."""

import keras
from keras import ops

from kerasattn.ops import masks


@keras.saving.register_keras_serializable(package="kerasattn")
class Memories(keras.layers.Layer):
    """The memories that were given, or else zeros.

    Args:
        num_layers: int.
        length: int >= 0, how many zeros stand for a memory that was not given.

    Shapes:
        x (batch, length, dim) and optionally memories (batch, num_layers, memory, dim)
        -> (batch, num_layers, memory, dim).

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> tuple(layers.Memories(num_layers=3, length=4)(np.ones((2, 5, 8), "float32")).shape)
    (2, 3, 4, 8)

    Source: https://arxiv.org/abs/1901.02860, section 3.2.
    """

    def __init__(self, num_layers, length=0, **kwargs):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.length = length

    def call(self, x, memories=None):
        if memories is not None:
            return memories
        shape = (ops.shape(x)[0], self.num_layers, self.length, x.shape[-1])
        return ops.zeros(shape, x.dtype)

    def compute_output_spec(self, x, memories=None):
        shape = (x.shape[0], self.num_layers, None, x.shape[-1])
        return keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "num_layers": self.num_layers, "length": self.length}


@keras.saving.register_keras_serializable(package="kerasattn")
class NextMemories(keras.layers.Layer):
    """What the next segment remembers: the last hidden vectors of each layer, without gradients.

    Args:
        length: int >= 0, how many are kept; None keeps all. Where not all are kept, padding is
            forgotten first.

    Call arguments:
        memories: (batch, layers, memory, dim).
        hidden: list of (batch, length, dim), what each layer read.
        padding_mask: bool (batch, length), True = real token.

    Returns:
        (batch, layers, memory, dim).

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> memories, x = np.zeros((2, 1, 4, 8), "float32"), np.ones((2, 3, 8), "float32")
    >>> kept = layers.NextMemories(length=4)(memories, [x], np.ones((2, 3), bool))
    >>> print(np.array(kept)[0, 0, :, 0])
    [0. 1. 1. 1.]

    Source: https://arxiv.org/abs/1901.02860, section 3.2.
    """

    def __init__(self, length=None, **kwargs):
        super().__init__(**kwargs)
        self.length = length

    def call(self, memories, hidden, padding_mask):
        hidden = ops.stack(list(hidden), axis=1)  # (batch, layers, length, dim)
        kept = ops.concatenate([ops.cast(memories, hidden.dtype), hidden], axis=2)
        if self.length is not None:
            unreal = 1 - ops.cast(padding_mask, "int32")
            unreal = ops.pad(unreal, [[0, 0], [ops.shape(memories)[2], 0]])
            # In order, the padding first.
            order = ops.argsort(masks.positions(unreal) - unreal * ops.shape(unreal)[1], axis=1)
            last = order[:, -self.length :] if self.length else order[:, :0]
            kept = ops.take_along_axis(kept, last[:, None, :, None], axis=2)
        return ops.stop_gradient(kept)

    def compute_output_spec(self, memories, hidden, padding_mask):
        return keras.KerasTensor(memories.shape, self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "length": self.length}


@keras.saving.register_keras_serializable(package="kerasattn")
class MemoryMask(keras.layers.Layer):
    """A mask of a sequence, with the memory before it, which every query sees.

    Args:
        span: int >= 1 or None: every query sees itself and at most span - 1 keys before it, the
            memory's among them; as Transformer-XL's `same_length` has it.

    Call arguments:
        mask: bool (batch, 1, 1 or length, length), True = may attend.
        memories: (batch, layers, memory, dim), of which only the shape is read.
        memory_mask: bool (batch, memory) or None, True = real token.

    Returns:
        bool (batch, 1, length, memory + length).

    Example: a memory of 2 tokens and a span of 2.
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> from kerasattn.ops import masks
    >>> mask, memories = masks.causal(np.ones((1, 2))), np.ones((1, 1, 2, 8))
    >>> print(np.array(layers.MemoryMask(span=2)(mask, memories))[0, 0].astype(int))
    [[0 1 1 0]
     [0 0 1 1]]

    Source: https://arxiv.org/abs/1901.02860, sections 3.2 and 4.1.
    """

    def __init__(self, span=None, **kwargs):
        super().__init__(**kwargs)
        if span is not None and span < 1:
            raise ValueError(f"span must be at least 1 or None, got {span}.")
        self.span = span

    def call(self, mask, memories, memory_mask=None):
        batch, length = ops.shape(mask)[0], ops.shape(mask)[3]
        if memory_mask is None:
            memory_mask = ops.ones((batch, ops.shape(memories)[2]), "bool")
        shape = (batch, 1, length, ops.shape(memory_mask)[1])
        before = ops.broadcast_to(masks.keys(memory_mask), shape)
        mask = ops.broadcast_to(mask, (batch, 1, length, length))
        whole = ops.concatenate([before, mask], axis=3)
        if self.span is not None:
            whole = whole & masks.recent(mask[:, 0, 0], whole[:, 0, 0], self.span)
        return whole

    def compute_output_spec(self, mask, memories, memory_mask=None):
        return keras.KerasTensor((mask.shape[0], 1, mask.shape[3], None), "bool")

    def get_config(self):
        return {**super().get_config(), "span": self.span}
