"""Scaled dot-product attention: the one function that every attention layer goes through."""

import math

import keras
from keras import ops

from kerasattn.ops import masks
from kerasattn.ops.recorded import record

NORMALIZATIONS = ("softmax", "softmax_plus", "squared_relu")


def dot_product_attention(
    query,
    key,
    value,
    attention_mask=None,
    bias=None,
    scale=None,
    dropout=0.0,
    seed=None,
    previous_scores=None,
    relative_keys=None,
    relative_values=None,
    accumulate_scores=True,
    normalization="softmax",
    cached=False,
):
    """Mixes the values by softmax(query · key · scale + bias), with scores and softmax in float32.

    A query with no key to attend to gives zeros, never NaN nor a mean of the values.

    Args:
        query: (batch, query, num_heads, head_dim).
        key: (batch, key, num_key_value_heads, head_dim); the number of heads divides num_heads,
            and each serves num_heads / num_key_value_heads consecutive heads of the query.
        value: (batch, key, num_key_value_heads, value_dim).
        attention_mask: bool, True = may attend, broadcastable to (batch, num_heads, query, key).
        bias: float, added to the scaled scores, broadcastable in the same way.
        scale: float, by default head_dim ** -0.5.
        dropout: float in [0, 1), the share of the weights that is dropped.
        seed: int or `keras.random.SeedGenerator` of the dropout.
        previous_scores: (batch, num_heads, query, key), scores of the layer below that these are
            added to (RealFormer).
        relative_keys: (query, key, head_dim) or (batch, query, key, head_dim), vectors of a query's
            and a key's distance, which are added to the keys that the query sees.
        relative_values: (query, key, value_dim) or (batch, query, key, value_dim), likewise for
            the values.
        accumulate_scores: bool, whether the scores returned contain the previous ones.
        normalization: what makes weights of scores: "softmax"; "softmax_plus", of scores times
            log(keys seen) / log(512), so that weights are as sharp for a long text as for a short
            one; "squared_relu", relu(score)^2 / keys seen, which do not sum to 1.

    Returns:
        The mixed values (batch, query, num_heads, value_dim) in the dtype of `value`, the weights
        before dropout and the scores before the mask, both (batch, num_heads, query, key) float32.

    Raises:
        ValueError: for a mask that is not boolean, or of a shape that does not broadcast; for a
            normalization that is none of the three.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.attention import dot_product_attention
    >>> x = np.ones((2, 3, 4, 8), "float32")
    >>> output, weights, scores = dot_product_attention(x, x, x)
    >>> tuple(output.shape), tuple(weights.shape)
    ((2, 3, 4, 8), (2, 4, 3, 3))

    Source: https://arxiv.org/abs/1706.03762, equation 1; grouped heads https://arxiv.org/abs/2305.13245;
    residual scores https://arxiv.org/abs/2012.11747; relative keys and values
    https://arxiv.org/abs/1803.02155, equations 3 and 4; softmax_plus
    https://kexue.fm/archives/8823; squared_relu https://arxiv.org/abs/2202.10447, equation 7.
    """
    head_dim = query.shape[-1]
    scale = head_dim**-0.5 if scale is None else scale
    # In float32 before they are multiplied: a product may be beyond what float16 holds.
    query = ops.transpose(ops.cast(query, "float32") * scale, (0, 2, 1, 3))  # (b, h, q, d)
    if not cached:
        key, value = cache_layout(key, value)  # (b, kv, d, k), (b, kv, k, v)

    scores = _grouped_matmul(query, ops.cast(key, "float32"))  # (b, h, q, k)
    if relative_keys is not None:
        relative_keys = ops.swapaxes(ops.cast(relative_keys, "float32"), -1, -2)
        scores = scores + _relative_matmul(query, relative_keys)
    if bias is not None:
        scores = scores + ops.cast(bias, "float32")
    own_scores = scores
    if previous_scores is not None:
        scores = scores + ops.cast(previous_scores, "float32")

    if attention_mask is not None:
        attention_mask = as_mask(attention_mask, scores.shape)
    weights = _normalized(scores, attention_mask, normalization)
    record(weights)

    dropped = keras.random.dropout(weights, dropout, seed=seed) if dropout else weights
    dropped = ops.cast(dropped, value.dtype)
    output = _grouped_matmul(dropped, value)  # (b, h, q, v)
    if relative_values is not None:
        output = output + _relative_matmul(dropped, ops.cast(relative_values, value.dtype))
    scores = scores if accumulate_scores else own_scores
    return ops.transpose(output, (0, 2, 1, 3)), weights, scores


