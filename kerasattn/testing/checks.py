"""What `check_layer` and `check_model` share: each function checks one property of a model.

A subject is a functional `keras.Model` over a dict of inputs, and `make(batch, length)` draws
such a dict. A function raises AssertionError that says what differs and by how much.
"""

import inspect
import json
import re
import tempfile
from fnmatch import fnmatch
from pathlib import Path

import keras
import numpy as np

from kerasattn.testing import reload
from kerasattn.testing.arrays import (
    assert_finite,
    assert_same,
    by_name,
    output_axes,
    run,
    take,
    varying_axes,
)

POLICIES = ("mixed_float16", "mixed_bfloat16")


def shake(model, seed=0, size=0.1):
    """Move every trainable weight off its initial value, so that a zero bias hides nothing."""
    random = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        value = keras.ops.convert_to_numpy(weight)
        weight.assign(value + size * random.standard_normal(value.shape).astype(value.dtype))


def check_config(thing, config, twin_of, model, inputs, tolerance):
    """The config has every argument, is JSON, and makes an object that computes the same.

    `thing` is the layer or model, `twin_of(clone)` makes a model of its clone.
    """
    cls = type(thing)
    if not cls.__module__.startswith("keras.") and (
        keras.saving.get_registered_name(cls) == cls.__name__
    ):
        raise AssertionError(f"{cls.__name__} is not registered for saving.")
    said = thing.get_config()
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        variable = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if name != "self" and not variable and name not in said:
            raise AssertionError(f"get_config of {cls.__name__} has no {name!r}.")
    for name, given in config.items():
        if isinstance(given, int | float | str) and said.get(name) != given:
            raise AssertionError(f"get_config says {name}={said.get(name)!r}, given {given!r}.")
    data = json.loads(json.dumps(keras.saving.serialize_keras_object(thing)))
    clone = keras.saving.deserialize_keras_object(data)
    again = clone.get_config()
    if again != said:
        names = sorted(n for n in said if again.get(n) != said[n])
        raise AssertionError(f"the config does not survive a round trip: {names}.")
    twin = twin_of(clone)
    twin.set_weights(model.get_weights())
    found, expected = (run(x, inputs, eager=True) for x in (twin, model))
    assert_same(found, expected, "made from its config", tolerance)


def check_shapes(model, make, lengths, tolerance):
    """Any batch, any length, a length of 1; a row's result does not depend on the other rows."""
    axes, longest = varying_axes(make), max(lengths)
    specs = {name: spec.shape for name, spec in _named_specs(model).items()}
    # Of 3 rows is the example of the other checks.
    sizes = [(1, min(lengths)), *((2, n) for n in lengths if n > min(lengths) or n == longest)]
    drawn = {size: make(*size) for size in sizes}
    last = slice(1, 2)
    drawn[1, longest] = take(drawn[2, longest], axes, batch=last)
    results = {}
    for (batch, length), inputs in drawn.items():
        try:
            results[batch, length] = outputs = run(model, inputs)
        except Exception as error:
            message = f"batch {batch}, length {length}: {type(error).__name__}: {error}"
            raise AssertionError(message) from error
        what = f"batch {batch}, length {length}"
        assert_finite(outputs, what)
        for name, array in outputs.items():
            spec = specs[name]
            if len(spec) != array.ndim or any(
                s not in (None, n) for s, n in zip(spec, array.shape)
            ):
                raise AssertionError(f"{what}: {name} is {array.shape}, its spec said {spec}.")
    out_axes = output_axes(model, make, longest, results)
    both, alone = results[2, longest], results[1, longest]
    assert_same(
        {n: a for n, a in alone.items() if out_axes[n][0]},
        {n: a for n, a in take(both, out_axes, batch=last).items() if out_axes[n][0]},
        f"batch 2, length {longest}: the last row alone",
        tolerance,
    )


def _named_specs(model):
    outputs = model.output
    if isinstance(outputs, dict):
        return dict(outputs)
    if isinstance(outputs, list | tuple):
        return {f"output_{i}": x for i, x in enumerate(outputs)}
    return {"output": outputs}


