import re

import keras
import numpy as np

from kerasattn.testing import arrays, checks

CHECKS = (
    "config",
    "save",
    "shapes",
    "padding",
    "causal",
    "precision",
    "jit",
    "fit",
    "saved_model",
    "errors",
)


def check_layer(
    layer_class,
    config,
    inputs,
    call=None,
    padding=None,
    causal=None,
    untrained=None,
    errors=(),
    config_errors=(),
    skip=None,
    lengths=(1, 4, 8),
    tolerance=1e-5,
):
    """Assert what every layer passes: config, saving, shapes, padding, precision, jit, training.

    Args:
        layer_class: the layer's class, or a function of the config's names that makes one.
        config: dict of the arguments to make it with, tiny sizes and no defaults, or a function
            that returns one (so that layers in it are new each time). `dtype` must be accepted.
        inputs: function of (batch, length) that draws the layer's inputs: an array, a tuple of
            positional arguments, or a dict of arguments of `call`. It must draw anew each time.
        call: dict of further arguments of `call` that are no tensors.
        padding: function of a bool array (batch, length), True = real, that returns the further
            inputs (masks) that hide padding. By default the layer must do without.
        causal: function of (batch, length) that returns the further inputs that hide the future.
            By default the layer must do without.
        untrained: dict of patterns of variable paths that one step of `fit` need not change, to
            the reason. A pattern that changes nonetheless is an error.
        errors: rows (inputs, pattern of the message) of inputs that raise ValueError.
        config_errors: rows (config changes, pattern of the message), likewise.
        skip: dict of a check's name to the reason why it does not apply: config, save, shapes,
            padding, causal, precision, jit, fit, saved_model, errors.
        lengths: ints, lengths to run at. The last is the longest.
        tolerance: float, allowed difference, relative to the largest number.

    Raises:
        AssertionError: saying which check fails and by how much.
        ValueError: for a check to skip that does not exist or has no reason.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from kerasattn.testing import check_layer
        >>> random = np.random.default_rng(0)
        >>> check_layer(
        ...     keras.layers.Dense,
        ...     {"units": 3, "activation": "tanh"},
        ...     lambda batch, length: random.normal(size=(batch, length, 4)).astype("float32"),
        ...     skip={
        ...         "config": "Dense answers more names than we gave",
        ...         "save": "a new process costs seconds",
        ...         "saved_model": "TensorFlow only",
        ...         "errors": "Keras' own",
        ...     },
        ... )
    """
    skip = dict(skip or {})
    checks.check_skips(skip, CHECKS)
    subject = _Subject(layer_class, config, inputs, call)
    longest = max(lengths)
    example = subject.make(3, longest)
    model = subject.model(example)
    checks.shake(model)

    if "config" not in skip:
        checks.check_config(
            subject.new(),
            subject.config(),
            lambda clone: subject.model(example, layer=clone),
            model,
            example,
            tolerance,
        )
        _check_seed(subject, model, example, tolerance)
    if "shapes" not in skip:
        checks.check_shapes(model, subject.make, lengths, tolerance)
    if "padding" not in skip:
        _check_padding(subject, model, padding, longest, tolerance)
    if "causal" not in skip:
        _check_causal(subject, model, causal, longest, tolerance)
    if "errors" not in skip:
        _check_errors(subject, errors, config_errors)
    if "precision" not in skip:
        checks.check_precision(lambda p: subject.model(example, dtype=p), model, example)
    if "jit" not in skip:
        checks.check_jit(model, example, tolerance)
    if "save" not in skip:
        modules = checks.modules_of(subject.layer)
        checks.check_save(model, example, modules, tolerance)
    if "saved_model" not in skip and keras.backend.backend() == "tensorflow":
        checks.check_saved_model(model, example, tolerance)
    if "fit" not in skip:  # the last: it changes the weights
        _check_fit(model, example, untrained)


class _Subject:
    """The layer as a functional model over named inputs."""

    def __init__(self, layer_class, config, inputs, call):
        self.layer_class = layer_class
        self.config = config if callable(config) else lambda: dict(config)
        self.draw = inputs
        self.call = dict(call or {})
        self.layer = self.new()

    def new(self, **changes):
        return self.layer_class(**{**self.config(), **changes})

    def make(self, batch, length):
        return self.named(self.draw(batch, length))

    def named(self, drawn):
        if isinstance(drawn, dict):
            return dict(drawn)
        if isinstance(drawn, tuple | list):
            return {f"argument_{i}": x for i, x in enumerate(drawn)}
        return {"argument_0": drawn}

    def apply(self, layer, named):
        places = re.compile(r"argument_\d+")
        positional = [x for name, x in named.items() if places.fullmatch(name)]
        further = {name: x for name, x in named.items() if not places.fullmatch(name)}
        return layer(*positional, **further, **self.call)

    def model(self, example, layer=None, more=None, **changes):
        """A functional model; the axes that follow batch and length are left open."""
        layer = layer or self.new(**changes)

        def make(batch, length):
            return {**self.make(batch, length), **(more(batch, length) if more else {})}

        axes = arrays.varying_axes(make)
        tensors = {}
        for name, array in example.items():
            by_batch, by_length = axes[name]
            shape = [None if i in by_batch | by_length else n for i, n in enumerate(array.shape)]
            tensors[name] = keras.Input(batch_shape=shape, dtype=str(array.dtype), name=name)
        return keras.Model(tensors, self.apply(layer, tensors))


