"""Named arrays of inputs and outputs: what they are called, where they differ, how they are cut."""

import weakref

import keras
import numpy as np

from kerasattn.ops.compiled import compiled

_whole = weakref.WeakKeyDictionary()  # of JAX: model -> {arguments: compiled function}
_axes = weakref.WeakKeyDictionary()  # model -> {output: (batch axes, length axes)}


def by_name(outputs):
    """Turn a model's outputs, tensor, list or dict, into a dict of name to numpy array."""
    if isinstance(outputs, dict):
        parts = outputs.items()
    elif isinstance(outputs, list | tuple):
        parts = ((f"output_{i}", part) for i, part in enumerate(outputs))
    else:
        parts = [("output", outputs)]
    named = {}
    for name, part in parts:
        if isinstance(part, dict | list | tuple):
            named.update({f"{name}.{inner}": x for inner, x in by_name(part).items()})
        elif part is not None:
            array = keras.ops.convert_to_numpy(part)
            # numpy has no bfloat16 of its own to save or compare
            named[name] = array.astype("float32") if array.dtype == "bfloat16" else array
    return named


def assert_same(actual, expected, what, tolerance):
    """Compare dicts of arrays; the tolerance is relative to the largest expected number or 1."""
    if set(actual) != set(expected):
        raise AssertionError(f"{what}: outputs {sorted(actual)}, expected {sorted(expected)}.")
    for name, wanted in expected.items():
        got = actual[name]
        if got.shape != wanted.shape:
            raise AssertionError(f"{what}: {name} has shape {got.shape}, expected {wanted.shape}.")
        if not got.size:
            continue
        got, wanted = got.astype("float64"), wanted.astype("float64")
        scale = max(1.0, float(np.max(np.abs(wanted))))
        error = float(np.max(np.abs(got - wanted))) / scale
        if not error <= tolerance:
            raise AssertionError(
                f"{what}: {name} differs by {error:.2g} of its scale {scale:.3g}, "
                f"allowed {tolerance:g}."
            )


def assert_finite(outputs, what):
    for name, array in outputs.items():
        if not np.all(np.isfinite(array)):
            raise AssertionError(f"{what}: {name} has numbers that are not finite.")


def run(model, inputs, training=False, eager=None):
    """The model's outputs by name; `eager` says how, by default the way that is faster.

    JAX compiles each operation for each new shape, which takes longer than the model as one.
    """
    if eager is None:
        eager = keras.backend.backend() != "jax"
    if eager:
        return by_name(model(dict(inputs), training=training))
    functions = _whole.setdefault(model, {})
    if training not in functions:
        functions[training] = _compile(weakref.proxy(model), training)
    return by_name(functions[training](dict(inputs)))


def _compile(model, training):
    return compiled(lambda inputs: model(inputs, training=training), lambda: model.variables)


def varying_axes(make):
    """Which axes follow the batch and which the length: {name: (batch axes, length axes)}."""
    base, taller, longer = make(2, 3), make(3, 3), make(2, 4)
    axes = {}
    for name, array in base.items():
        shapes = array.shape, taller[name].shape, longer[name].shape
        by_batch = {i for i, n in enumerate(shapes[0]) if n != shapes[1][i]}
        by_length = {i for i, n in enumerate(shapes[0]) if n != shapes[2][i]}
        axes[name] = (by_batch, by_length)
    return axes


def take(arrays, axes, batch=slice(None), length=slice(None)):
    """Cut every axis that follows the batch or the length."""
    cut = {}
    for name, array in arrays.items():
        by_batch, by_length = axes[name]
        index = [
            batch if i in by_batch else length if i in by_length else slice(None)
            for i in range(array.ndim)
        ]
        cut[name] = array[tuple(index)]
    return cut


def output_axes(model, make, longest, seen=None):
    """As varying_axes, of the model's outputs, by running it on three shapes, once.

    `seen` has outputs that are known already: {(batch, length): outputs}.
    """
    if model in _axes:
        return _axes[model]
    shapes, seen = ((1, 1), (1, longest), (2, longest)), seen or {}
    short, base, taller = (seen.get(shape) or run(model, make(*shape)) for shape in shapes)
    axes = {}
    for name, array in base.items():
        by_batch = {i for i, n in enumerate(array.shape) if n != taller[name].shape[i]}
        by_length = {i for i, n in enumerate(array.shape) if n != short[name].shape[i]}
        axes[name] = (by_batch, by_length)
    _axes[model] = axes
    return axes