def check_save(model, inputs, modules, tolerance):
    """A `.keras` file loaded in a new process gives the same outputs."""
    expected = run(model, inputs, eager=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.keras")
        model.save(path)
        actual = reload.predict(path, inputs, modules)
    assert_same(actual, expected, "saved and loaded in a new process", tolerance)


def modules_of(*objects):
    """Pairs (module, file) of the classes of objects outside Keras, for `check_save`."""
    pairs = set()
    for thing in objects:
        cls = thing if inspect.isclass(thing) else type(thing)
        name = cls.__module__
        if name.split(".")[0] not in ("keras", "builtins", "kerasattn"):
            pairs.add((name, str(Path(inspect.getfile(cls)).resolve())))
    return sorted(pairs)


def check_jit(model, inputs, tolerance):
    """Compiled by XLA, a model gives the outputs of the eager one."""
    expected = run(model, inputs, eager=True)
    model.compile(jit_compile=True)
    actual = by_name(model.predict_on_batch(dict(inputs)))
    assert_same(actual, expected, "under jit_compile=True", tolerance)


def check_fit(model, x, y=None, untrained=None, compile_options=None):
    """One step of `fit` changes every trainable weight, but those named as exceptions.

    `untrained` has patterns of variable paths and why no gradient reaches them. A pattern that
    names no weight, or one that does change, is an error too.
    """
    untrained = dict(untrained or {})
    options = {"optimizer": keras.optimizers.SGD(0.5), **(compile_options or {})}
    if keras.backend.backend() == "tensorflow" and "jit_compile" not in options:
        # A graph for one step takes longer than the step.
        options |= {"run_eagerly": True, "jit_compile": False}
    model.compile(**options)
    before = {w.path: keras.ops.convert_to_numpy(w) for w in model.trainable_variables}
    history = model.fit(x, y, batch_size=64, epochs=1, verbose=0)
    loss = history.history["loss"][-1]
    if not np.isfinite(loss):
        raise AssertionError(f"the loss of one step of fit is {loss}.")
    change = {
        w.path: float(np.max(np.abs(keras.ops.convert_to_numpy(w) - before[w.path]), initial=0))
        for w in model.trainable_variables
    }
    if not change:
        return
    bad = [path for path, moved in change.items() if not np.isfinite(moved)]
    if bad:
        raise AssertionError(f"after one step of fit these weights are not finite: {bad}.")
    # A gradient that is zero but for rounding counts as none.
    moved = {path for path, size in change.items() if size > 1e-6 * max(change.values())}
    excused = {path for path in change for pattern in untrained if fnmatch(path, pattern)}
    still = sorted(set(change) - moved - excused)
    if still:
        raise AssertionError(f"one step of fit does not change {still}.")
    for pattern in untrained:
        matched = {path for path in change if fnmatch(path, pattern)}
        if not matched or matched & moved:
            why = f"{sorted(matched & moved)} change" if matched else "no weight has that path"
            raise AssertionError(f"untrained names {pattern!r}, but {why}.")


def check_saved_model(model, inputs, tolerance):
    """The SavedModel gives the outputs of the Python model (TensorFlow only).

    Not with `model.export`, which does the same in three times the time: it traces three times.
    """
    import tensorflow as tf

    expected = run(model, inputs)
    signature = {
        name: tf.TensorSpec([None, *array.shape[1:]], array.dtype, name=name)
        for name, array in inputs.items()
    }
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.variables]
    module.serve = tf.function(model, input_signature=[signature], autograph=False)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        loaded = tf.saved_model.load(folder)
        actual = by_name(loaded.serve({n: tf.constant(a) for n, a in inputs.items()}))
    assert_same(actual, expected, "the SavedModel", tolerance)


def check_precision(build, model, inputs, tolerance=0.1):
    """Under each policy the outputs are finite and near those of the model, which is of float32.

    `build(policy)` makes the model under that policy; it gets the model's weights.
    """
    # Eager, also on JAX: half precision takes long to compile, and models share operations. Each of
    # them is compiled there, so of the policies that compute alike one is enough.
    expected = run(model, inputs, eager=True)
    for policy in POLICIES if keras.backend.backend() == "tensorflow" else POLICIES[1:]:
        twin = build(policy)
        twin.set_weights(model.get_weights())
        assert_finite(run(twin, inputs, training=True, eager=True), f"{policy} in training")
        tensors = twin(dict(inputs), training=False)
        _check_dtypes(twin.output, tensors, policy)
        outputs = by_name(tensors)
        assert_finite(outputs, policy)
        floats = {name for name, array in expected.items() if array.dtype.kind == "f"}
        assert_same(
            {name: outputs[name] for name in floats & set(outputs)},
            {name: expected[name] for name in floats},
            f"{policy} against float32",
            tolerance,
        )


def _check_dtypes(specs, outputs, what):
    """What a layer says of its outputs before it runs is what comes out."""
    pairs = zip(keras.tree.flatten(specs), keras.tree.flatten(outputs), strict=True)
    for spec, output in pairs:
        dtype = keras.backend.standardize_dtype(output.dtype)
        if dtype != spec.dtype:
            raise AssertionError(f"{what}: {spec.name} is {dtype}, its spec said {spec.dtype}.")


def check_errors(call, errors):
    """Each bad input raises its documented error: rows of (inputs, words of the message)."""
    for bad, match in errors:
        try:
            call(bad)
        except ValueError as error:
            if not re.search(match, str(error)):
                raise AssertionError(
                    f"the error for {_shapes(bad)} says {str(error)!r}, not {match!r}."
                ) from error
        except Exception as error:
            raise AssertionError(
                f"{_shapes(bad)} raises {type(error).__name__}, not ValueError: {error}"
            ) from error
        else:
            raise AssertionError(f"{_shapes(bad)} raises nothing; expected {match!r}.")


def _shapes(inputs):
    if isinstance(inputs, dict):
        return {name: _shapes(x) for name, x in inputs.items()}
    return f"{inputs.dtype}{inputs.shape}" if isinstance(inputs, np.ndarray) else repr(inputs)


def check_skips(skip, names):
    """Every check that is switched off is one of ours, and has a reason."""
    for name, reason in skip.items():
        if name not in names:
            raise ValueError(f"skip names {name!r}; the checks are {sorted(names)}.")
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"skip[{name!r}] needs a reason, got {reason!r}.")
