"""Capsules: vectors whose length says how sure it is that something is there.

Lengths, squashing and routing by agreement. All of it is computed in float32 (float64 for float64)
and returned in the dtype that was given, and no gradient is infinite at a capsule of zeros.

Source: https://arxiv.org/abs/1710.09829 (Sabour, Frosst, Hinton 2017).
"""

import keras
from keras import ops


def lengths(x):
    """The Euclidean length of each vector; its gradient at a vector of zeros is 0.

    Neither large nor small numbers overflow on the way: they are scaled by the largest.

    Args:
        x: float (..., dim).

    Shapes:
        (..., dim) -> (...)

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import routing
    >>> [float(n) for n in routing.lengths(np.array([[3.0, 4.0], [0.0, 0.0]], "float32"))]
    [5.0, 0.0]
    """
    x = ops.convert_to_tensor(x)
    return ops.cast(_lengths(_precise(x))[..., 0], x.dtype)


def squash(x):
    """Shortens vectors to lengths in [0, 1), their directions kept: n becomes n² / (1 + n²).

    Args:
        x: float (..., dim).

    Shapes:
        (..., dim) -> (..., dim)

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import routing
    >>> np.array(routing.squash(np.array([3.0, 4.0], "float32")), "float64").round(6).tolist()
    [0.576923, 0.769231]

    Source: equation 1.
    """
    x = ops.convert_to_tensor(x)
    return ops.cast(_squash(_precise(x)), x.dtype)


def dynamic_routing(votes, num_routings=3, padding_mask=None):
    """Routing by agreement: input capsules send their votes where most others agree with them.

    Each input capsule divides itself between the output capsules, by a softmax over them. An output
    capsule is the squashed sum of the votes that it gets; what agrees with it gets more of the
    next round.

    Args:
        votes: float (batch, out, in, dim), what each input capsule says of each output capsule.
        num_routings: int >= 1, rounds. The first divides evenly.
        padding_mask: bool (batch, in), True = a real input capsule; None for all.

    Shapes:
        -> (batch, out, dim)

    Raises:
        ValueError: if num_routings is less than 1.

    Example: two input capsules agree on what the first output capsule is, and contradict each
    other about the second.

    >>> import numpy as np
    >>> from kerasattn.ops import routing
    >>> votes = np.array([[[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, -1.0]]]], "float32")
    >>> capsules = routing.dynamic_routing(votes, num_routings=3)
    >>> [round(float(n), 2) for n in routing.lengths(capsules)[0]]
    [0.69, 0.0]

    Source: procedure 1.
    """
    if num_routings < 1:
        raise ValueError(f"num_routings must be at least 1, got {num_routings}.")
    votes = ops.convert_to_tensor(votes)
    dtype, votes = votes.dtype, _precise(votes)
    logits = ops.zeros_like(votes[..., 0])  # (batch, out, in)
    capsules = ops.zeros_like(votes[:, :, 0])  # (batch, out, dim)
    for _ in range(num_routings):
        logits = logits + ops.matmul(votes, capsules[..., None])[..., 0]  # the first adds 0
        shares = ops.softmax(logits, axis=1)
        if padding_mask is not None:
            shares = shares * ops.cast(padding_mask, shares.dtype)[:, None, :]
        sums = ops.matmul(shares[:, :, None, :], votes)  # (batch, out, 1, dim)
        capsules = _squash(sums[:, :, 0])
    return ops.cast(capsules, dtype)


def keep_labelled(capsules, labels):
    """Sets all capsules but those of the labels to zero.

    Args:
        capsules: float (batch, num_capsules, dim).
        labels: int (batch,), the one to keep, or (batch, number), of which each has its own copy.

    Shapes:
        -> (batch, num_capsules, dim), or (batch, number, num_capsules, dim)
    """
    kept = ops.one_hot(ops.cast(labels, "int32"), capsules.shape[1], dtype=capsules.dtype)
    if len(labels.shape) == 2:
        capsules = capsules[:, None]
    return capsules * kept[..., None]


def _precise(x):
    return ops.cast(x, keras.backend.result_type(x.dtype, "float32"))


def _lengths(x):
    """(..., dim) -> (..., 1)"""
    largest = ops.stop_gradient(ops.max(ops.abs(x), axis=-1, keepdims=True))
    there = largest > 0
    scale = ops.where(there, largest, 1.0)
    squares = ops.sum(ops.square(x / scale), axis=-1, keepdims=True)
    # The root of 1 in the place of that of 0, whose gradient is infinite.
    return ops.where(there, scale * ops.sqrt(ops.where(there, squares, 1.0)), 0.0)


def _squash(x):
    n = _lengths(x)
    # n / (1 + n²) is the same for n and 1 / n, of which the smaller has a square.
    small = ops.where(n > 1, 1 / ops.maximum(n, 1.0), n)
    return x * (small / (1 + ops.square(small)))