def cache_layout(key, value):
    """Keys and values so that a step of generation multiplies them as they lie in memory.

    (batch, key, heads, head_dim) and (batch, key, heads, value_dim)
    -> (batch, heads, head_dim, key) and (batch, heads, key, value_dim).
    """
    return ops.transpose(key, (0, 2, 3, 1)), ops.transpose(value, (0, 2, 1, 3))


def check_normalization(normalization):
    """Raises a ValueError for a normalization that attention does not know."""
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"normalization must be one of {NORMALIZATIONS}, got {normalization!r}.")


def _normalized(scores, attention_mask, normalization):
    """Weights of scores, both (b, h, q, k) float32; those of keys that are not seen are 0."""
    check_normalization(normalization)
    if normalization != "softmax":
        if attention_mask is None:
            seen = ops.cast(ops.shape(scores)[-1], "float32")
        else:
            seen = ops.sum(ops.cast(attention_mask, "float32"), axis=-1, keepdims=True)
            seen = ops.maximum(seen, 1.0)
        if normalization == "squared_relu":
            weights = ops.square(ops.relu(scores)) / seen
            return weights if attention_mask is None else ops.where(attention_mask, weights, 0.0)
        # Short texts are not made flatter still: what sees fewer than 16 keys counts as seeing 16.
        scores = scores * (ops.log(ops.maximum(seen, 16.0)) / math.log(512))
    return masked_softmax(scores, attention_mask)


