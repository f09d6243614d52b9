"""The von Mises-Fisher distribution on the unit sphere: draws, densities, entropy, divergence.

A vector z of the sphere in `dim` dimensions has density ∝ exp(kappa * mu·z) around the mean
direction mu. With w = mu·z = cos(angle), the angle alone has density
∝ exp(kappa * cos(angle)) * sin(angle)^(dim - 2), and the rest of z is uniform. So a draw is an
angle, by inverse transform from a small table, and a uniform direction orthogonal to mu.

The angle is tabulated, not w: at dim 2 and kappa 1e4 w rounds to 1 in float32 and the density of
w has poles at both ends. The table is over a standard normal variable, not over a uniform one:
as a function of it the angle is smooth up to both tails, so 4,096 entries are exact to about 1e-6.

Everything numeric that depends on kappa alone is numpy in float64 (no Bessel library needed);
everything on tensors is keras.ops in float32, whatever the policy.
"""

import math

import numpy as np
from keras import ops, random

TABLE_SIZE = 4096
TABLE_END = 6.0  # the table covers ±6 standard deviations: all but 2e-9 of the probability


# === Draws ===


def radial_quantiles(dim, kappa, size=TABLE_SIZE):
    """Tabulates the angle between a draw and its mean direction.

    Args:
        dim: int >= 2, the number of dimensions of the vectors.
        kappa: float >= 0, the concentration. 0 is uniform on the sphere.
        size: int >= 2, the number of entries.

    Returns:
        A numpy array (size,) in float32, increasing: entry i is the angle (radians, 0 to π)
        whose cumulative probability is that of a standard normal variable at
        -6 + 12 * i / (size - 1).

    Raises:
        ValueError: if `dim` is less than 2, or `kappa` negative, infinite or not a number.

    Example:

    >>> from kerasattn.ops import vmf
    >>> table = vmf.radial_quantiles(dim=16, kappa=32.0)
    >>> table.shape
    (4096,)
    """
    dim, kappa = _checked(dim, kappa)
    angles = _angle_grid(dim, kappa)
    density = np.exp(_log_angle_density(dim, kappa, angles))
    cells = (density[1:] + density[:-1]) / 2
    cells = cells / cells.sum()
    below = np.concatenate([[0.0], np.cumsum(cells)])
    above = np.concatenate([np.cumsum(cells[::-1])[::-1], [0.0]])
    # Each tail is inverted from its own end, where its probabilities have full precision.
    normal = np.linspace(-TABLE_END, TABLE_END, size)
    tail = np.array([math.erfc(abs(x) / math.sqrt(2)) / 2 for x in normal])
    low = np.interp(tail, below, angles)
    high = np.interp(tail, above[::-1], angles[::-1])
    return np.where(normal < 0, low, high).astype("float32")


def sample(mean_direction, table, seed=None):
    """Draws one vector around each mean direction.

    The draw turns rigidly with the mean direction, which gives the gradient: exact for every
    expectation over z, of bounded size, orthogonal to mu. kappa is fixed: the table is a
    constant, and there is no gradient with respect to it.

    Args:
        mean_direction: tensor (..., dim) of unit norm; normalised in float32 where it is not
            exactly.
        table: from `radial_quantiles` of the same dim.
        seed: int, `keras.random.SeedGenerator`, or None.

    Shapes:
        (..., dim) -> (..., dim), of the same dtype and of unit norm.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import vmf
    >>> mu = np.eye(8, dtype="float32")
    >>> z = vmf.sample(mu, vmf.radial_quantiles(dim=8, kappa=100.0), seed=1)
    >>> z.shape == (8, 8)
    True
    >>> bool(np.all(np.sum(np.asarray(z) * mu, axis=-1) > 0.5))
    True
    """
    mean_direction = ops.convert_to_tensor(mean_direction)
    shape = ops.shape(mean_direction)
    # One draw for both parts, so that an int seed does not make them depend on each other.
    noise = random.normal((*shape[:-1], shape[-1] + 1), dtype="float32", seed=seed)
    angle = angles(noise[..., :1], table)  # (..., 1)
    return _turn(mean_direction, ops.cos(angle), ops.sin(angle), noise[..., 1:])


def angles(normal, table):
    """Maps standard normal variables to angles between draws and their mean direction.

    Args:
        normal: tensor of any shape.
        table: from `radial_quantiles`.

    Shapes:
        (...) -> (...), float32, in radians: increasing in each element.

    Example:

    >>> from kerasattn.ops import vmf
    >>> table = vmf.radial_quantiles(dim=3, kappa=0.0)
    >>> round(float(vmf.angles(0.0, table)), 4)  # the median: π / 2
    1.5708
    """
    table = ops.convert_to_tensor(table, "float32")
    last = table.shape[0] - 1
    position = (ops.cast(normal, "float32") + TABLE_END) * (last / (2 * TABLE_END))
    position = ops.clip(position, 0.0, last)
    index = ops.minimum(ops.cast(ops.floor(position), "int32"), last - 1)
    low, high = ops.take(table, index), ops.take(table, index + 1)
    return low + (high - low) * (position - ops.cast(index, "float32"))


