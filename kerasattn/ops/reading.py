"""How a text and a question look at each other: the attention of classic readers."""

from keras import ops

from kerasattn.ops.attention import masked_softmax


def attention_over_attention(scores, document_mask=None, query_mask=None):
    """How much each place of a document answers a query, and how much each query word counts.

    Each query word looks at the document; how much its look counts is what the document's words,
    on average, see in it. Rows without a real word on either side give zeros.

    Args:
        scores: (batch, document, query), how well words match.
        document_mask, query_mask: bool (batch, document) and (batch, query), True = real word.

    Returns:
        weights of the document's places (batch, document), weights of the query's words (batch,
        query), and where each query word looks (batch, document, query), all float32.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.reading import attention_over_attention
    >>> scores = np.log([[[1.0, 1.0], [3.0, 1.0]]])
    >>> places, words, _ = attention_over_attention(scores)
    >>> print(np.array(places).round(4), np.array(words).round(4))
    [[0.3438 0.6562]] [[0.625 0.375]]

    Source: https://arxiv.org/abs/1607.04423, equations 2 to 5.
    """
    scores = ops.cast(scores, "float32")
    both, real = None, ops.ones_like(scores[:, :, 0])
    if document_mask is not None:
        real = ops.cast(document_mask, "float32")
        both = document_mask[:, :, None]
    if query_mask is not None:
        both = query_mask[:, None, :] if both is None else both & query_mask[:, None, :]
    looks = masked_softmax(scores, both, axis=1)  # (batch, document, query)
    seen = masked_softmax(scores, both, axis=2) * real[..., None]
    count = ops.maximum(ops.sum(real, axis=1), 1.0)
    words = ops.sum(seen, axis=1) / count[:, None]  # (batch, query)
    return ops.sum(looks * words[:, None, :], axis=2), words, looks


def attention_flow(context, query, scores, context_mask=None, query_mask=None):
    """Each word of a text, beside what it sees in a question and what the question sees in it.

    Words of the text that are padding give what nobody looks at; a question without a real word
    gives zeros.

    Args:
        context: (batch, context, dim).
        query: (batch, query, dim).
        scores: (batch, context, query), such as `scores.trilinear`.
        context_mask, query_mask: bool (batch, context) and (batch, query), True = real word.

    Returns:
        [context; seen; context * seen; context * summary] (batch, context, 4 dim), where `seen` is
        what a word sees in the question and `summary` the text by what matters to the question;
        the weights of both, float32 (batch, context, query) and (batch, context).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.reading import attention_flow
    >>> x = np.ones((1, 4, 2), "float32")
    >>> flow, _, to_context = attention_flow(x, x[:, :3], np.zeros((1, 4, 3)))
    >>> tuple(flow.shape), np.array(to_context).tolist()
    ((1, 4, 8), [[0.25, 0.25, 0.25, 0.25]])

    Source: https://arxiv.org/abs/1611.01603, equations 1 to 3.
    """
    scores = ops.cast(scores, "float32")
    words = None if query_mask is None else query_mask[:, None, :]
    to_query = masked_softmax(scores, words)  # (batch, context, query)
    if words is not None:
        scores = ops.where(words, scores, -1e30)
    best, places = ops.max(scores, axis=2), context_mask  # (batch, context)
    if words is not None:
        asked = ops.any(query_mask, axis=1, keepdims=True)
        places = asked if places is None else places & asked
    to_context = masked_softmax(best, places)
    seen = ops.matmul(ops.cast(to_query, query.dtype), query)  # (batch, context, dim)
    summary = ops.sum(ops.cast(to_context, context.dtype)[..., None] * context, axis=1)
    flow = [context, seen, context * seen, context * summary[:, None]]
    return ops.concatenate(flow, axis=-1), to_query, to_context


def sum_over_occurrences(weights, token_ids, sought_ids):
    """The weight that a document gives to a token: that of all places where it stands.

    Args:
        weights: (batch, document), 0 at padding.
        token_ids: int (batch, document).
        sought_ids: int (batch, sought).

    Shapes:
        -> float32 (batch, sought).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.reading import sum_over_occurrences
    >>> weights, token_ids = np.array([[0.5, 0.2, 0.3]]), np.array([[7, 8, 7]])
    >>> print(np.array(sum_over_occurrences(weights, token_ids, np.array([[7, 8, 9]]))).round(2))
    [[0.8 0.2 0. ]]

    Source: https://arxiv.org/abs/1607.04423, equation 6; https://arxiv.org/abs/1603.01547.
    """
    same = ops.equal(ops.expand_dims(sought_ids, 2), ops.expand_dims(token_ids, 1))
    return ops.sum(ops.cast(same, "float32") * ops.cast(weights, "float32")[:, None], axis=2)
