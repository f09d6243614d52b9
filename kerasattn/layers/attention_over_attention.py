import keras

from kerasattn.layers.attention_pooling import check_padding_mask
from kerasattn.ops import reading, scores


@keras.saving.register_keras_serializable(package="kerasattn")
class AttentionOverAttention(keras.layers.Layer):
    """Where a document answers a query: every query word looks, and is heard by what it matters.

    It has no weights: words match by the dot product of their vectors.

    Shapes:
        document (batch, document, dim), query (batch, query, dim), and their masks, bool (batch,
        document) and (batch, query), True = real word, or None -> weights of the document's
        places, float32 (batch, document), zeros where either text has no real word; with
        return_weights=True also those of the query's words (batch, query) and where each of them
        looks (batch, document, query).

    Raises:
        ValueError: for vectors of two widths, other ranks, or masks that do not fit.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> words = np.eye(3, dtype="float32")[None] * 9
    >>> weights = layers.AttentionOverAttention()(words, words[:, :2])  # the first two are asked
    >>> print(np.array(weights).round(2))
    [[0.5 0.5 0. ]]

    Source: https://arxiv.org/abs/1607.04423, section 3.
    """

    def build(self, document_shape, query_shape, document_mask_shape=None, query_mask_shape=None):
        check_pair(document_shape, query_shape)

    def call(self, document, query, document_mask=None, query_mask=None, return_weights=False):
        if document_mask is not None:
            check_padding_mask(document_mask, document, "document_mask")
        if query_mask is not None:
            check_padding_mask(query_mask, query, "query_mask")
        found = reading.attention_over_attention(
            scores.dot(document, query), document_mask, query_mask
        )
        return found if return_weights else found[0]

    def compute_mask(self, *inputs, **masks):
        return None


def check_pair(first, second):
    """Refuses shapes of two texts that are not (batch, length, dim) of one width.

    Raises:
        ValueError: naming both.
    """
    if len(first) != 3 or len(second) != 3 or first[-1] != second[-1]:
        raise ValueError(
            "Both texts take the shape (batch, length, dim) of one dim, got "
            f"{tuple(first)} and {tuple(second)}."
        )
