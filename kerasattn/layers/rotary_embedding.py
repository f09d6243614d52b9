import keras
from keras import ops

from kerasattn.ops import rotary


@keras.saving.register_keras_serializable(package="kerasattn")
class RotaryEmbedding(keras.layers.Layer):
    """Rotates queries or keys by their position, so that their products see only distances.

    Args:
        base: float > 0, of the frequencies base^(-2i/head_dim).
        interleaved: bool, whether pairs are neighbours (RoFormer) or the two halves (Llama).
        scaling: dict of the arguments of `ops.positions.llama3_frequencies`, or None.

    Call arguments:
        x: float tensor (batch, length, heads, head_dim), head_dim even.
        position_ids: int (batch or 1, length) or (length,), or None for 0, 1, 2, ...

    Shapes:
        (batch, length, heads, head_dim) -> the same, in the dtype of the input. Angles are float32
        in every policy.

    Raises:
        ValueError: if head_dim is odd, the input is not of rank 4 or base is not positive.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> query = np.ones((2, 5, 4, 16), dtype="float32")
    >>> tuple(layers.RotaryEmbedding()(query, position_ids=np.arange(3, 8)[None]).shape)
    (2, 5, 4, 16)

    Source: https://arxiv.org/abs/2104.09864, equations 14 and 34.
    """

    def __init__(self, base=10000.0, interleaved=True, scaling=None, **kwargs):
        # Not cast on the way in: queries and keys leave in the dtype in which they came.
        super().__init__(autocast=False, **kwargs)
        if not base > 0:
            raise ValueError(f"base must be positive, got {base}.")
        self.base = float(base)
        self.interleaved = interleaved
        self.scaling = scaling and dict(scaling)
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 4:
            raise ValueError(
                "RotaryEmbedding takes (batch, length, heads, head_dim), got shape "
                f"{tuple(input_shape)}. Split the heads first."
            )
        if input_shape[-1] is None or input_shape[-1] % 2:
            raise ValueError(
                f"RotaryEmbedding turns pairs of features: the head size must be even, got "
                f"head_dim={input_shape[-1]}. Choose hidden_dim and num_heads so that it is."
            )

    def call(self, x, position_ids=None):
        if position_ids is None:
            position_ids = ops.arange(ops.shape(x)[1], dtype="int32")
        return rotary.rotate(x, position_ids, self.base, self.interleaved, self.scaling)

    def get_config(self):
        return {
            **super().get_config(),
            "base": self.base,
            "interleaved": self.interleaved,
            "scaling": self.scaling,
        }
