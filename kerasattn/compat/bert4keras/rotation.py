from keras import ops

from kerasattn.ops import rotary


def apply_rotary_position_embeddings(sinusoidal, *tensors):
    """Rotates neighbouring features by angles whose sines and cosines alternate.

    Args:
        sinusoidal: (batch or 1, length, dim), sine and cosine side by side.
        tensors: (batch, length, ..., dim) each.

    Returns:
        What became of the tensor, or a list if there are several.

    Example:
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras.backend import apply_rotary_position_embeddings
    >>> quarter = np.array([[[1.0, 0.0]]])  # sine and cosine of 90 degrees
    >>> print(np.array(apply_rotary_position_embeddings(quarter, np.array([[[3.0, 4.0]]]))))
    [[[-4.  3.]]]
    """
    results = []
    for x in map(ops.convert_to_tensor, tensors):
        shape, dim = ops.shape(x), x.shape[-1]
        heads = ops.reshape(x, (*shape[:2], -1, dim))  # (batch, length, heads, dim)
        turned = rotary.turn(heads, sinusoidal[..., 1::2], sinusoidal[..., ::2])
        results.append(ops.reshape(turned, shape))
    return results[0] if len(results) == 1 else results


class SinusoidRotation:
    """Rotates by sines and cosines that are given, interleaved, in place of positions."""

    built = True

    def __call__(self, x, sinusoids=None):
        return x if sinusoids is None else apply_rotary_position_embeddings(sinusoids, x)
