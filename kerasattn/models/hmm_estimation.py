"""Counting for hidden Markov models, on the host and in float64."""

import math
import numbers

import numpy as np

from kerasattn.ops.hmm_recursions import IMPOSSIBLE


def read(observations, padding_mask, dims):
    """Observations as an array (batch, length, ...) and a mask; a list of sequences is padded.

    Raises:
        ValueError: for a mask of another shape, sequences of another rank or of several dims,
            numbers that are not finite, or nothing at all.

    Example:
    >>> from kerasattn.models import hmm_estimation
    >>> observations, mask = hmm_estimation.read([[7, 8], [9]], None, dims=0)
    >>> observations.tolist(), mask.tolist()
    ([[7, 8], [9, 0]], [[True, True], [True, False]])
    """
    if isinstance(observations, (list, tuple)):
        if padding_mask is not None:
            raise ValueError("A list of sequences is padded here: give no padding_mask.")
        rows = [np.asarray(row) for row in observations]
        _refuse_lone(rows and all(row.ndim == dims for row in rows))
        alike = len({row.shape[1:] for row in rows}) == 1
        if not alike or any(row.ndim != 1 + dims for row in rows):
            raise ValueError(
                f"Expected sequences of rank {1 + dims}, all of one dim, got "
                f"{[row.shape for row in rows[:5]]}."
            )
        lengths = np.array([len(row) for row in rows])
        padding_mask = np.arange(lengths.max())[None] < lengths[:, None]
        # What an empty list has for a dtype says nothing.
        dtype = np.result_type(*([row for row in rows if len(row)] or rows))
        observations = np.zeros((*padding_mask.shape, *rows[0].shape[1:]), dtype)
        for padded, row in zip(observations, rows):
            padded[: len(row)] = row
    observations = np.asarray(observations)
    _refuse_lone(observations.ndim == 1 + dims)
    if observations.ndim != 2 + dims:
        raise ValueError(
            f"observations take the rank {2 + dims}, got the shape {observations.shape}."
        )
    shape = observations.shape[:2]
    mask = np.ones(shape, bool) if padding_mask is None else np.asarray(padding_mask).astype(bool)
    if mask.shape != shape or not mask.any():
        raise ValueError(
            f"padding_mask takes the shape {shape} and some real steps, got {mask.shape} with "
            f"{int(mask.sum())}."
        )
    kind = observations.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore"):
            observations = observations.astype("float32")
        finite = np.isfinite(observations).reshape(*shape, -1).all(axis=-1)
        if not finite[mask].all():
            row, step = np.argwhere(~finite & mask)[0]
            raise ValueError(f"observations must be finite, that of row {row}, step {step} is not.")
        return observations, mask
    # What 32 bits cannot hold stays as it is, to be refused rather than cut.
    fits = kind in "iu" and np.array_equal(observations, observations.astype("int32"))
    return observations.astype("int32") if fits else observations, mask


def _refuse_lone(is_lone):
    if is_lone:
        raise ValueError(
            "Expected a list of sequences, or an array (batch, length, ...), got one sequence: "
            "give it as [sequence], such as [[0, 1, 2]] for [0, 1, 2]."
        )


def read_states(states, mask, num_states):
    """States as int (batch, length), of real steps in range.

    Raises:
        ValueError: for states of other lengths or out of range.
    """
    if isinstance(states, (list, tuple)):
        states, there = read(states, None, dims=0)
        if not np.array_equal(there, mask):
            raise ValueError("Observations and states have different lengths.")
    states = np.asarray(states)
    if states.shape != mask.shape or states.dtype.kind not in "iu":
        raise ValueError(
            f"states take integers of the shape {mask.shape}, got {states.dtype} {states.shape}."
        )
    low, high = states[mask].min(), states[mask].max()
    if low < 0 or high >= num_states:
        bad = low if low < 0 else high
        raise ValueError(f"states are from 0 to {num_states - 1}, got {bad}.")
    return states


def count(observations, states, mask, num_states):
    """Counts of first states (N,) and transitions (N, N), and of real steps the observations and
    which state each is in (steps, N)."""
    initial, transitions = np.zeros(num_states), np.zeros((num_states, num_states))
    for row, real in zip(states, mask):
        path = row[real]
        np.add.at(initial, path[:1], 1)
        np.add.at(transitions, (path[:-1], path[1:]), 1)
    return initial, transitions, observations[mask], np.eye(num_states)[states[mask]]


def first_states(posteriors, mask):
    """The expected counts of first states: (N,)."""
    rows = np.flatnonzero(mask.any(axis=1))
    return posteriors[rows, mask[rows].argmax(axis=1)].sum(axis=0, dtype="float64")


def shares(counts, empty=None):
    """Rows of counts as probabilities; a row of zeros is that of `empty`, or even.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import hmm_estimation
    >>> hmm_estimation.shares(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    total = counts.sum(axis=-1, keepdims=True)
    empty = 1 / counts.shape[-1] if empty is None else empty
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), empty)


def spread(points, number, random):
    """So many of the points (n, dim), far from each other."""
    chosen = [points[random.integers(len(points))]]
    distances = np.full(len(points), np.inf)
    while len(chosen) < number:
        distances = np.minimum(distances, np.square(points - chosen[-1]).sum(axis=1))
        total = distances.sum()
        even = np.full(len(points), 1 / len(points))
        chosen.append(points[random.choice(len(points), p=distances / total if total else even)])
    return np.stack(chosen)


def log(probabilities):
    """The logarithm, of 0 a finite one."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(probabilities), IMPOSSIBLE)


def check(name, value, shape):
    """A parameter as float64.

    Raises:
        ValueError: for another shape, or what it cannot be.
    """
    value = np.asarray(value, "float64")
    if value.shape != shape:
        raise ValueError(f"{name} takes the shape {shape}, got {value.shape}.")
    if name == "variances":
        if not (np.isfinite(value) & (value > 0)).all():
            raise ValueError(f"variances must be finite and above 0, got {value.min()}.")
    elif name == "means":
        if not np.isfinite(value).all():
            raise ValueError("means must be finite.")
    elif not ((value >= 0).all() and np.allclose(value.sum(axis=-1), 1, atol=1e-3)):
        raise ValueError(
            f"Each row of {name} holds probabilities that sum to 1, got a row that sums to "
            f"{np.ravel(value.sum(axis=-1))[0]:.4g} and a least number of {value.min():.4g}."
        )
    return value


def check_smoothing(smoothing):
    """Refuses what cannot be added to counts.

    Raises:
        ValueError: for a number that is negative or not finite.
    """
    if not isinstance(smoothing, numbers.Real) or not 0 <= smoothing < math.inf:
        raise ValueError(f"smoothing must be finite and not negative, got {smoothing!r}.")
    return smoothing
