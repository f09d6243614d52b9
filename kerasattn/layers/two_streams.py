"""What XLNet's two streams need: masks of both, where the second begins, and which one tells."""

import keras
from keras import ops

from kerasattn.ops import masks


@keras.saving.register_keras_serializable(package="kerasattn")
class TwoStreamMasks(keras.layers.Layer):
    """The masks of the content stream, whose tokens see themselves, and of the query stream.

    Call arguments:
        mask: bool (batch, 1, 1 or length, length), True = may attend.
        permutation_mask: bool (batch, length, length) or None, True = may attend; of permuted
            language modeling: a token sees those before it in an order of their own, and must not
            see itself where it is told.

    Returns:
        a pair of bool (batch, 1, length, length).

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> from kerasattn.ops import masks
    >>> order = masks.permutation(np.array([[2, 0, 1]]), include_self=False)
    >>> content, query = layers.TwoStreamMasks()(np.ones((1, 1, 1, 3), bool), order[:, 0])
    >>> print(np.array(content)[0, 0].astype(int))
    [[1 1 1]
     [0 1 0]
     [0 1 1]]

    Source: https://arxiv.org/abs/1906.08237, section 2.3.
    """

    def call(self, mask, permutation_mask=None):
        batch, length = ops.shape(mask)[0], ops.shape(mask)[3]
        mask = ops.broadcast_to(mask, (batch, 1, length, length))
        if permutation_mask is not None:
            mask = mask & ops.cast(permutation_mask, "bool")[:, None]
        position = ops.arange(length)
        itself = ops.equal(position[:, None], position[None, :])
        return mask | itself[None, None], mask

    def compute_output_spec(self, mask, permutation_mask=None):
        batch, length = mask.shape[0], mask.shape[3]
        return tuple(keras.KerasTensor((batch, 1, length, length), "bool") for _ in range(2))

    def get_config(self):
        # Keras' own guess at a config can't take a dtype policy.
        return super().get_config()


@keras.saving.register_keras_serializable(package="kerasattn")
class SameSegment(keras.layers.Layer):
    """Whether a token and a key are of the same segment; a memory is of segment 0.

    Shapes:
        segment ids (batch, length) and memories (batch, layers, memory, dim)
        -> bool (batch, 1, length, memory + length).

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> same = layers.SameSegment()(np.array([[0, 1]]), np.ones((1, 3, 2, 8)))
    >>> print(np.array(same)[0, 0].astype(int))
    [[1 1 1 0]
     [0 0 0 1]]

    Source: https://arxiv.org/abs/1906.08237, section 2.5.
    """

    def call(self, segment_ids, memories):
        keys = ops.pad(segment_ids, [[0, 0], [ops.shape(memories)[2], 0]])
        return masks.segment(segment_ids, keys)

    def compute_output_spec(self, segment_ids, memories):
        batch, length = segment_ids.shape
        return keras.KerasTensor((batch, 1, length, None), "bool")

    def get_config(self):
        # Keras' own guess at a config can't take a dtype policy.
        return super().get_config()


@keras.saving.register_keras_serializable(package="kerasattn")
class QueryStream(keras.layers.Layer):
    """Where XLNet's query stream begins: one trained vector for every target, which knows nothing.

    Args:
        initializer: of the vector.

    Shapes:
        x (batch, length, dim), and optionally target_mapping (batch, target, length)
        -> (batch, target, dim); no target without a mapping.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x, mapping = np.ones((2, 5, 8), "float32"), np.ones((2, 3, 5), "float32")
    >>> tuple(layers.QueryStream()(x, mapping).shape)
    (2, 3, 8)

    Source: https://arxiv.org/abs/1906.08237, section 2.3: w.
    """

    def __init__(self, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.initializer = keras.initializers.get(initializer)

    def build(self, x_shape):
        self.mask_embedding = self.add_weight(
            shape=(1, 1, x_shape[-1]), initializer=self.initializer, name="mask_embedding"
        )

    def call(self, x, target_mapping=None):
        if target_mapping is None:
            return x[:, :0]
        batch, count = ops.shape(target_mapping)[:2]
        return ops.broadcast_to(ops.cast(self.mask_embedding, x.dtype), (batch, count, x.shape[-1]))

    def compute_output_spec(self, x, target_mapping=None):
        return keras.KerasTensor((x.shape[0], None, x.shape[-1]), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "initializer": keras.initializers.serialize(self.initializer),
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class ToldStream(keras.layers.Layer):
    """The stream that the model tells its tokens from: the targets where there are any.

    Shapes:
        x (batch, length, dim), targets (batch, target, dim), and optionally target_mapping
        -> targets with a mapping, else x.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> x = np.ones((2, 5, 8), "float32")
    >>> tuple(layers.ToldStream()(x, x[:, :0]).shape)
    (2, 5, 8)

    Source: https://arxiv.org/abs/1906.08237, section 2.3.
    """

    def call(self, x, targets, target_mapping=None):
        return x if target_mapping is None else targets

    def compute_output_spec(self, x, targets, target_mapping=None):
        return keras.KerasTensor((x.shape[0], None, x.shape[-1]), self.compute_dtype)

    def get_config(self):
        # Keras' own guess at a config can't take a dtype policy.
        return super().get_config()
