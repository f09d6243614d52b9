"""Attention that looks at one position, which it draws, and how it learns where to look."""

from keras import ops

from kerasattn.ops.attention import masked_softmax


def gumbel(uniforms):
    """Gumbel noise of numbers drawn evenly from [0, 1), in float32.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.hard_attention import gumbel
    >>> round(float(gumbel(np.array(0.5))), 4)
    0.3665

    Source: https://arxiv.org/abs/1611.01144, section 2.
    """
    uniforms = ops.clip(ops.cast(uniforms, "float32"), 1e-10, 1 - 1e-7)
    return -ops.log(-ops.log(uniforms))


def draw(scores, noise, mask=None, temperature=None):
    """One position of each row, 1 there and 0 elsewhere: the best of scores plus noise.

    With Gumbel noise position i is drawn with the probability softmax(scores)[i]; without noise it
    is the likeliest. A row without a position to draw gives zeros.

    Args:
        scores: (..., key).
        noise: like the scores; see `gumbel`.
        mask: bool, True = may be drawn, broadcastable to the scores; None for all.
        temperature: float > 0: gradients are those of softmax((scores + noise) / temperature), as
            if that had been the result (straight through), which is biased. None for no gradient,
            as REINFORCE needs it.

    Shapes:
        -> float32 (..., key).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.hard_attention import draw
    >>> scores = np.array([[1.0, 3.0, 2.0]])
    >>> np.array(draw(scores, 0 * scores, np.array([[True, False, True]]))).tolist()
    [[0.0, 0.0, 1.0]]

    Source: https://arxiv.org/abs/1611.01144, equations 1 and 2 and section 2.2.
    """
    scores = ops.cast(scores, "float32")
    noisy = scores + ops.cast(noise, "float32")
    masked = noisy if mask is None else ops.where(mask, noisy, -1e30)
    places = ops.cumsum(ops.ones_like(masked, dtype="int32"), axis=-1) - 1
    best = ops.cast(ops.argmax(masked, axis=-1, keepdims=True), "int32")
    drawn = ops.cast(ops.equal(places, best), "float32")
    if mask is not None:
        drawn = drawn * ops.cast(mask, "float32")
    if temperature is None:
        return ops.stop_gradient(drawn)
    soft = masked_softmax(noisy / temperature, mask)
    return soft + ops.stop_gradient(drawn - soft)


def log_prob(scores, drawn, mask=None):
    """log p of the positions that were drawn, and the entropy of the distribution, in nats.

    Both are 0 for a row that has no position to draw.

    Args:
        scores: (..., key).
        drawn: (..., key), of `draw`.
        mask: as that of `draw`.

    Returns:
        Two float32 (...).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.hard_attention import log_prob
    >>> told, entropy = log_prob(np.zeros((1, 4)), np.array([[0.0, 1.0, 0.0, 0.0]]))
    >>> round(float(told[0]), 4), round(float(entropy[0]), 4)
    (-1.3863, 1.3863)
    """
    scores = ops.cast(scores, "float32")
    if mask is not None:
        scores = ops.where(mask, scores, -1e30)
    log_probs = scores - ops.logsumexp(scores, axis=-1, keepdims=True)
    there = ops.ones_like(scores) if mask is None else ops.cast(mask, "float32")
    log_probs = ops.maximum(log_probs, -1e30) * there
    entropy = -ops.sum(ops.exp(log_probs) * log_probs * there, axis=-1)
    drawn = ops.stop_gradient(ops.cast(drawn, "float32"))
    return ops.sum(drawn * log_probs, axis=-1), entropy
