"""bert4keras' functions of tensors, for layers that scripts write themselves."""

import keras
import numpy as np
from keras import ops

from kerasattn.compat.bert4keras.masking import sequence_masking
from kerasattn.ops import positions
from kerasattn.training.piecewise_linear import PiecewiseLinear


def batch_gather(params, indices):
    """Entries of each row of a batch: (..., n, dims), (..., k) numbers below n -> (..., k, dims).

    Example:
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras.backend import batch_gather
    >>> print(np.array(batch_gather(np.array([[5, 6], [7, 8]]), np.array([[1], [0]]))))
    [[6]
     [7]]
    """
    axis = len(indices.shape) - 1
    places = ops.cast(indices, "int32")
    if len(params.shape) == axis + 1:
        return ops.take_along_axis(params, places, axis=axis)
    for _ in range(len(params.shape) - axis - 1):
        places = places[..., None]
    return ops.take_along_axis(params, places, axis=axis)


def align(tensor, axes, ndim=None):
    """Axis i as axis axes[i] of a tensor of ndim axes, the others of size 1.

    Example:
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras.backend import align
    >>> align(np.ones((2, 3)), [0, -1], 4).shape
    (2, 1, 1, 3)
    """
    places = [None] * (ndim or max(axes) + 1)
    for axis in axes:
        places[axis] = slice(None)
    return tensor[tuple(places)]


def piecewise_linear(t, schedule, from_zero=True):
    """The factor at a step of a schedule such as {1000: 1, 2000: 0.1}, straight in between.

    Before its first point the factor rises from 0, or is the first if from_zero is False.

    Example:
    >>> from kerasattn.compat.bert4keras.backend import piecewise_linear
    >>> float(piecewise_linear(5, {10: 1, 20: 0.5}))
    0.5
    """
    if not from_zero:
        schedule = {0: schedule[min(schedule)], **schedule}
    return PiecewiseLinear(1.0, schedule)(t)


def root_mean_square(x, axis=None, keepdims=False):
    """The root of the mean square."""
    return ops.sqrt(ops.mean(ops.square(x), axis=axis, keepdims=keepdims))


def sinusoidal_embeddings(pos, dim, base=10000):
    """Sines and cosines of positions, side by side: (...) -> (..., dim).

    Source: https://arxiv.org/abs/1706.03762, section 3.5.
    """
    return positions.sinusoidal(pos, dim, base)


def attention_normalize(a, mask=None, axis=-1, method="softmax", bias=None):
    """Weights of attention from scores, by one of three methods.

    Args:
        a: (batch, ..., query, key), scores.
        mask: bool, keys that may be attended to, as `sequence_masking` takes it.
        axis: int, that of the keys.
        method: "softmax", "squared_relu" or "softmax_plus".
        bias: number or tensor, added to the scores.

    Source: https://arxiv.org/abs/2202.10447 and https://kexue.fm/archives/8823.
    """
    a, mask = sequence_masking(a, mask, "-inf", axis, bias, return_mask=True)
    if method == "softmax":
        return ops.softmax(a, axis=axis)
    if method not in ("squared_relu", "softmax_plus"):
        return a
    real = ops.ones_like(a) if mask is None else ops.cast(mask, a.dtype)
    count = ops.sum(real, axis=axis, keepdims=True)
    if method == "squared_relu":
        return ops.square(ops.relu(a)) / count
    return ops.softmax(a * ops.log(ops.maximum(count, 16)) / np.log(512), axis=axis)


def recompute_grad(call):
    """The `call` of a layer as it is: `keras.RematScope` is what trades time for memory now."""
    return call


def gelu_erf(x):
    """GELU by the error function."""
    return keras.activations.gelu(x)


def gelu_tanh(x):
    """GELU by its approximation."""
    return keras.activations.gelu(x, approximate=True)


def swish(x):
    """x * sigmoid(x)."""
    return keras.activations.silu(x)


def leaky_relu(x, alpha=0.2):
    """max(x, alpha * x)."""
    return ops.leaky_relu(x, alpha)
