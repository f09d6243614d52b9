"""How unevenly a batch of unit vectors uses the directions of its sphere."""

from keras import ops


def isotropy_divergence(latents, weights=None):
    """The divergence of a Gaussian with the batch's second moments from that with the sphere's.

    Summed over layers, KL(N(0, M) || N(0, I / dim)) where M is the mean of z z^T over the rows and
    one row more, which points everywhere at once (M = I / dim); so that it is finite for few rows,
    and 0 for none. It is 0 if and only if no direction has more of the latents than another, and
    grows without bound with the rows where a direction has nothing of them.

    Args:
        latents: (batch, layers, dim), of unit norm, dim >= 2.
        weights: (batch,), 0 for rows that do not count, else 1.

    Returns:
        A scalar in float32, in nats. Uniform draws have about dim * (dim + 1) / (4 * batch) a
        layer, which is the chance of few rows.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import vmf
    >>> from kerasattn.ops.isotropy import isotropy_divergence
    >>> latents = np.array(vmf.uniform((2000, 1), 8, seed=0))
    >>> round(float(isotropy_divergence(latents)), 2)
    0.01
    >>> latents[..., 0] = 0  # a direction that is not used
    >>> float(isotropy_divergence(latents)) > 2
    True

    Source: the log-determinant divergence of matrices, https://arxiv.org/abs/0909.3939.
    """
    dim = latents.shape[-1]
    rows = ops.cast(latents, "float32")
    if weights is None:
        weights = ops.ones((ops.shape(rows)[0],))
    rows = rows * ops.sqrt(ops.cast(weights, "float32"))[:, None, None]
    moments = dim * ops.einsum("bli,blj->lij", rows, rows) + ops.eye(dim)
    moments = moments / (1.0 + ops.sum(ops.cast(weights, "float32")))  # (layers, dim, dim)
    roots = ops.diagonal(ops.cholesky(moments), axis1=1, axis2=2)
    traces = ops.trace(moments, axis1=1, axis2=2)
    return ops.sum(0.5 * (traces - dim) - ops.sum(ops.log(roots), axis=-1))
