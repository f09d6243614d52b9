"""Attention masks, as pure functions of the tokens.

A mask is a boolean tensor, True where a query may attend to a key, of a shape
that broadcasts to (batch, heads, query, key). Masks are combined with `&`.
They take tensors, not lengths, so that they also work on symbolic inputs whose
length is unknown; anything else is a ValueError.
"""

import numpy as np
from keras import ops


def padding(token_ids, pad_id=0):
    """Hide padding keys: (batch, key) ids -> (batch, 1, 1, key).

    Example:
    >>> from kerasattn.ops import masks
    >>> tuple(masks.padding([[5, 6, 0]]).shape)
    (1, 1, 1, 3)
    """
    return keys(ops.not_equal(token_ids, pad_id))


def keys(padding_mask):
    """Hide the keys that a padding mask marks False: (batch, key) -> (batch, 1, 1, key).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> tuple(masks.keys(np.array([[True, False]])).shape)
    (1, 1, 1, 2)
    """
    return ops.cast(_checked(padding_mask), "bool")[:, None, None, :]


def causal(query_ids, key_ids=None, reverse=False):
    """Each query sees itself and what stands before it (after it, if `reverse`).

    Args:
        query_ids: (batch, query) tensor; only its shape matters.
        key_ids: (batch, key) tensor, or None for the queries themselves. Of more keys than
            queries, the queries are the last (`reverse`: the first), as with a cache.
        reverse: bool, True to read from right to left.

    Shapes:
        -> (batch, 1, query, key).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> np.array(masks.causal(np.array([[7, 8, 9]])))[0, 0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    query = positions(query_ids)
    key = query if key_ids is None else positions(key_ids)
    if reverse:
        return key[:, None, None, :] >= query[:, None, :, None]
    if key_ids is not None:
        # From positions, not shapes: a symbolic length is None.
        query = query + (key[:, -1:] - query[:, -1:])
    return key[:, None, None, :] <= query[:, None, :, None]


def prefix(segment_ids):
    """UniLM: segment 0 is read both ways, segment 1 is written left to right.

    (batch, length) of 0s then 1s -> (batch, 1, length, length).
    Source: https://arxiv.org/abs/1905.03197, section 2.2.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> np.array(masks.prefix(np.array([[0, 0, 1]])))[0, 0].astype(int).tolist()
    [[1, 1, 0], [1, 1, 0], [1, 1, 1]]
    """
    written = ops.cumsum(_checked(segment_ids), axis=1)
    return written[:, None, None, :] <= written[:, None, :, None]


def autoencoder(segment_ids, latent=False):
    """UniAE: segment 0 is read both ways, 1 written left to right, neither sees the other.

    With `latent` the first column, which carries the latent vector, is open to every query.

    (batch, length) of 0s then 1s -> (batch, 1, length, length).
    Source: https://kexue.fm/archives/8475.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> np.array(masks.autoencoder(np.array([[0, 1, 1]])))[0, 0].astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
    """
    mask = prefix(segment_ids) & segment(segment_ids)
    if latent:
        # `==` would compare symbolic tensors as objects.
        mask = mask | ops.equal(positions(segment_ids), 0)[:, None, None, :]
    return mask


def window(token_ids, before, after=0):
    """Each query sees `before` keys before itself, itself, and `after` keys after itself.

    The plain form, of length² numbers: for checks, pictures and short texts. A layer of windowed
    attention works in blocks instead.

    (batch, length) ids -> (batch, 1, length, length).

    Raises:
        ValueError: if the window reaches a negative number of keys.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> np.array(masks.window(np.array([[7, 8, 9]]), before=1))[0, 0].astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    if before < 0 or after < 0:
        raise ValueError(f"A window reaches 0 or more keys each way, got {before} and {after}.")
    position = positions(token_ids)
    distance = position[:, None, None, :] - position[:, None, :, None]
    return (distance >= -before) & (distance <= after)


