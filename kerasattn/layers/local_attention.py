import keras
from keras import ops

from kerasattn.layers.soft_attention import SoftAttention
from kerasattn.ops import scores
from kerasattn.ops.attention import as_mask

ALIGNMENTS = ("monotonic", "predictive")


@keras.saving.register_keras_serializable(package="kerasattn")
class LocalAttention(SoftAttention):
    """Soft attention to a window of keys around a place: the query's own, or one that it predicts.

    With "monotonic" (local-m) query t looks at p = t, with "predictive" (local-p) at
    p = S · sigmoid(v · tanh(W q)), where S is the number of keys that the query may attend to. The
    softmax is over the keys at most `window` from p; "predictive" multiplies it by
    exp(-(s - p)² / 2 sigma²), sigma = window / 2, so that its weights do not sum to 1. Places
    count the keys that may be attended, so that padding on either side changes nothing. The
    scores of all keys are computed, and those outside of the window hidden: it saves no time.

    Args:
        score, units, max_length, kernel_initializer: see `SoftAttention`.
        alignment: "monotonic" or "predictive".
        window: int >= 1, D: of the 2 D + 1 keys.

    Call arguments:
        query_positions: int or float (batch or 1, query), the places of "monotonic"; by default 0,
            1, 2, ...
        query, value, key, attention_mask, cache, return_weights: see `SoftAttention`.

    Returns:
        As `SoftAttention`. A query whose window lies behind the last key gives zeros.

    Raises:
        ValueError: for another alignment, a window below 1, or as `SoftAttention`.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> attention = layers.LocalAttention("dot", alignment="monotonic", window=1)
    >>> x = np.zeros((1, 4, 2), "float32")
    >>> print(np.array(attention(x, return_weights=True)[1][0, :2]).round(2))
    [[0.5  0.5  0.   0.  ]
     [0.33 0.33 0.33 0.  ]]

    Source: https://arxiv.org/abs/1508.04025, section 3.2, equations 9 and 10.
    """

    def __init__(self, score="bilinear", alignment="predictive", window=10, **kwargs):
        super().__init__(score, **kwargs)
        if alignment not in ALIGNMENTS:
            raise ValueError(f"alignment must be one of {ALIGNMENTS}, got {alignment!r}.")
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}.")
        self.alignment = alignment
        self.window = window

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        if self.alignment == "predictive":
            width = query_shape[-1]
            self.place_kernel = self.add_weight(
                (width, width), self.kernel_initializer.clone(), name="place_kernel"
            )
            self.place_vector = self.add_weight(
                (width, 1), self.kernel_initializer.clone(), name="place_vector"
            )

    def focus(self, query, found, attention_mask, query_positions):
        """The keys near each query's place, and the Gaussian around it where it was predicted."""
        batch, queries, number = found.shape
        seen = ops.ones_like(found[:1], dtype="bool")  # (1, query, key)
        if attention_mask is not None:
            seen = seen & as_mask(attention_mask, (batch, 1, queries, number))[:, 0]
        counted = ops.cumsum(ops.cast(seen, "float32"), axis=-1)
        if self.alignment == "predictive":
            hidden = ops.tanh(scores.project(query, self.place_kernel))
            share = scores.project(hidden, self.place_vector)  # (batch, query, 1)
            share = ops.sigmoid(ops.cast(share, "float32"))
            place = counted[..., -1:] * share  # (batch, query, 1)
        elif query_positions is None:
            place = ops.cumsum(ops.ones_like(found[:1, :, :1]), axis=1) - 1.0  # (1, query, 1)
        else:
            place = ops.cast(query_positions, "float32")[..., None]
        distance = counted - 1.0 - place  # (batch, query, key)
        near = (seen & (ops.abs(distance) <= self.window))[:, None]
        if self.alignment == "monotonic":
            return near, None
        return near, ops.exp(-2.0 * ops.square(distance / self.window))  # sigma = window / 2

    def get_config(self):
        return {
            **super().get_config(),
            "alignment": self.alignment,
            "window": self.window,
        }