def combine(mean_direction, w, noise, w_complement=None):
    """Builds the vectors that have a given cosine to their mean directions.

    z = w * mu + sqrt(1 - w²) * nu, where nu is the part of the noise that is orthogonal to mu,
    of unit norm. `sample` is this with w and noise drawn.

    Args:
        mean_direction: tensor (..., dim) of unit norm.
        w: tensor (..., 1), the cosines, -1 to 1.
        noise: tensor (..., dim), any vectors not all parallel to mu. Where one is, some other
            direction orthogonal to mu takes its place.
        w_complement: tensor (..., 1) or None: 1 - w, where w itself rounds to 1.

    Shapes:
        (..., dim), (..., 1), (..., dim) -> (..., dim), of the dtype of `mean_direction`.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import vmf
    >>> z = vmf.combine(np.array([[1.0, 0.0]]), np.array([[0.6]]), np.array([[5.0, 2.0]]))
    >>> bool(np.allclose(z, [[0.6, 0.8]], atol=1e-6))
    True

    Source: https://arxiv.org/abs/1808.10805, section 3.
    """
    w = ops.cast(w, "float32")
    complement = 1.0 - w if w_complement is None else ops.cast(w_complement, "float32")
    sine = ops.sqrt(ops.maximum(complement * (2.0 - complement), 0.0))
    return _turn(mean_direction, w, sine, noise)


def uniform(shape, dim, seed=None, dtype="float32"):
    """Draws vectors uniformly on the unit sphere.

    Args:
        shape: tuple of ints, the shape before the last axis.
        dim: int >= 1, the number of dimensions of a vector.
        seed: int, `keras.random.SeedGenerator`, or None.
        dtype: the dtype of the vectors; they are drawn in float32.

    Shapes:
        -> (*shape, dim) of unit norm.

    Example:

    >>> from kerasattn.ops import vmf
    >>> tuple(vmf.uniform((3, 4), dim=16, seed=0).shape)
    (3, 4, 16)
    """
    return ops.cast(_unit(random.normal((*shape, dim), dtype="float32", seed=seed)), dtype)


# === Densities ===


def log_density(samples, mean_direction, kappa):
    """Evaluates the log density of unit vectors, in nats, per unit of area of the sphere.

    Args:
        samples: tensor (..., dim) of unit norm.
        mean_direction: tensor of a shape that broadcasts with it, of unit norm.
        kappa: float >= 0, the concentration.

    Shapes:
        (..., dim), (..., dim) -> (...), float32.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import vmf
    >>> mu = np.array([1.0, 0.0, 0.0])
    >>> round(float(vmf.log_density(-mu, mu, kappa=0.0)), 4)  # -log(4π)
    -2.531
    """
    dim, kappa = _checked(np.shape(samples)[-1], kappa)
    samples = ops.cast(samples, "float32")
    mean_direction = ops.cast(mean_direction, "float32")
    # kappa * (w - 1) through the squared distance: w loses its digits near 1.
    distance = ops.sum(ops.square(samples - mean_direction), axis=-1)
    peak = kappa - log_mean_exp(dim, kappa) - _log_area(dim)
    return peak - 0.5 * kappa * distance


def mean_resultant_length(dim, kappa):
    """Gives E[mu·z], the ratio I_{dim/2}(kappa) / I_{dim/2-1}(kappa) of Bessel functions.

    Args:
        dim: int >= 2.
        kappa: float >= 0.

    Returns:
        A float between 0 and 1.

    Example:

    >>> from kerasattn.ops import vmf
    >>> round(vmf.mean_resultant_length(dim=16, kappa=32.0), 5)
    0.7899
    """
    dim, kappa = _checked(dim, kappa)
    return float(_bessel_ratio(dim, np.array(kappa)))


def entropy(dim, kappa):
    """Gives the differential entropy, in nats.

    Args:
        dim: int >= 2.
        kappa: float >= 0.

    Returns:
        A float; for kappa 0 the logarithm of the sphere's area.

    Example:

    >>> from kerasattn.ops import vmf
    >>> round(vmf.entropy(dim=2, kappa=0.0), 4)  # log(2π)
    1.8379
    """
    dim, kappa = _checked(dim, kappa)
    return _log_area(dim) - kl_to_uniform(dim, kappa)


def kl_to_uniform(dim, kappa):
    """Gives the Kullback-Leibler divergence to the uniform distribution, in nats.

    This is the rate of a vMF autoencoder: for a fixed kappa a constant. Divide by log(2) for bits.

    Args:
        dim: int >= 2.
        kappa: float >= 0.

    Example:
    >>> import math
    >>> from kerasattn.ops import vmf
    >>> round(4 * vmf.kl_to_uniform(dim=16, kappa=32.0) / math.log(2), 2)  # bits
    43.75
    """
    dim, kappa = _checked(dim, kappa)
    return kappa * mean_resultant_length(dim, kappa) - log_mean_exp(dim, kappa)


# === Parts ===


