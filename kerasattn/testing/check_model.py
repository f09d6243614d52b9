import keras
import numpy as np

from kerasattn.models.base import BaseModel
from kerasattn.testing import arrays, checks

CHECKS = (
    "config",
    "save",
    "shapes",
    "padding",
    "causal",
    "decoding",
    "precision",
    "jit",
    "fit",
    "saved_model",
    "errors",
)


def check_model(
    model_class,
    config,
    inputs=None,
    causal=(),
    decoding=None,
    targets=None,
    compile_options=None,
    untrained=None,
    errors=(),
    config_errors=(),
    skip=None,
    pad_values=None,
    lengths=(1, 4, 7),
    tolerance=1e-5,
):
    """Assert what every model passes: as `check_layer`, and padding, future, cached decoding.

    Args:
        model_class: the model's class, a functional `keras.Model` over a dict of inputs, or a
            function of the config's names that makes one.
        config: dict of the arguments to make it with, tiny sizes. `dtype` must be accepted too.
        inputs: function of (batch, length) that draws a dict of arrays without padding. By
            default `token_ids` from 1 to vocabulary_size - 1.
        causal: names of the outputs at which a token must not see later ones.
        decoding: function of (model, inputs) that returns a pair of arrays or dicts of arrays, from
            cached decoding and from the whole sequence at once.
        targets: function of (batch, length) that draws `y` for `fit`. By default there is none: the
            model knows its own loss.
        compile_options: dict of further arguments of `compile`, such as `loss`.
        untrained: dict of patterns of variable paths that one step of `fit` need not change, to
            the reason. A pattern that changes nonetheless is an error.
        errors: rows (inputs, pattern of the message) of inputs that raise ValueError, beside those
            that are always tried on the first input: floats, another rank and, where the config
            has a vocabulary_size, an id out of range.
        config_errors: rows (config changes, pattern of the message), likewise.
        skip: dict of a check's name to the reason why it does not apply: config, save, shapes,
            padding, causal, decoding, precision, jit, fit, saved_model, errors.
        pad_values: dict of what stands at padding; {"token_ids": 0} by default.
        lengths: ints, lengths to run at. The last is the longest.
        tolerance: float, allowed difference, relative to the largest number.

    Raises:
        AssertionError: saying which check fails and by how much.
        ValueError: for a check to skip that does not exist or has no reason.

    Example:
        >>> from kerasattn import models
        >>> from kerasattn.testing import check_model
        >>> check_model(
        ...     models.RoFormer,
        ...     dict(vocabulary_size=11, num_layers=1, num_heads=2, hidden_dim=8,
        ...          intermediate_dim=6),
        ...     skip=dict.fromkeys(
        ...         ["save", "saved_model", "fit", "jit", "precision"], "seconds, for an example"
        ...     ) | {"causal": "reads both ways", "decoding": "an encoder"},
        ... )
    """
    skip = dict(skip or {})
    checks.check_skips(skip, CHECKS)
    longest = max(lengths)
    inputs = inputs or _token_ids(config)
    example = inputs(3, longest)

    def new(**changes):
        return model_class(**{**config, **changes})

    model, half = new(), {}
    checks.shake(model)

    if "config" not in skip:
        half["mixed_bfloat16"] = mixed = new(dtype="mixed_bfloat16")
        mixed.set_weights(model.get_weights())
        checks.check_config(mixed, config, _check_policy(mixed), mixed, example, tolerance)
        half["mixed_float16"] = _check_global_policy(lambda: new(dtype=None), mixed)
        if "seed" in model.get_config():
            _check_seeds(new(seed=1))
    if "shapes" not in skip:
        checks.check_shapes(model, inputs, lengths, tolerance)
    if "padding" not in skip:
        pad_values = {"token_ids": 0} if pad_values is None else pad_values
        _check_padding(model, inputs, pad_values, longest, tolerance)
    if "causal" not in skip:
        _check_causal(model, inputs, causal, longest, tolerance)
    if "decoding" not in skip:
        _check_decoding(model, example, decoding, tolerance)
    if "errors" not in skip:
        checks.check_errors(lambda changes: new(**changes), config_errors)
        always = _always_bad(example, config.get("vocabulary_size"))
        checks.check_errors(lambda bad: model(bad), [*always, *errors])
        if isinstance(model, BaseModel):
            for method in ("fit", "evaluate", "predict", "train_on_batch", "predict_on_batch"):
                checks.check_errors(getattr(model, method), always)
    if "precision" not in skip:
        checks.check_precision(lambda p: half.get(p) or new(dtype=p), model, example)
    if "save" not in skip:
        checks.check_save(model, example, checks.modules_of(model), tolerance)
    if "saved_model" not in skip and keras.backend.backend() == "tensorflow":
        checks.check_saved_model(model, example, tolerance)
    if "jit" not in skip:
        checks.check_jit(model, example, tolerance)
    if "fit" not in skip:  # the last: it changes the weights
        y = targets(3, longest) if targets else None
        checks.check_fit(model, example, y, untrained, compile_options)


def _token_ids(config):
    if "vocabulary_size" not in config:
        raise ValueError("give `inputs`: the config has no vocabulary_size to draw token_ids from.")
    random = np.random.default_rng(1)

    def draw(batch, length):
        ids = random.integers(1, config["vocabulary_size"], (batch, length))
        return {"token_ids": ids.astype("int32")}

    return draw


