"""Compile a function of tensors for the backend at hand.

The one place that knows how each backend compiles. TensorFlow and JAX are imported on the first
call only, so that the package works where just one of them is installed.
"""

import keras
import numpy as np
import optree


def compiled(function, variables=(), jit=True):
    """Wraps a function of tensors with `tf.function` (XLA) or `jax.jit`.

    It is traced once for each set of shapes and dtypes; Python numbers count as tensors and never
    cause another trace. Values of `variables` are read at every call, so what training changed in
    between is seen; where variables come or go, as with quantization, it is traced anew. State that
    the function assigns is not kept on JAX: don't assign any.

    Args:
        function: callable of (nested) tensors, which returns (nested) tensors.
        variables: the `keras.Variable`s that the function reads, or a function without arguments
            that returns them. JAX needs them: a variable left out is frozen at its value of the
            first call.
        jit: bool, XLA on TensorFlow. Off for functions that handle strings.

    Returns:
        A callable with the same arguments. Its attribute `traces` counts how often it was traced.

    Example:
        >>> from kerasattn.ops.compiled import compiled
        >>> double = compiled(lambda x, times: x * times)
        >>> [int(double(3, times)) for times in (2, 5)], double.traces
        ([6, 15], 1)
    """
    return Compiled(function, variables, jit)


class Compiled:
    """A function compiled at its first call; see `compiled`."""

    def __init__(self, function, variables=(), jit=True):
        self.function = function
        self.variables = variables if callable(variables) else lambda: variables
        self.jit = jit
        self.traces = 0
        self._call = self._seen = None

    def __call__(self, *args, **kwargs):
        variables = self.variables()
        if self._seen is None or list(map(id, variables)) != list(map(id, self._seen)):
            self._seen = variables
            self._call = _WRAPPERS.get(keras.backend.backend(), _plain)(self)
        args, kwargs = keras.tree.map_structure(_number_to_array, (args, kwargs))
        return self._call(args, kwargs)

    def trace(self, args, kwargs):
        self.traces += 1
        return self.function(*args, **kwargs)


def _number_to_array(leaf):
    for kind, dtype in ((bool, "bool"), (int, "int32"), (float, "float32")):
        if type(leaf) is kind:
            return np.asarray(leaf, dtype)
    return leaf


def _tensorflow(wrapped):
    import tensorflow as tf

    graphs = {}

    def call(args, kwargs):
        # Finding its graph takes tf.function longer than a short loop takes to run.
        leaves, nest = optree.tree_flatten((args, kwargs), namespace="keras")
        leaves = [tf.convert_to_tensor(leaf) for leaf in leaves]
        key = (nest, *((*leaf.shape.as_list(), leaf.dtype) for leaf in leaves))
        if key not in graphs:
            graphs[key] = tf.function(
                lambda *leaves: _trace(wrapped, nest, leaves),
                jit_compile=bool(wrapped.jit),
                autograph=False,
            ).get_concrete_function(*(tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves))
        return graphs[key](*leaves)

    return call


def _trace(wrapped, nest, leaves):
    args, kwargs = optree.tree_unflatten(nest, leaves)
    return wrapped.trace(args, kwargs)


def _jax(wrapped):
    import jax

    def stateless(values, args, kwargs):
        mapping = zip(wrapped.variables(), values, strict=True)
        with keras.StatelessScope(state_mapping=list(mapping)):
            return wrapped.trace(args, kwargs)

    jitted = jax.jit(stateless)

    def call(args, kwargs):
        return jitted([variable.value for variable in wrapped.variables()], args, kwargs)

    return call


def _plain(wrapped):
    return wrapped.trace


_WRAPPERS = {"tensorflow": _tensorflow, "jax": _jax}