def _checked(dim, kappa):
    if dim is None or int(dim) != dim or dim < 2:
        raise ValueError(
            f"dim must be a whole number of at least 2, got {dim}. Give vectors whose last axis "
            "is at least 2 wide and known when the layer is built."
        )
    kappa = float(kappa)
    if not 0 <= kappa < math.inf:
        raise ValueError(f"kappa must be finite and not negative, got {kappa}.")
    return int(dim), kappa


def _bessel_ratio(dim, kappa):
    """I_{dim/2} / I_{dim/2-1} at each kappa, by the backward recurrence in float64.

    Started from Amos' bound far out, where it is nearly exact; each step back shrinks the error.
    Source: D. E. Amos, "Computation of modified Bessel functions and their ratios", 1974.
    """
    terms = 60 + int(8 * math.sqrt(np.max(kappa)))
    order = dim / 2 - 1 + terms
    ratio = kappa / (order + 0.5 + np.sqrt(kappa**2 + (order + 1.5) ** 2))
    for step in range(1, terms + 1):
        ratio = kappa / (2 * (order - step + 1) + kappa * ratio)
    return ratio


def log_mean_exp(dim, kappa):
    """log E[exp(kappa * w)] for z uniform, as the integral of the mean resultant length.

    Free of cancellation at small kappa, unlike the logarithm of a Bessel function.
    """
    ends = [0.0, *(2.0 ** np.arange(0, 64))]
    ends = np.array([e for e in ends if e < kappa] + [kappa])
    points, weights = np.polynomial.legendre.leggauss(24)
    half = np.diff(ends)[:, None] / 2  # (panels, 1)
    x = ends[:-1, None] + half * (points + 1)  # (panels, 24)
    return float(np.sum(_bessel_ratio(dim, x) * weights * half)) if kappa > 0 else 0.0


def _log_area(dim):
    """The logarithm of the area of the unit sphere in `dim` dimensions."""
    return math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2)


def _log_angle_density(dim, kappa, angle):
    """The log density of the angle, up to a constant; finite or -inf, at most 0 or so."""
    # kappa * (cos(angle) - 1), without its cancellation at small angles.
    value = -2 * kappa * np.sin(angle / 2) ** 2
    if dim > 2:
        with np.errstate(divide="ignore"):
            value = value + (dim - 2) * np.log(np.sin(angle))
    return value - _peak(dim, kappa)[1]


def _peak(dim, kappa):
    """The most probable angle, and the log density there before it is shifted."""
    if dim == 2:
        return 0.0, 0.0
    cosine = 2 * kappa / (dim - 2 + math.hypot(dim - 2, 2 * kappa))
    angle = math.acos(cosine)
    return angle, -2 * kappa * math.sin(angle / 2) ** 2 + (dim - 2) * math.log(math.sin(angle))


def _angle_grid(dim, kappa, size=2**15, depth=60.0):
    """Angles that cover all but exp(-60) of the peak's density, evenly."""
    peak = _peak(dim, kappa)[0]
    ends = []
    for outside in (0.0, math.pi):
        if _log_angle_density(dim, kappa, outside) < -depth:
            inside = peak
            for _ in range(60):
                middle = (inside + outside) / 2
                if _log_angle_density(dim, kappa, middle) < -depth:
                    outside = middle
                else:
                    inside = middle
        ends.append(outside)
    return np.linspace(*ends, size)


def _turn(mean_direction, cosine, sine, noise):
    """z at the given angle from each mean direction, towards the noise; turns with mu."""
    dtype = ops.convert_to_tensor(mean_direction).dtype
    mean = _unit(ops.cast(mean_direction, "float32"))
    fixed = ops.stop_gradient(mean)
    nu = _orthogonal(ops.cast(noise, "float32"), fixed)
    z = ops.stop_gradient(_unit(cosine * fixed + sine * nu))
    # The smallest rotation that takes mu to mu + step moves z by step*(mu·z) - mu*(step·z). The
    # step is zero: the value is z, and the gradient is the rotation's.
    step = mean - fixed
    z = z + step * _dot(fixed, z) - fixed * _dot(step, z)
    return ops.cast(z, dtype)


def _orthogonal(vector, mean):
    """The unit vector along the part of each vector that is orthogonal to a unit mean."""
    # Where a vector is parallel to the mean, start from the axis that is furthest from it.
    axis = ops.one_hot(ops.argmin(ops.abs(mean), axis=-1), mean.shape[-1], dtype="float32")
    first = _project_out(_unit(vector), mean)
    norm = _dot(first, first)
    first = ops.where(norm > 1e-12, first, _project_out(axis, mean))
    # Twice is enough: one projection of a nearly parallel vector leaves rounding along the mean.
    return _unit(_project_out(_unit(first), mean))


def _project_out(vector, mean):
    return vector - mean * _dot(vector, mean)


def _dot(a, b):
    return ops.sum(a * b, axis=-1, keepdims=True)


def _unit(x):
    """Scales to unit norm; the zero vector becomes the first axis, with no gradient."""
    square = _dot(x, x)
    zero = square < 1e-30
    axis = ops.one_hot(ops.zeros_like(x[..., 0], dtype="int32"), x.shape[-1], dtype="float32")
    return ops.where(zero, axis, x * ops.rsqrt(ops.where(zero, 1.0, square)))
