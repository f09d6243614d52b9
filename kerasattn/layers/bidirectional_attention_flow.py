import keras

from kerasattn.layers.attention_over_attention import check_pair
from kerasattn.layers.attention_pooling import check_padding_mask
from kerasattn.ops import reading, scores


@keras.saving.register_keras_serializable(package="kerasattn")
class BidirectionalAttentionFlow(keras.layers.Layer):
    """Lets a text and a question look at each other, without making either one vector too early.

    Words match by w · [context; query; context * query].

    Args:
        kernel_initializer: of w.

    Shapes:
        context (batch, context, dim), query (batch, query, dim), and their masks, bool (batch,
        context) and (batch, query), True = real word, or None -> (batch, context, 4 dim), as
        `ops.reading.attention_flow`; with return_weights=True also the weights of both directions,
        float32 (batch, context, query) and (batch, context).

    Raises:
        ValueError: for vectors of two widths, other ranks, or masks that do not fit.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> flow = layers.BidirectionalAttentionFlow()
    >>> tuple(flow(np.ones((2, 7, 4)), np.ones((2, 3, 4))).shape)
    (2, 7, 16)

    Source: https://arxiv.org/abs/1611.01603, section 2, 4.
    """

    def __init__(self, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, context_shape, query_shape, context_mask_shape=None, query_mask_shape=None):
        check_pair(context_shape, query_shape)
        dim = context_shape[-1]
        self.kernel = self.add_weight((3 * dim, 1), self.kernel_initializer.clone(), name="kernel")

    def call(self, context, query, context_mask=None, query_mask=None, return_weights=False):
        if context_mask is not None:
            check_padding_mask(context_mask, context, "context_mask")
        if query_mask is not None:
            check_padding_mask(query_mask, query, "query_mask")
        dim = context.shape[-1]
        parts = [self.kernel[i * dim : (i + 1) * dim, 0] for i in range(3)]
        found = reading.attention_flow(
            context, query, scores.trilinear(context, query, *parts), context_mask, query_mask
        )
        return found if return_weights else found[0]

    def compute_mask(self, *inputs, **masks):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
