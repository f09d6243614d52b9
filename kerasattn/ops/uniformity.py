"""How unlike independent uniform draws on spheres a batch of latents is."""

from keras import ops

from kerasattn.ops import vmf


def uniformity(latents, concentration=4.0, weights=None):
    """Compares pairs of a batch with pairs of independent uniform draws, each layer on its sphere.

    The logarithm of the mean of k(x, y) = exp(concentration * sum over layers of cos(x_l, y_l))
    over the pairs of different rows, less the same for uniform draws, which is known exactly. It
    is 0, but for the chance of few rows, if and only if each layer fills its sphere and no layer
    tells of another; else positive. (The maximum mean discrepancy of kernel k against the uniform
    distribution is the difference of the same two means, without their logarithms.)

    Args:
        latents: (batch, layers, dim), of unit norm, dim >= 2.
        concentration: float > 0; the higher, the finer the differences that count, and the more
            rows it takes to see them.
        weights: (batch,), 0 for rows that do not count, else 1.

    Returns:
        A scalar in float32, in nats; 0 where there is no pair.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops.uniformity import uniformity
    >>> from kerasattn.ops import vmf
    >>> latents = np.array(vmf.uniform((512, 2), 8, seed=0))
    >>> abs(float(uniformity(latents))) < 0.02
    True
    >>> latents[:, 1] = latents[:, 0]  # each uniform, but not independent
    >>> float(uniformity(latents)) > 0.5
    True

    Source: https://arxiv.org/abs/2005.10242, section 4.2, with the dot product of its kernel
    summed over layers; as a penalty of autoencoders https://arxiv.org/abs/1711.01558.
    """
    _, layers, dim = latents.shape
    rows = ops.reshape(ops.cast(latents, "float32"), (-1, layers * dim))
    count = ops.shape(rows)[0]
    weights = ops.ones((count,)) if weights is None else ops.cast(weights, "float32")
    pairs = weights[:, None] * weights * (1.0 - ops.eye(count))  # (batch, batch)
    total = ops.sum(pairs)
    cosines = ops.matmul(rows, ops.transpose(rows))
    exponents = ops.where(pairs > 0, concentration * cosines, -1e30)
    mean = ops.logsumexp(exponents) - ops.log(ops.maximum(total, 1.0))
    expected = layers * vmf.log_mean_exp(dim, concentration)
    return ops.where(total > 0, mean - expected, 0.0)
