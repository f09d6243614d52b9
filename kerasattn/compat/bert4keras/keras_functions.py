"""`K`: the functions of Keras 2's backend that scripts use, over `keras.ops`.

What `keras.ops` has under the same name and with the same arguments is taken from there, `floatx`,
`epsilon` and the like from `keras.backend`. Here stands what has another name, another order or
another default. All take symbolic tensors too, and mix whole numbers with fractions.

>>> import numpy as np
>>> from kerasattn.compat.bert4keras.backend import K
>>> scores = K.sum(K.cast(K.not_equal(np.array([[3, 0]]), 0), K.floatx()), axis=1)
>>> K.eval(scores).tolist()
[1.0]
"""

import keras
from keras import ops, random

LOST = {
    "function": "make a keras.Model of the inputs and outputs",
    "get_session": "there are no sessions",
    "gradients": "use tf.GradientTape, or jax.grad",
    "in_test_phase": "ask for training as an argument of the layer's call",
    "in_train_phase": "ask for training as an argument of the layer's call",
    "learning_phase": "ask for training as an argument of the layer's call",
    "placeholder": "use keras.Input",
    "set_learning_phase": "call the model with training=True or False",
    "set_session": "there are no sessions",
}


def __getattr__(name):
    if name in LOST:
        raise AttributeError(f"Keras 3 has no K.{name}: {LOST[name]}.")
    for place in (ops, keras.backend):
        if not name.startswith("_") and hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"K has no {name!r}; look for it in keras.ops.")


# === Tensors and variables ===


def variable(value, dtype=None, name=None, constraint=None):
    """A variable that begins with a value."""
    return keras.Variable(value, dtype=dtype or keras.config.floatx(), name=name)


def constant(value, dtype=None, shape=None, name=None):
    """A tensor of a value, repeated to a shape if there is one."""
    tensor = ops.convert_to_tensor(value, dtype=dtype or keras.config.floatx())
    return tensor if shape is None else ops.broadcast_to(tensor, shape)


def eval(x):  # noqa: A001, their name
    """A tensor's or a variable's value, a numpy array."""
    return ops.convert_to_numpy(x)


get_value = eval


def batch_get_value(tensors):
    """The values of several tensors, a list of arrays."""
    return [eval(x) for x in tensors]


def update(x, new_x):
    """Gives a variable a value, which is returned."""
    x.assign(new_x)
    return ops.convert_to_tensor(x)


def set_value(x, value):
    """Gives a variable a value."""
    x.assign(value)


def batch_set_value(tuples):
    """Gives variables values, from pairs of both."""
    for x, value in tuples:
        x.assign(value)


def update_add(x, increment):
    """Adds to a variable; returns its value."""
    return update(x, x + increment)


def update_sub(x, decrement):
    """Subtracts from a variable; returns its value."""
    return update(x, x - decrement)


def dtype(x):
    """The dtype, a str."""
    return keras.backend.standardize_dtype(x.dtype)


def int_shape(x):
    """The shape, a tuple with None where it is not known."""
    return tuple(x.shape)


def ndim(x):
    """The number of axes."""
    return len(x.shape)


def shape(x):
    """The shape: a tensor in TensorFlow's graphs, else a tuple."""
    sizes = ops.shape(x)
    if keras.backend.is_keras_tensor(x) or keras.backend.backend() != "tensorflow":
        return tuple(sizes)
    return ops.convert_to_tensor(sizes, dtype="int32")


def cast_to_floatx(x):
    """As `floatx()`."""
    return ops.cast(x, keras.config.floatx())


def arange(start, stop=None, step=1, dtype="int32"):
    """Numbers from start up to stop, or from 0 up to start."""
    return ops.arange(0 if stop is None else start, start if stop is None else stop, step, dtype)


# === Axes ===


def argmax(x, axis=-1):
    """Where the highest value of an axis is."""
    return ops.argmax(x, axis=axis)


def argmin(x, axis=-1):
    """Where the lowest value of an axis is."""
    return ops.argmin(x, axis=axis)


def concatenate(tensors, axis=-1):
    """Tensors behind each other."""
    return ops.concatenate(tensors, axis=axis)


def cumsum(x, axis=0):
    """Sums of all up to each."""
    return ops.cumsum(x, axis=axis)


