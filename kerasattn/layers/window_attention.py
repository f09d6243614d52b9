import keras
from keras import ops

from kerasattn.layers.attention_pooling import check_padding_mask
from kerasattn.ops import window


@keras.saving.register_keras_serializable(package="kerasattn")
class WindowAttention(keras.layers.Layer):
    """Multi-head self-attention of each position to those near it, computed in blocks.

    Args:
        num_heads: int >= 1, a divisor of the width.
        before, after: ints >= 0, how many positions are seen on each side.

    Shapes:
        x (batch, length, dim) and a padding_mask, bool (batch, length), True = real token, or None
        -> (batch, length, dim).

    Raises:
        ValueError: for numbers out of range, x of another rank, a width that the heads do not
            divide, or a mask that does not fit.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> attention = layers.WindowAttention(num_heads=2, before=3, after=0)  # sees no future
    >>> tuple(attention(np.ones((2, 10, 8))).shape)
    (2, 10, 8)

    Source: https://arxiv.org/abs/1706.03762, section 4 (restricted self-attention).
    """

    def __init__(self, num_heads, before, after, **kwargs):
        super().__init__(**kwargs)
        if num_heads < 1 or min(before, after) < 0:
            raise ValueError(
                "num_heads must be at least 1, before and after at least 0, got "
                f"{num_heads}, {before} and {after}."
            )
        self.num_heads, self.before, self.after = num_heads, before, after

    def build(self, x_shape, padding_mask_shape=None):
        if len(x_shape) != 3 or x_shape[-1] % self.num_heads:
            raise ValueError(
                f"x must be (batch, length, dim) with dim a multiple of {self.num_heads} heads, "
                f"got the shape {tuple(x_shape)}."
            )
        dim = x_shape[-1]
        self.dense, self.output_dense = (
            keras.layers.Dense(units, dtype=self.dtype_policy, name=name)
            for units, name in ((3 * dim, "query_key_value"), (dim, "output"))
        )
        self.dense.build(x_shape)
        self.output_dense.build(x_shape)

    def call(self, x, padding_mask=None):
        if padding_mask is not None:
            check_padding_mask(padding_mask, x)
        batch, length, dim = *ops.shape(x)[:2], x.shape[-1]
        heads = (batch, length, self.num_heads, dim // self.num_heads)
        query, key, value = (ops.reshape(part, heads) for part in ops.split(self.dense(x), 3, -1))
        mixed = window.window_attention(query, key, value, self.before, self.after, padding_mask)
        return self.output_dense(ops.reshape(mixed, (batch, length, dim)))

    def compute_output_spec(self, x, padding_mask=None):
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "before": self.before,
            "after": self.after,
        }
