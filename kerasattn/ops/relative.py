"""Scores of distances, as Transformer-XL has them: sinusoids of distances, and where each belongs.

Column c of a table of distances is the distance num_keys - c, query minus key, where the queries
are the last of the keys. A causal table ends with distance 0, one for both directions goes on to
the distance of the first query from the last key.
"""

from keras import ops

from kerasattn.ops import positions


def distances(num_queries, num_keys, bidirectional=False, max_distance=None):
    """The distances of the columns: num_keys, ..., 1, 0 and, if bidirectional, below.

    Args:
        num_queries, num_keys: int or integer scalars.
        bidirectional: bool, whether queries see keys behind them.
        max_distance: int or None, from which on all distances count as this one.

    Returns:
        int32 (num_keys + 1,), or (num_keys + num_queries,) if bidirectional.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import relative
    >>> print(np.array(relative.distances(2, 3, bidirectional=True)))
    [ 3  2  1  0 -1]

    Source: https://arxiv.org/abs/1901.02860, appendix B.
    """
    count = num_keys + (num_queries if bidirectional else 1)
    found = num_keys - ops.arange(count, dtype="int32")
    return found if max_distance is None else ops.clip(found, -max_distance, max_distance)


def sinusoids(distances, dim):
    """The sines of all frequencies, then their cosines: (distance,) -> (distance, dim) float32.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import relative
    >>> print(np.array(relative.sinusoids(np.array([0, 1]), dim=4)).round(2))
    [[0.   0.   1.   1.  ]
     [0.84 0.01 0.54 1.  ]]

    Source: https://arxiv.org/abs/1901.02860, section 3.3.
    """
    turned = positions.angles(distances, positions.frequencies((dim + 1) // 2, dim))
    return ops.concatenate([ops.sin(turned), ops.cos(turned)], axis=-1)[..., :dim]


def shift(scores, num_keys):
    """Gives each query's scores of distances to the keys at these distances.

    Row i goes to the left by num_queries - i, which reading the array in other rows does. What
    comes from beyond a causal table's end stands at keys behind the query, which it must not see.

    (batch, heads, query, distance) -> (batch, heads, query, key).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import relative
    >>> scores = np.tile(np.array([4, 3, 2, 1, 0, -1], "float32"), (1, 1, 2, 1))
    >>> print(np.array(relative.shift(scores, 4))[0, 0].astype(int))
    [[ 2  1  0 -1]
     [ 3  2  1  0]]

    Source: https://arxiv.org/abs/1901.02860, appendix B.
    """
    batch, heads, queries, columns = ops.shape(scores)
    scores = ops.reshape(scores, (batch, heads, columns, queries))[:, :, 1:]
    return ops.reshape(scores, (batch, heads, queries, columns - 1))[..., :num_keys]
