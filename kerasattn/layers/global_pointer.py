import keras
from keras import ops

from kerasattn.ops import rotary


@keras.saving.register_keras_serializable(package="kerasattn")
class GlobalPointer(keras.layers.Layer):
    """A score of each kind for each span, first token by last token, so that spans may be nested.

    Args:
        num_kinds: int >= 1, kinds of spans.
        head_dim: int >= 1, width of the queries (first token) and keys (last token) of a kind.
        use_rotary: bool, whether both are rotated, so that scores know distances.
        use_bias: bool, whether the dense layers have biases.
        forward_only: bool, whether spans that end before they begin are hidden.
        kernel_initializer: of the dense layers.

    Call arguments:
        x: float (batch, length, dim).
        padding_mask: bool (batch, length), True = real. A Keras mask of x counts too.

    Shapes:
        (batch, length, dim) -> (batch, num_kinds, length, length), float32 in every policy, -1e9
        for spans that are hidden or touch padding. Spans are those whose score is above 0;
        `training.losses.multilabel_cross_entropy` trains for that.

    Raises:
        ValueError: for a count or width below 1, an odd head_dim with rotary, or x not of rank 3.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> scores = layers.GlobalPointer(num_kinds=3)(np.ones((2, 5, 8), "float32"))
    >>> tuple(scores.shape), float(scores[0, 0, 1, 0])
    ((2, 3, 5, 5), -1000000000.0)

    Source: https://arxiv.org/abs/2208.03054; https://kexue.fm/archives/8373.
    """

    HIDDEN = -1e9

    def __init__(
        self,
        num_kinds,
        head_dim=64,
        use_rotary=True,
        use_bias=True,
        forward_only=True,
        kernel_initializer="lecun_normal",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_kinds < 1 or head_dim < 1:
            raise ValueError(
                f"num_kinds and head_dim must be at least 1, got {num_kinds} and {head_dim}."
            )
        if use_rotary and head_dim % 2:
            raise ValueError(f"Rotary needs an even head_dim, got head_dim={head_dim}.")
        self.num_kinds = num_kinds
        self.head_dim = head_dim
        self.use_rotary = use_rotary
        self.use_bias = use_bias
        self.forward_only = forward_only
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        self._check(input_shape)
        self.dense = self._dense(2 * self.num_kinds * self.head_dim, "dense", input_shape)

    def call(self, x, padding_mask=None, mask=None):
        batch, length = ops.shape(x)[:2]
        heads = ops.reshape(self.dense(x), (batch, length, self.num_kinds, 2 * self.head_dim))
        scores = self._products(heads[..., : self.head_dim], heads[..., self.head_dim :])
        return self._hide(scores, padding_mask, mask)

    def _check(self, input_shape):
        if len(input_shape) != 3:
            raise ValueError(f"x must be (batch, length, dim), got shape {tuple(input_shape)}.")

    def _dense(self, units, name, input_shape):
        layer = keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=self._part_name(name),
        )
        layer.build(input_shape)
        return layer

    def _part_name(self, name):
        return name

    def _products(self, query, key):
        """Scaled products of (batch, length, heads, dim) each -> (batch, heads, query, key)."""
        query, key = ops.cast(query, "float32"), ops.cast(key, "float32")
        if self.use_rotary:
            place = ops.arange(ops.shape(query)[1], dtype="int32")
            query, key = rotary.rotate(query, place), rotary.rotate(key, place)
        query = ops.transpose(query * self.head_dim**-0.5, (0, 2, 1, 3))
        return ops.matmul(query, ops.transpose(key, (0, 2, 3, 1)))

    def _hide(self, scores, *padding_masks):
        place = ops.arange(ops.shape(scores)[-1])
        for real in padding_masks:
            if real is not None:
                both = real[:, None, :, None] & real[:, None, None, :]
                scores = ops.where(both, scores, self.HIDDEN)
        if self.forward_only:
            scores = ops.where(place[:, None] <= place[None, :], scores, self.HIDDEN)
        return scores

    def compute_mask(self, *args, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "num_kinds": self.num_kinds,
            "head_dim": self.head_dim,
            "use_rotary": self.use_rotary,
            "use_bias": self.use_bias,
            "forward_only": self.forward_only,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