def masked_softmax(scores, mask=None, axis=-1):
    """The softmax in float32 of what a mask leaves: 0 elsewhere, and all 0 where it leaves nothing.

    Args:
        scores: float.
        mask: bool, True = takes part, broadcastable to the scores; None for all.
        axis: int or tuple of ints, over which weights sum to 1.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.attention import masked_softmax
    >>> weights = masked_softmax(np.zeros((2, 2)), np.array([[True, False], [False, False]]))
    >>> np.array(weights).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    scores = ops.cast(scores, "float32")
    if mask is None:
        return ops.softmax(scores, axis=axis)
    # A finite minimum, so that no gradient meets inf - inf; the product empties full rows.
    weights = ops.softmax(ops.where(mask, scores, -1e30), axis=axis)
    return weights * ops.cast(mask, "float32")


def attend(scores, value, attention_mask=None, factor=None):
    """Mixes values by the softmax of scores of one head, such as those of `ops.scores`.

    A query with no key to attend to gives zeros.

    Args:
        scores: (batch, query, key).
        value: (batch, key, dim); integers count as float32.
        attention_mask: bool, True = may attend, (query, key), (batch, query, key) or
            (batch, 1, query, key), as those of `ops.masks`; sizes of 1 stand for all.
        factor: float (batch, query, key), what the softmax is multiplied by.

    Returns:
        The mixed values (batch, query, dim) in the dtype of `value`, and the weights
        (batch, query, key) float32.

    Raises:
        ValueError: for more or fewer values than keys, or a mask that is not boolean, or of a shape
            that does not broadcast.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.attention import attend
    >>> mixed, weights = attend(np.zeros((1, 1, 2)), np.array([[[2.0], [4.0]]]))
    >>> np.array(mixed).tolist(), np.array(weights).tolist()
    ([[[3.0]]], [[[0.5, 0.5]]])
    """
    value = ops.convert_to_tensor(value)
    if not keras.backend.is_float_dtype(keras.backend.standardize_dtype(value.dtype)):
        value = ops.cast(value, "float32")  # in whose own dtype all weights would be 0
    keys, values = scores.shape[-1], value.shape[1]
    if None not in (keys, values) and keys != values:
        raise ValueError(f"There are scores of {keys} keys, and {values} values.")
    if attention_mask is not None:
        batch, query, key = scores.shape
        attention_mask = as_mask(attention_mask, (batch, 1, query, key))[:, 0]
    weights = masked_softmax(scores, attention_mask)
    if factor is not None:
        weights = weights * ops.cast(factor, "float32")
    return ops.matmul(ops.cast(weights, value.dtype), value), weights


def hide_keys(attention_mask, padding_masks, shape):
    """A mask of attention joined with masks of keys, such as those that Keras carries along.

    Args:
        attention_mask: bool, as that of `as_mask`, or None.
        padding_masks: list of bool (batch, key), True = real, or None.
        shape: (batch, heads, query, key), None where unknown.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.attention import hide_keys
    >>> mask = hide_keys(None, [np.array([[True, False]]), None], (1, 1, 3, 2))
    >>> np.array(mask).tolist(), hide_keys(None, [None], (1, 1, 3, 2))
    ([[[[True, False]]]], None)
    """
    for padding_mask in padding_masks:
        if padding_mask is None:
            continue
        more = masks.keys(padding_mask)
        if attention_mask is not None:
            more = as_mask(attention_mask, shape) & more
        attention_mask = more
    return attention_mask


def as_mask(attention_mask, shape):
    """Checks a mask against scores of `shape` and gives it rank 4.

    Args:
        attention_mask: bool (query, key), (batch, query, key) or anything of rank 4 that
            broadcasts to `shape`.
        shape: (batch, heads, query, key), None where unknown.

    Raises:
        ValueError: for another dtype, rank or size, naming what is taken.
    """
    attention_mask = ops.convert_to_tensor(attention_mask)
    given = tuple(attention_mask.shape)
    takes = (
        "attention_mask takes booleans, True where a query may attend to a key, of a shape "
        "(query, key), (batch, query, key) or one that broadcasts to (batch, heads, query, key) = "
        f"{tuple(shape)}"
    )
    dtype = keras.backend.standardize_dtype(attention_mask.dtype)
    if dtype != "bool":
        raise ValueError(f"{takes}; got the dtype {dtype}. Compare first, as in `mask != 0`.")
    if len(given) == 2:
        attention_mask = attention_mask[None, None]
    elif len(given) == 3:
        attention_mask = attention_mask[:, None]
    elif len(given) != 4:
        raise ValueError(f"{takes}; got the shape {given}. For padding, see masks.padding.")
    for have, want in zip(attention_mask.shape, shape, strict=True):
        if have is not None and want is not None and have not in (1, want):
            raise ValueError(f"{takes}; got the shape {given}.")
    return attention_mask


def _relative_matmul(x, y):
    """(b, h, q, d) with a matrix for each query (q, d, k) or (b, q, d, k) -> (b, h, q, k)."""
    if len(y.shape) == 4:
        return ops.swapaxes(ops.matmul(ops.swapaxes(x, 1, 2), y), 1, 2)
    batch, heads, length, depth = ops.shape(x)
    x = ops.reshape(ops.transpose(x, (2, 0, 1, 3)), (length, batch * heads, depth))
    product = ops.reshape(ops.matmul(x, y), (length, batch, heads, ops.shape(y)[2]))
    return ops.transpose(product, (1, 2, 0, 3))


def _grouped_matmul(x, y):
    """(b, h, q, d) @ (b, kv, d, k) -> (b, h, q, k), where h is a multiple of kv."""
    num_heads, num_groups = x.shape[1], y.shape[1]
    if num_heads == num_groups:
        return ops.matmul(x, y)
    batch, _, length, depth = ops.shape(x)
    x = ops.reshape(x, (batch, num_groups, (num_heads // num_groups) * length, depth))
    return ops.reshape(ops.matmul(x, y), (batch, num_heads, length, ops.shape(y)[3]))