def cumprod(x, axis=0):
    """Products of all up to each."""
    return ops.cumprod(x, axis=axis)


def expand_dims(x, axis=-1):
    """With an axis of size 1 more."""
    return ops.expand_dims(x, axis=axis)


def flatten(x):
    """All numbers in one axis."""
    return ops.reshape(x, (-1,))


def batch_flatten(x):
    """(batch, ...) -> (batch, all the rest)."""
    return ops.reshape(x, (ops.shape(x)[0], -1))


def permute_dimensions(x, pattern):
    """With the axes in another order."""
    return ops.transpose(x, pattern)


def reverse(x, axes):
    """With some axes turned round."""
    return ops.flip(x, axis=axes)


def repeat(x, n):
    """(batch, dim) -> (batch, n, dim)."""
    return ops.repeat(ops.expand_dims(x, 1), n, axis=1)


def repeat_elements(x, rep, axis):
    """With each entry of an axis rep times."""
    return ops.repeat(x, rep, axis=axis)


def tile(x, n):
    """With the whole repeated n times, one number an axis."""
    return ops.tile(x, n)


def gather(reference, indices):
    """Rows of a table."""
    return ops.take(reference, ops.cast(indices, "int32"), axis=0)


def temporal_padding(x, padding=(1, 1)):
    """(batch, length, dim) with zeros before and behind."""
    return ops.pad(x, [(0, 0), tuple(padding), (0, 0)])


# === Numbers ===


def pow(x, a):  # noqa: A001, their name
    """x to the power of a."""
    return ops.power(x, a)


def clip(x, min_value, max_value):
    """x, at least the one and at most the other."""
    return ops.clip(x, min_value, max_value)


def relu(x, alpha=0.0, max_value=None, threshold=0.0):
    """max(x, 0), or with a slope, an upper end, or another lower one."""
    y = ops.where(x >= threshold, x, alpha * (x - threshold))
    return y if max_value is None else ops.minimum(y, max_value)


def l2_normalize(x, axis=None):
    """x divided by its norm."""
    return ops.normalize(x, axis=axis) if axis is not None else x / ops.norm(x)


def bias_add(x, bias):
    """x + bias along the last axis."""
    return x + bias


def batch_dot(x, y, axes=None):
    """The product of each x and y of a batch, along one axis of each.

    Args:
        x, y: (batch, ...).
        axes: int or a pair of them, by default x's last and y's last but one.

    Shapes:
        the axes of x that are left, then those of y; (batch, 1) if there are none.
    """
    if axes is None:
        axes = (-1, max(1, len(y.shape) - 2))
    of_x, of_y = (axes, axes) if isinstance(axes, int) else axes
    left, right = list("abcdefg"[: len(x.shape)]), list("amnopqr"[: len(y.shape)])
    right[of_y] = shared = left[of_x]
    rest = [c for c in left + right[1:] if c != shared]
    product = ops.einsum(f"{''.join(left)},{''.join(right)}->{''.join(rest)}", x, y)
    return product if len(rest) > 1 else product[:, None]


def switch(condition, then_expression, else_expression):
    """The one where a condition is true, the other elsewhere; each a tensor or a function."""
    then, other = (x() if callable(x) else x for x in (then_expression, else_expression))
    condition = ops.cast(condition, "bool")
    while len(condition.shape) < len(then.shape):
        condition = condition[..., None]
    return ops.where(condition, then, other)


# === Chance ===


def random_uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """Numbers between two, each as likely."""
    return random.uniform(shape, minval, maxval, dtype=dtype, seed=seed)


def random_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Normally distributed numbers."""
    return random.normal(shape, mean, stddev, dtype=dtype, seed=seed)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Normally distributed numbers, at most two deviations from the mean."""
    return random.truncated_normal(shape, mean, stddev, dtype=dtype, seed=seed)


def random_bernoulli(shape, p=0.0, dtype=None, seed=None):
    """1 with a probability of p, else 0."""
    return ops.cast(random.uniform(shape, seed=seed) < p, dtype or keras.config.floatx())


random_binomial = random_bernoulli


def dropout(x, level, noise_shape=None, seed=None):
    """x with a share of 0, the rest made larger by as much."""
    return random.dropout(x, level, noise_shape=noise_shape, seed=seed)
