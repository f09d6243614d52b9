"""How well a query and a key match: the scores of attention from Bahdanau to the Transformer.

Every function gives float32 scores (batch, query, key), whose softmax are the weights of
`ops.attention.attend`.
"""

from keras import ops


def dot(query, key, scale=1.0):
    """query · key · scale: Luong's dot, and with scale = dim ** -0.5 the Transformer's.

    Args:
        query: (batch, query, dim).
        key: (batch, key, dim).
        scale: float.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import scores
    >>> np.array(scores.dot(np.ones((1, 1, 4)), np.ones((1, 2, 4)), scale=0.5)).tolist()
    [[[2.0, 2.0]]]

    Source: https://arxiv.org/abs/1508.04025, section 3.1; https://arxiv.org/abs/1706.03762,
    equation 1.
    """
    # In float32 before they are multiplied: a product may be beyond what float16 holds.
    query, key = ops.cast(query, "float32") * scale, ops.cast(key, "float32")
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def bilinear(query, key, kernel):
    """query · W · key, for queries and keys of different widths: Luong's general.

    Args:
        query: (batch, query, query_dim).
        key: (batch, key, key_dim).
        kernel: (query_dim, key_dim).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import scores
    >>> tuple(scores.bilinear(np.ones((2, 3, 4)), np.ones((2, 5, 6)), np.ones((4, 6))).shape)
    (2, 3, 5)

    Source: https://arxiv.org/abs/1508.04025, section 3.1.
    """
    return dot(project(ops.cast(query, "float32"), ops.cast(kernel, "float32")), key)


def additive(query, key, vector):
    """vector · tanh(query + key), of projections of queries and keys: Bahdanau's.

    Luong's concat, v · tanh(W [query; key]), is the same with W's upper rows as the query's
    projection and its lower rows as the key's.

    Args:
        query: (batch, query, units), projected.
        key: (batch, key, units), projected.
        vector: (units,).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import scores
    >>> x = np.zeros((1, 2, 3))
    >>> np.array(scores.additive(x, x, np.ones(3))).tolist()
    [[[0.0, 0.0], [0.0, 0.0]]]

    Source: https://arxiv.org/abs/1409.0473, appendix A.1.2.
    """
    query, key = ops.expand_dims(query, 2), ops.expand_dims(key, 1)  # (b, q, 1, u), (b, 1, k, u)
    hidden = ops.cast(ops.tanh(query + key), "float32")
    # Not as a product of matrices, for what `project` says.
    return ops.sum(hidden * ops.cast(vector, "float32"), axis=-1)


def location(query, kernel):
    """query · W: a score for each place, whatever stands there: Luong's location.

    Args:
        query: (batch, query, dim).
        kernel: (dim, key).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import scores
    >>> tuple(scores.location(np.ones((2, 3, 4)), np.ones((4, 7))).shape)
    (2, 3, 7)

    Source: https://arxiv.org/abs/1508.04025, equation 8.
    """
    return project(ops.cast(query, "float32"), ops.cast(kernel, "float32"))


def project(x, kernel):
    """x · kernel, as a product of two matrices.

    `ops.matmul` makes a contraction of them, whose gradient TensorFlow cannot compile with XLA
    inside a loop over time.

    Args:
        x: (batch, length, dim).
        kernel: (dim, units).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import scores
    >>> tuple(scores.project(np.ones((2, 3, 4)), np.ones((4, 5))).shape)
    (2, 3, 5)
    """
    batch, length, dim = ops.shape(x)
    rows = ops.matmul(ops.reshape(x, (-1, dim)), kernel)  # (batch * length, units)
    return ops.reshape(rows, (batch, length, kernel.shape[-1]))


def trilinear(query, key, query_vector, key_vector, product_vector):
    """w · [query; key; query * key]: that of bidirectional attention flow.

    Args:
        query: (batch, query, dim).
        key: (batch, key, dim).
        query_vector, key_vector, product_vector: (dim,), the thirds of w.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import scores
    >>> x, w = np.ones((1, 2, 3)), np.ones(3)
    >>> np.array(scores.trilinear(x, 2 * x, w, w, w)).tolist()
    [[[15.0, 15.0], [15.0, 15.0]]]

    Source: https://arxiv.org/abs/1611.01603, section 2, 4.
    """
    query, key = ops.cast(query, "float32"), ops.cast(key, "float32")
    of = lambda vector: ops.cast(vector, "float32")[:, None]
    by_query = ops.matmul(query, of(query_vector))  # (batch, query, 1)
    by_key = ops.swapaxes(ops.matmul(key, of(key_vector)), 1, 2)  # (batch, 1, key)
    return by_query + by_key + dot(query * of(product_vector)[:, 0], key)
