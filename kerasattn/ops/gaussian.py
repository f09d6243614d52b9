"""The diagonal normal distribution as a latent: draws and divergences, stable in every dtype."""

import math

from keras import ops, random

# Beyond this log variance (a standard deviation of about 3,000) draws stop growing and the
# divergence goes on along its tangent, so that both stay finite, in float16 too, with a gradient.
LOG_VAR_MAX = 16.0


def sample(mean, log_var, seed=None):
    """Draws mean + exp(log_var / 2) * noise, in float32 inside.

    Args:
        mean: tensor (..., dim).
        log_var: tensor (..., dim), the logarithm of the variance.
        seed: int, `keras.random.SeedGenerator`, or None.

    Shapes:
        (..., dim), (..., dim) -> (..., dim), of the dtype of `mean`.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import gaussian
    >>> z = gaussian.sample(np.ones((2, 3), "float32"), np.full((2, 3), -100.0), seed=0)
    >>> np.round(np.asarray(z), 3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    mean = ops.convert_to_tensor(mean)
    noise = random.normal(ops.shape(mean), dtype="float32", seed=seed)
    deviation = ops.exp(0.5 * ops.minimum(ops.cast(log_var, "float32"), LOG_VAR_MAX))
    return ops.cast(ops.cast(mean, "float32") + deviation * noise, mean.dtype)


def kl_terms(mean, log_var):
    """Gives the divergence to the standard normal of each dimension, in nats, in float32.

    Args:
        mean: tensor (..., dim).
        log_var: tensor (..., dim), the logarithm of the variance.

    Shapes:
        (..., dim), (..., dim) -> (..., dim)
    """
    mean, log_var = ops.cast(mean, "float32"), ops.cast(log_var, "float32")
    inside = ops.minimum(log_var, LOG_VAR_MAX)
    variance = ops.exp(inside) * (1.0 + log_var - inside)
    return 0.5 * (ops.square(mean) + variance - 1.0 - log_var)


def kl(mean, log_var):
    """Gives the divergence of each diagonal normal to the standard normal, in nats.

    The sum over the dimensions, not their mean: that is the term of the variational bound.

    Args:
        mean: tensor (..., dim).
        log_var: tensor (..., dim), the logarithm of the variance.

    Shapes:
        (..., dim), (..., dim) -> (...), float32.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import gaussian
    >>> np.asarray(gaussian.kl(np.ones((4, 16)), np.zeros((4, 16)))).tolist()
    [8.0, 8.0, 8.0, 8.0]

    Source: https://arxiv.org/abs/1312.6114, appendix B.
    """
    return ops.sum(kl_terms(mean, log_var), axis=-1)


def free_bits_kl(mean, log_var, free_bits=0.0, rows=None):
    """Gives the mean divergence of a batch, in nats, with a floor for each dimension.

    A dimension whose divergence, averaged over the batch, is below the floor counts as the floor:
    it has no gradient, so nothing pushes it to carry less.

    Args:
        mean: tensor (batch, ..., dim).
        log_var: tensor (batch, ..., dim), the logarithm of the variance.
        free_bits: float >= 0, the floor in bits per dimension. 0 is the plain mean divergence.
        rows: bool (batch,), the rows that count; None for all. Where none does, 0 is the mean.

    Shapes:
        (batch, ..., dim), (batch, ..., dim) -> (), float32: summed over all axes but the batch.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import gaussian
    >>> zeros = np.zeros((4, 16))
    >>> round(float(gaussian.free_bits_kl(zeros, zeros, free_bits=0.5)), 4)  # 16 * 0.5 * log(2)
    5.5452

    Source: https://arxiv.org/abs/1606.04934, equation 15.
    """
    terms = kl_terms(mean, log_var)
    if rows is None:
        terms = ops.mean(terms, axis=0)
    else:
        weights = ops.cast(rows, "float32")  # (batch,)
        total = ops.sum(weights)
        terms = ops.tensordot(weights, terms, axes=1) / ops.maximum(total, 1.0)
    if free_bits:
        terms = ops.maximum(terms, free_bits * math.log(2))
    return ops.sum(terms)
