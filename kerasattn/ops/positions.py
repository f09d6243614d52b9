"""Positions, as pure functions: sinusoids, relative positions, T5 buckets, hierarchical tables."""

import bisect
import math

import numpy as np
from keras import backend, ops


def frequencies(num_pairs, dim, base=10000.0):
    """Returns base^(-2i/dim) for i < num_pairs, float64 numpy, radians a position.

    Source: https://arxiv.org/abs/1706.03762, section 3.5.
    """
    return base ** (-2.0 * np.arange(num_pairs, dtype="float64") / dim)


def llama3_frequencies(
    frequencies,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=8192,
):
    """Returns the frequencies of a longer context: slow ones divided by `factor`, fast ones kept.

    Those that turn fewer than low_freq_factor times in the original length are slow, those that
    turn more than high_freq_factor times fast; between them the two are blended.

    Args:
        frequencies: numpy (num_pairs,), radians a position.
        factor, low_freq_factor, high_freq_factor: float > 0.
        original_max_position_embeddings: int, the length before it grew.

    Source: https://arxiv.org/abs/2407.21783; the `rope_scaling` of Llama 3.1's config.
    """
    turns = original_max_position_embeddings * frequencies / (2 * math.pi)
    fast = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor)
    fast = np.clip(fast, 0.0, 1.0)
    return frequencies * (fast + (1 - fast) / factor)


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


def sinusoidal(positions, dim, base=10000.0):
    """Returns sin and cos of each angle side by side, float32.

    An odd width ends with the sine whose cosine has no room.

    Args:
        positions: integer or float tensor (...).
        dim: int >= 1, the width.
        base: float > 0, about the longest wavelength over 2 pi.

    Shapes:
        (...) -> (..., dim).

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import positions
    >>> [round(float(v), 3) for v in positions.sinusoidal(np.array(1), 5)]
    [0.841, 0.54, 0.025, 1.0, 0.001]

    Source: https://arxiv.org/abs/1706.03762, section 3.5.
    """
    num_pairs = (dim + 1) // 2
    turned = angles(positions, frequencies(num_pairs, dim, base))  # (..., num_pairs)
    pairs = ops.stack([ops.sin(turned), ops.cos(turned)], axis=-1)  # (..., num_pairs, 2)
    return ops.reshape(pairs, (*ops.shape(turned)[:-1], 2 * num_pairs))[..., :dim]


def consecutive(x, start_index=0):
    """Returns start_index, start_index + 1, ... along axis 1 of x, int32.

    Args:
        x: tensor (batch, length, ...).
        start_index: int or integer tensor, scalar or (batch,).

    Shapes:
        -> (length,), numpy where length and start_index are known, or (batch, length).
    """
    length = x.shape[1]
    if isinstance(length, int) and isinstance(start_index, int | np.integer):
        return np.arange(start_index, start_index + length, dtype="int32")
    start = ops.cast(ops.convert_to_tensor(start_index), "int32")[..., None]
    return start + ops.arange(ops.shape(x)[1], dtype="int32")


def check_range(position_ids, end):
    """Raises a ValueError where positions that are already numbers leave [0, end).

    Inside a compiled function they are not: the table is then read out of range, unnoticed.
    """
    try:
        values = ops.convert_to_numpy(position_ids)
    except (TypeError, ValueError, NotImplementedError):
        return
    if values.size and (values.min() < 0 or values.max() >= end):
        raise ValueError(
            f"Positions must be in [0, {end}), got {values.min()} to {values.max()}. Shorten the "
            "input, or build with a longer table (max_length) or hierarchical=True."
        )