def recent(query_ids, key_ids, span):
    """Each query sees itself and the span - 1 keys before it: as many keys for every query.

    Args:
        query_ids: (batch, query) tensor; only its shape matters.
        key_ids: (batch, key) tensor; the queries are the last keys.
        span: int >= 1.

    Shapes:
        -> (batch, 1, query, key).

    Source: `same_length` of Transformer-XL's code; https://arxiv.org/abs/1901.02860, section 4.1.
    """
    query, key = positions(query_ids), positions(key_ids)
    query = query + (key[:, -1:] - query[:, -1:])
    distance = query[:, None, :, None] - key[:, None, None, :]
    return (distance >= 0) & (distance < span)


def segment(query_segment_ids, key_segment_ids=None):
    """Packed sequences: a query sees the keys of its own segment alone.

    (batch, query) and (batch, key) ids, by default the same -> (batch, 1, query, key).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> np.array(masks.segment(np.array([[0, 0, 1]])))[0, 0].astype(int).tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    query = _checked(query_segment_ids)
    key = query if key_segment_ids is None else _checked(key_segment_ids)
    return ops.equal(key[:, None, None, :], query[:, None, :, None])


def visible(matrix):
    """Any matrix of 0 and 1, as the visible matrix of K-BERT: 1 where a query may see a key.

    (batch, query, key) -> (batch, 1, query, key).

    Raises:
        ValueError: if the matrix is not of rank 3.

    Source: https://arxiv.org/abs/1909.07606, section 3.3.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> tuple(masks.visible(np.eye(3)[None]).shape)
    (1, 1, 3, 3)
    """
    matrix = _checked(matrix)
    if len(matrix.shape) != 3:
        raise ValueError(f"visible takes (batch, query, key), got the shape {tuple(matrix.shape)}.")
    return ops.not_equal(matrix, 0)[:, None]


def permutation(order, include_self=True):
    """XLNet: a query sees the keys that come before it in a factorization order.

    Args:
        order: (batch, length) ints, the rank of each position in the order.
        include_self: True for the content stream, False for the query stream, which must not
            see the token that it predicts.

    Shapes:
        -> (batch, 1, length, length).

    Source: https://arxiv.org/abs/1906.08237, section 2.3.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> np.array(masks.permutation(np.array([[2, 0, 1]])))[0, 0].astype(int).tolist()
    [[1, 1, 1], [0, 1, 0], [0, 1, 1]]
    """
    order = _checked(order)
    key, query = order[:, None, None, :], order[:, None, :, None]
    return key <= query if include_self else key < query


def real_positions(padding_mask):
    """Positions that count real tokens alone, wherever the padding stands; 0 before the first.

    (batch, length) bool -> (batch, length) int32.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> print(np.array(masks.real_positions(np.array([[False, False, True, True, True]]))))
    [[0 0 0 1 2]]
    """
    return ops.maximum(ops.cumsum(ops.cast(_checked(padding_mask), "int32"), axis=1) - 1, 0)


def positions(token_ids):
    """0, 1, 2, ... along axis 1, also where the length is unknown: (batch, length) int32.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import masks
    >>> print(np.array(masks.positions(np.array([[7, 8, 9]]))))
    [[0 1 2]]
    """
    return ops.cumsum(ops.ones_like(_checked(token_ids), dtype="int32"), axis=1) - 1


def _checked(x):
    """A tensor (batch, length, ...) as it is, of a list an array; refuses lengths, lone rows."""
    x = x if hasattr(x, "shape") else np.asarray(x)
    rank = x.shape.rank if hasattr(x.shape, "rank") else len(x.shape)
    if rank is not None and rank < 2:  # TensorFlow may not know it
        raise ValueError(
            "Masks and positions are made from tensors (batch, length), such as token_ids[None], "
            f"not from lengths or lone sequences: got the shape {tuple(x.shape)}."
        )
    return x