def _sequences(named, batch, length, fixed=()):
    return [
        name for name, x in named.items() if x.shape[:2] == (batch, length) and name not in fixed
    ]


def _layer_of(model):
    return next(x for x in model.layers if not isinstance(x, keras.layers.InputLayer))


def _check_padding(subject, model, padding, length, tolerance):
    """What stands at padding changes nothing at real positions, nor does its removal."""
    hides, padding = padding is not None, padding or (lambda real: {})
    keep = (length + 1) // 2
    real = np.arange(length)[None, :] < np.array([[keep], [length]])  # (2, length)

    def more(batch, n):
        return padding(np.ones((batch, n), bool))

    inputs = {**subject.make(2, length), **padding(real)}
    padded = subject.model(inputs, layer=_layer_of(model), more=more) if hides else model

    def make(batch, n):
        return {**subject.make(batch, n), **more(batch, n)}

    axes, out_axes = arrays.varying_axes(make), arrays.output_axes(model, subject.make, length)
    expected = arrays.run(padded, inputs)
    other, changed = subject.make(2, length), dict(inputs)
    for name in _sequences(subject.make(2, length), 2, length):
        hidden = ~real.reshape(real.shape + (1,) * (inputs[name].ndim - 2))
        changed[name] = np.where(hidden, other[name], inputs[name])
    first, full = slice(0, 1), slice(1, 2)
    actual = arrays.run(padded, changed)
    for rows, count in ((first, keep), (full, length)):
        cut = dict(batch=rows, length=slice(0, count))
        arrays.assert_same(
            arrays.take(actual, out_axes, **cut),
            arrays.take(expected, out_axes, **cut),
            "padding changed",
            tolerance,
        )
    cut = dict(batch=first, length=slice(0, keep))
    arrays.assert_same(
        arrays.run(padded, arrays.take(inputs, axes, **cut)),
        arrays.take(expected, out_axes, **cut),
        "padding removed",
        tolerance,
    )


def _check_causal(subject, model, causal, length, tolerance):
    """What stands later changes nothing before."""
    hides, causal = causal is not None, causal or (lambda batch, length: {})

    def make(batch, n):
        return {**subject.make(batch, n), **causal(batch, n)}

    inputs = make(2, length)
    seen = subject.model(inputs, layer=_layer_of(model), more=causal) if hides else model
    out_axes = arrays.output_axes(model, subject.make, length)
    expected, other = arrays.run(seen, inputs), subject.make(2, length)
    for start in range(1, length):
        changed = dict(inputs)
        for name in _sequences(other, 2, length):
            changed[name] = np.concatenate([inputs[name][:, :start], other[name][:, start:]], 1)
        actual = arrays.run(seen, changed)
        arrays.assert_same(
            arrays.take(actual, out_axes, length=slice(0, start)),
            arrays.take(expected, out_axes, length=slice(0, start)),
            f"the future from {start} on changed",
            tolerance,
        )


def _check_seed(subject, model, example, tolerance):
    """What draws at random takes a seed, and draws the same again with the same one."""
    weights, draws = model.get_weights(), []
    seeded = "seed" in subject.new().get_config()
    for _ in range(2):
        twin = subject.model(example, **({"seed": 5} if seeded else {}))
        twin.set_weights(weights)
        draws.append(arrays.run(twin, example, training=True, eager=True))
    why = "two of one seed in training" if seeded else "in training, where it takes no seed, again"
    arrays.assert_same(draws[0], draws[1], why, tolerance)


def _check_errors(subject, errors, config_errors):
    if not errors and not config_errors:
        raise AssertionError("give bad inputs (errors, config_errors), or say in skip why none.")
    checks.check_errors(lambda changes: subject.new(**changes), config_errors)
    checks.check_errors(lambda bad: subject.apply(subject.new(), subject.named(bad)), errors)


def _check_fit(model, example, untrained):
    """The layer trains towards random numbers, through its outputs that are floats."""
    outputs = [x for x in keras.tree.flatten(model.output) if "float" in x.dtype]
    trainer = keras.Model({x.name: x for x in model.inputs}, outputs)
    random = np.random.default_rng(3)
    shapes = [x.shape for x in keras.tree.flatten(trainer(dict(example)))]
    targets = [random.normal(size=shape).astype("float32") for shape in shapes]
    checks.check_fit(
        trainer,
        example,
        targets,
        untrained,
        {"loss": [keras.losses.MeanSquaredError()] * len(targets)},
    )