def hierarchical(table, position_ids, alpha=0.4):
    """Reads n^2 positions from a table of n, of which the first n are the table itself.

    With u = (table - alpha table[0]) / (1 - alpha), position p is
    alpha u[p // n] + (1 - alpha) u[p % n], here solved so that no rounding touches p < n.

    Args:
        table: float tensor (n, dim).
        position_ids: integer tensor (...) in [0, n^2).
        alpha: float in (0, 1), how much of a vector tells p // n.

    Shapes:
        (...) -> (..., dim).

    Raises:
        ValueError: if alpha is not in (0, 1) or a known position is out of range.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import positions
    >>> table = np.array([[1.0], [2.0], [3.0], [4.0]], dtype="float32")
    >>> [round(float(v), 4) for v in positions.hierarchical(table, np.array([3, 5, 15]))[:, 0]]
    [4.0, 2.6667, 6.0]

    Source: https://kexue.fm/archives/7947.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha}.")
    table = ops.convert_to_tensor(table)
    size = table.shape[0]
    check_range(position_ids, size**2)
    position_ids = ops.convert_to_tensor(position_ids)
    high = ops.take(table, position_ids // size, axis=0)
    low = ops.take(table, position_ids % size, axis=0)
    return low + (alpha / (1 - alpha)) * (high - table[0])


def relative(query_positions, key_positions):
    """Returns key minus query: (..., query), (..., key) -> (..., query, key), int32."""
    query_positions = ops.cast(ops.convert_to_tensor(query_positions), "int32")
    key_positions = ops.cast(ops.convert_to_tensor(key_positions), "int32")
    return key_positions[..., None, :] - query_positions[..., :, None]


def clipped(distances, max_distance):
    """Numbers the distances -max_distance, ..., max_distance from 0 on, farther ones as these.

    Shapes:
        integers (...) -> int32 (...) in [0, 2 max_distance].

    Source: https://arxiv.org/abs/1803.02155, section 3.2.
    """
    return ops.clip(distances, -max_distance, max_distance) + max_distance


def buckets(distances, num_buckets=32, max_distance=128, bidirectional=True):
    """Numbers distances (key minus query) by T5's buckets: exact when near, by logarithm when far.

    The edges are found in whole numbers, so that no logarithm is rounded or taken of 0.

    Args:
        distances: integer tensor (...).
        num_buckets: int, the number of buckets in all, even if bidirectional.
        max_distance: int, from which on all distances share the last bucket.
        bidirectional: bool. True: half the buckets are for keys that stand later. False: these all
            share bucket 0, for decoders that do not see them.

    Shapes:
        (...) -> int32 (...) in [0, num_buckets).

    Raises:
        ValueError: if there are too few buckets or max_distance is within the exact ones.

    Example:

    >>> import numpy as np
    >>> from kerasattn.ops import positions
    >>> [int(v) for v in positions.buckets(np.array([-20, -1, 0, 1, 20]))]
    [10, 1, 0, 17, 26]

    Source: https://arxiv.org/abs/1910.10683, section 2.1.
    """
    bucket_of = bucket_table(num_buckets, max_distance, bidirectional)
    distances = ops.cast(ops.convert_to_tensor(distances), "int32")
    sided = ops.abs(distances) if bidirectional else -distances
    number = ops.take(bucket_of, ops.clip(sided, 0, max_distance), axis=0)
    if bidirectional:
        number = number + ops.cast(distances > 0, "int32") * (num_buckets // 2)
    return number


def bucket_table(num_buckets, max_distance, bidirectional):
    """Returns the buckets of distances 0 ... max_distance on one side, int32 numpy."""
    sides = 2 if bidirectional else 1
    count = num_buckets // sides
    exact = count // 2
    if num_buckets % sides or exact < 1 or max_distance <= exact:
        raise ValueError(
            f"num_buckets must be at least {2 * sides}{', and even' if bidirectional else ''}, and "
            f"max_distance more than a {2 * sides}th of it, got num_buckets={num_buckets}, "
            f"max_distance={max_distance}."
        )
    # Bucket exact + k begins at exact (max_distance / exact)^(k / far); raised to the power of far.
    far = count - exact
    edges = [exact ** (far - k) * max_distance**k for k in range(far)]
    distances = range(max_distance + 1)
    return np.array(
        [d if d < exact else exact - 1 + bisect.bisect_right(edges, d**far) for d in distances],
        dtype="int32",
    )


MODES = ("add", "multiply", "concatenate", None)


def check_mode(mode):
    """Raises a ValueError for a mode that `merge` does not know."""
    if mode not in MODES:
        raise ValueError(f"mode must be one of {MODES}, got {mode!r}.")


def merge(x, encoding, mode):
    """Joins a position encoding (length, dim) or (batch, length, dim) to x (batch, length, dim).

    "add": x + encoding; "multiply": x (1 + encoding); "concatenate": after x's features; None:
    the encoding alone, (batch or 1, length, dim). In x's dtype.
    """
    encoding = ops.cast(encoding, x.dtype)
    encoding = encoding if len(encoding.shape) == 3 else encoding[None]
    if mode == "add":
        return x + encoding
    if mode == "multiply":
        return x + x * encoding
    if mode == "concatenate":
        shape = (*ops.shape(x)[:-1], encoding.shape[-1])
        return ops.concatenate([x, ops.broadcast_to(encoding, shape)], axis=-1)
    return encoding
