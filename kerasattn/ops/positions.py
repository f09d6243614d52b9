"""Positions, as pure functions: angles and sinusoids, T5 buckets, hierarchical tables, clipping."""

import math

import numpy as np
from keras import backend, ops


def frequencies(num_pairs, dim, base=10000.0):
    """Returns base^(-2i/dim) for i < num_pairs, float64 numpy, radians a position.

    Source: https://arxiv.org/abs/1706.03762, section 3.5.
    """
    return base ** (-2.0 * np.arange(num_pairs, dtype="float64") / dim)


def angles(positions, frequencies):
    """Returns position times frequency up to whole turns, in float32.

    Whole positions are multiplied in 32-bit fixed point, a turn being 2^32, where overflow drops
    exactly the whole turns: a float32 product would be wrong by 1e-2 radians at position 1e5, this
    one is within 1e-4. Fractional positions are multiplied in float32.

    Args:
        positions: integer or float tensor (...).
        frequencies: numpy (num_pairs,), radians a position.

    Shapes:
        (...) -> (..., num_pairs).
    """
    positions = ops.convert_to_tensor(positions)[..., None]
    if not backend.is_int_dtype(positions.dtype):
        return ops.cast(positions, "float32") * frequencies.astype("float32")
    turns = np.round(frequencies / (2 * math.pi) * 2.0**32).astype("int64").astype("int32")
    phases = ops.cast(positions, "int32") * turns
    return ops.cast(phases, "float32") * np.float32(2 * math.pi / 2.0**32)