def _check_policy(model):
    """A function that refuses a clone of a model in mixed precision with other policies."""
    if not any(layer.compute_dtype == "bfloat16" for layer in model.layers if layer.weights):
        raise AssertionError("dtype='mixed_bfloat16' reaches no layer that has weights.")

    def same(clone):
        for layer, twin in zip(model.layers, clone.layers, strict=True):
            before, after = layer.dtype_policy.name, twin.dtype_policy.name
            if before != after:
                raise AssertionError(f"{layer.name} was {before} and comes back as {after}.")
        return clone

    return same


def _check_global_policy(by_default, mixed):
    """The policy of all Keras gives outputs of the dtypes that the model's own gives.

    Returns the model of mixed_float16 that was made so; `mixed` is of mixed_bfloat16.
    """
    before = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy("mixed_float16")
        model = by_default()
    finally:
        keras.config.set_dtype_policy(before)
    found, wanted = _output_dtypes(model), _output_dtypes(mixed)
    if found != wanted:
        raise AssertionError(
            f"under a global policy of half precision the outputs are {found}, with dtype=... "
            f"they are {wanted}."
        )
    return model


def _output_dtypes(model):
    def kind(x):
        return "half" if x.dtype in ("float16", "bfloat16") else x.dtype

    outputs = model.output if isinstance(model.output, dict) else {"output": model.output}
    return {name: keras.tree.map_structure(kind, x) for name, x in outputs.items()}


def _check_seeds(model):
    """No two layers draw the same noise."""
    owners = {}
    for variable in model.variables:
        if "seed_generator" in variable.path:
            state = tuple(keras.ops.convert_to_numpy(variable).tolist())
            owners.setdefault(state, []).append(variable.path)
    alike = [paths for paths in owners.values() if len(paths) > 1]
    if alike:
        raise AssertionError(f"made with seed=1, these draw the same noise: {alike}.")


def _sequences(inputs, batch, length):
    return [name for name, x in inputs.items() if x.shape[:2] == (batch, length)]


def _replace(array, where, values):
    where = where.reshape(where.shape + (1,) * (array.ndim - 2))
    return np.where(where, values, array).astype(array.dtype)


def _check_padding(model, make, pad_values, length, tolerance):
    """Padded to any length, and whatever else stands there, the real positions stay the same."""
    keep = (length + 1) // 2  # a length that check_shapes has, so that it is compiled
    hidden = np.arange(length)[None, :] >= np.array([[keep], [length]])  # (2, length)
    axes, out_axes = arrays.varying_axes(make), arrays.output_axes(model, make, length)
    inputs, other = make(2, length), make(2, length)
    names = _sequences(inputs, 2, length)
    missing = set(pad_values) - set(names)
    if missing:
        raise AssertionError(f"pad_values has {sorted(missing)}, the sequences are {names}.")
    first = dict(batch=slice(0, 1), length=slice(0, keep))
    last = dict(batch=slice(1, 2), length=slice(0, length))
    expected = [
        arrays.run(model, arrays.take(inputs, axes, **first)),
        arrays.run(model, arrays.take(inputs, axes, **last)),
    ]

    def compare(changed, what):
        actual = arrays.run(model, changed)
        for cut, wanted in zip((first, last), expected, strict=True):
            arrays.assert_same(arrays.take(actual, out_axes, **cut), wanted, what, tolerance)

    padded = dict(inputs)
    for name in names:
        padded[name] = _replace(inputs[name], hidden, pad_values.get(name, inputs[name]))
    compare(padded, "padding removed")
    changed = dict(padded)
    for name in set(names) - set(pad_values):
        changed[name] = _replace(inputs[name], hidden, other[name])
    if changed.keys() - pad_values.keys():
        compare(changed, "other inputs at padding changed")
    if "padding_mask" in {x.name for x in model.inputs}:
        masked = {name: _replace(inputs[name], hidden, other[name]) for name in names}
        mask = {"padding_mask": ~hidden}
        compare({**inputs, **masked, **mask}, "tokens under padding_mask changed")


def _check_causal(model, make, names, length, tolerance):
    """A later token changes nothing before it, and something from it on."""
    if not names:
        raise AssertionError("name the outputs that are causal, or say in skip why none is.")
    inputs, other = make(2, length), make(2, length)
    out_axes = arrays.output_axes(model, make, length)
    expected = arrays.run(model, inputs)
    for start in range(1, length):
        changed = dict(inputs)
        for name in _sequences(inputs, 2, length):
            changed[name] = np.concatenate([inputs[name][:, :start], other[name][:, start:]], 1)
        actual = arrays.run(model, changed)
        for name in names:
            before = dict(length=slice(0, start))
            arrays.assert_same(
                arrays.take({name: actual[name]}, out_axes, **before),
                arrays.take({name: expected[name]}, out_axes, **before),
                f"the future from {start} on changed",
                tolerance,
            )
            if np.array_equal(actual[name], expected[name]):
                raise AssertionError(f"{name} does not depend on the tokens from {start} on.")


def _check_decoding(model, example, decoding, tolerance):
    if decoding is None:
        raise AssertionError("give `decoding`, or say in skip why the model does not decode.")
    cached, uncached = decoding(model, example)
    arrays.assert_same(
        arrays.by_name(cached), arrays.by_name(uncached), "cached decoding", tolerance
    )


def _always_bad(example, vocabulary_size):
    """Rows of bad inputs: floats, another rank, an id out of range."""
    name, ids = next(iter(example.items()))
    if ids.dtype.kind != "i":
        return []
    rows = [
        ({**example, name: ids.astype("float32")}, name),
        ({**example, name: ids[..., None]}, name),
    ]
    if vocabulary_size is not None and name == "token_ids":
        for bad in (vocabulary_size, -1):
            beyond = ids.copy()
            beyond[-1, -1] = bad
            rows.append(({**example, name: beyond}, name))
    return rows
