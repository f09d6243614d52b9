"""Choosing a token from logits: the kept set of top-k, top-p, min-p; an inverse-transform draw.

Everything is computed in float32 and deterministic: the random number is an argument.
"""

import numbers

import ml_dtypes
import numpy as np
from keras import backend, ops


def kept_tokens(logits, top_k=None, top_p=None, min_p=None):
    """The tokens that top-k, top-p and min-p sampling keep, a boolean of the logits' shape.

    Top-p keeps the smallest set of most probable tokens whose probability reaches `top_p`, never
    less than the best token; with `top_k` given too, probabilities are those among the k kept.
    Equal logits go in the order of their ids. A sum within rounding of `top_p` has reached it.

    Args:
        logits: float tensor (..., vocabulary).
        top_k: int >= 1 or None; more than the vocabulary keeps all.
        top_p: float or scalar tensor in [0, 1], or None. 0 keeps the best token, 1 keeps all.
        min_p: float or scalar tensor in [0, 1], or None. Keeps the tokens that are at least so many
            times as probable as the best one: 0 keeps all, 1 the best and its equals.

    Shapes:
        (..., vocabulary) -> (..., vocabulary) bool.

    Raises:
        ValueError: if top_k is below 1, or top_p or min_p, given as numbers, outside [0, 1].

    Example:
        >>> import numpy as np
        >>> from kerasattn.ops import sampling
        >>> logits = np.log(np.array([[0.5, 0.35, 0.1, 0.05]], "float32"))
        >>> np.asarray(sampling.kept_tokens(logits, top_p=0.9)).astype(int).tolist()
        [[1, 1, 1, 0]]

    Source: https://arxiv.org/abs/1904.09751, equation 2; min-p https://arxiv.org/abs/2407.01082,
    section 3.
    """
    check_top_k(top_k)
    check_top_p(top_p)
    check_min_p(min_p)
    rounding = max(_epsilon(backend.standardize_dtype(logits.dtype)), 1e-6)
    logits = ops.cast(logits, "float32")
    kept = ops.ones_like(logits, dtype="bool")
    if top_k is not None and top_k < logits.shape[-1]:
        kept = _best(logits, ops.ones_like(logits), float(top_k))
    if top_p is not None:
        logits = ops.where(kept, logits, -np.inf)
        top_p = ops.cast(top_p, "float32")
        target = ops.where(top_p >= 1, np.inf, ops.maximum(top_p - rounding, 1e-9))
        kept = ops.logical_and(kept, _best(logits, ops.softmax(logits, axis=-1), target))
    if min_p is not None:
        share = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))  # of the best one
        kept = ops.logical_and(kept, share >= ops.cast(min_p, "float32") * (1 - rounding))
    return kept


def filter_logits(logits, top_k=None, top_p=None, min_p=None):
    """Logits in float32 with -inf for all tokens that top-k, top-p and min-p leave out.

    See `kept_tokens` for arguments, shapes and errors.
    """
    if top_k is None and top_p is None and min_p is None:
        return ops.cast(logits, "float32")
    kept = kept_tokens(logits, top_k, top_p, min_p)
    return ops.where(kept, ops.cast(logits, "float32"), -np.inf)


def temper(logits, temperature):
    """Logits divided by a temperature > 0, shifted to a maximum of 0 so that nothing overflows."""
    logits = ops.cast(logits, "float32")
    return (logits - ops.max(logits, axis=-1, keepdims=True)) / temperature


def draw(logits, uniform):
    """The first token whose cumulative probability exceeds `uniform` times the total.

    A token of probability zero is never drawn.

    Args:
        logits: float tensor (batch, vocabulary); -inf is probability zero.
        uniform: float32 tensor (batch,) in [0, 1).

    Shapes:
        (batch, vocabulary), (batch,) -> (batch,) int32.
    """
    probabilities = ops.softmax(ops.cast(logits, "float32"), axis=-1)
    cumulative = ops.cumsum(probabilities, axis=-1)
    target = uniform[:, None] * cumulative[:, -1:]
    hit = ops.logical_and(cumulative > target, probabilities > 0)
    # Rounding can leave no hit where uniform is just below 1.
    token = ops.where(
        ops.any(hit, axis=-1),
        ops.argmax(ops.cast(hit, "int32"), axis=-1),
        ops.argmax(probabilities, axis=-1),
    )
    return ops.cast(token, "int32")


def check_top_k(top_k):
    if top_k is not None and not (isinstance(top_k, numbers.Integral) and top_k >= 1):
        raise ValueError(
            f"top_k must be an int of at least 1, got {top_k!r}. Use None to keep all tokens."
        )


def check_top_p(top_p):
    if isinstance(top_p, numbers.Real) and not 0 <= top_p <= 1:
        raise ValueError(f"top_p must be in [0, 1], got {top_p}. Use None to keep all tokens.")


def check_min_p(min_p):
    if isinstance(min_p, numbers.Real) and not 0 <= min_p <= 1:
        raise ValueError(f"min_p must be in [0, 1], got {min_p}. Use None to keep all tokens.")


def _best(logits, weights, target):
    """The fewest best tokens whose weights reach a target, equal logits by rising id; or all.

    Sorting the vocabulary at each step would take longer than a small model itself. So the least
    logit that is kept is found bit by bit, then the last id among equals.
    """
    keys = _ordered_bits(logits)
    least = _largest_reaching(keys, weights, target, bits=32)
    above, tied = keys > least, ops.equal(keys, least)
    missing = target - ops.sum(ops.where(above, weights, 0.0), axis=-1, keepdims=True)
    vocabulary = logits.shape[-1]
    late = np.arange(vocabulary - 1, -1, -1, dtype="int32")  # lower ids first
    late = ops.broadcast_to(late, ops.shape(logits))
    shares = ops.where(tied, weights, 0.0)
    last = _largest_reaching(late, shares, missing, bits=vocabulary.bit_length())
    return ops.logical_or(above, ops.logical_and(tied, late >= last))


def _largest_reaching(keys, weights, target, bits):
    """The largest int t such that the weights of keys >= t sum to the target; the least, if none.

    -> int32 (..., 1), found by deciding one bit after the other.
    """
    masks = 1 << np.arange(bits - 1, -1, -1, dtype="int64")
    masks = masks.astype("uint32").view("int32")

    def decide(step, least):
        trial = ops.bitwise_xor(least, ops.take(ops.convert_to_tensor(masks), step))
        reached = ops.sum(ops.where(keys >= trial, weights, 0.0), axis=-1, keepdims=True)
        return ops.where(reached >= target, trial, least)

    lowest = -(2**31) if bits == 32 else 0
    return ops.fori_loop(0, bits, decide, ops.full_like(keys[..., :1], lowest))


def _ordered_bits(x):
    """float32 -> int32 in the same order."""
    bits = ops.view(ops.where(ops.equal(x, 0), 0.0, x), "int32")  # one zero, not two
    return ops.where(bits < 0, ops.bitwise_xor(bits, np.int32(2**31 - 1)), bits)


def _epsilon(dtype):
    return float(ml_dtypes.finfo(dtype).eps)
