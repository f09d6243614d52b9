"""Loading a model's variables through a table, one tensor at a time."""

import collections
import dataclasses
import fnmatch
import functools

import keras
import numpy as np
from keras import ops


@dataclasses.dataclass
class LoadReport:
    """What a file and a model did not have in common.

    Args:
        source: str, the file.
        loaded: paths of the variables that were loaded.
        missing: pairs of a variable's path and the name that the file lacks.
        unused: names of tensors in the file that no variable takes.
        mismatched: text for each tensor of another shape, or that differs from its tied twin.
        fresh: paths of variables that were to keep their new values.
        left_out: names of tensors in the file that belong to parts which the model leaves out.

    Example:
    >>> from kerasattn.weights import LoadReport
    >>> print(LoadReport("model.safetensors", loaded=["a"], fresh=["b"]))
    model.safetensors: 1 variables loaded.
    1 newly initialized:
      b
    """

    source: str
    loaded: list = dataclasses.field(default_factory=list)
    missing: list = dataclasses.field(default_factory=list)
    unused: list = dataclasses.field(default_factory=list)
    mismatched: list = dataclasses.field(default_factory=list)
    fresh: list = dataclasses.field(default_factory=list)
    left_out: list = dataclasses.field(default_factory=list)

    @property
    def complete(self):
        """Whether nothing was missing, unused or mismatched."""
        return not (self.missing or self.unused or self.mismatched)

    def __str__(self):
        lines = [f"{self.source}: {len(self.loaded)} variables loaded."]
        missing = [f"{path} (in the file: {name})" for path, name in self.missing]
        for title, items in (
            ("missing in the file", missing),
            ("in the file but not in the model", self.unused),
            ("mismatched", self.mismatched),
            ("newly initialized", self.fresh),
            ("of heads that the model leaves out", self.left_out),
        ):
            if items:
                lines += [f"{len(items)} {title}:", *(f"  {item}" for item in items)]
        return "\n".join(lines)


REMEDY = "strict=False to load what fits"


def load_weights(model, table, source, strict=True, fresh=(), optional=(), new=(), remedy=REMEDY):
    """Loads a model's variables from a file.

    Names and shapes are compared first, so that a model that does not fit is left as it was. Floats
    of any width load into the dtype of the variable.

    Args:
        model: a built `keras.Model` or layer.
        table: `Table`, the rules.
        source: `Source`, the open file.
        strict: bool, whether anything missing, unused or mismatched is an error. Otherwise what
            fits is loaded and the rest reported.
        fresh: shell patterns of variables that need not be in the file.
        optional: shell patterns of variables that need not be in the model, though the file has
            tensors for them.
        new: shell patterns of variables that are not loaded, whatever the file holds.
        remedy: str, what the error says that one may ask for.

    Returns:
        `LoadReport`.

    Raises:
        ValueError: listing all that is missing, unused or mismatched, if strict; for a file that
            turns out to be corrupt.

    Example:
    >>> import tempfile
    >>> import keras
    >>> from kerasattn.weights import Rule, SafetensorsSource, Table, load_weights, save_safetensors
    >>> dense = keras.layers.Dense(1, name="dense")
    >>> dense.build((None, 2))
    >>> table = Table((Rule("dense/kernel", "weight", "transpose"), Rule("dense/bias", "bias")))
    >>> folder = tempfile.mkdtemp()
    >>> save_safetensors(dense, table, folder)
    >>> with SafetensorsSource(f"{folder}/model.safetensors") as source:
    ...     load_weights(dense, table, source).complete
    True
    """
    report, plan = _compare(model, table, source, strict, fresh, optional, new, remedy)
    reader = _Reader(source, plan, report)
    for row in plan:
        row[0].assign(reader.read(*row))
    _raise_if(strict and not report.complete, report, remedy)
    return report


def build_with_weights(build, table, source, strict=True, fresh=(), optional=(), new=()):
    """Builds a model that starts with the numbers of a file, and draws none that these replace.

    Args:
        build: function without arguments that returns the built model.
        table, source, strict, fresh, optional, new: as `load_weights`.

    Returns:
        the model and the `LoadReport`.

    Raises:
        ValueError: as `load_weights`.

    Example:
    >>> import tempfile
    >>> import keras
    >>> from kerasattn import weights
    >>> def build():
    ...     dense = keras.layers.Dense(1, name="dense")
    ...     dense.build((None, 2))
    ...     return dense
    >>> table = weights.Table((weights.Rule("dense/kernel", "w"), weights.Rule("dense/bias", "b")))
    >>> folder = tempfile.mkdtemp()
    >>> weights.save_safetensors(build(), table, folder)
    >>> with weights.SafetensorsSource(f"{folder}/model.safetensors") as source:
    ...     dense, report = weights.build_with_weights(build, table, source)
    >>> report.loaded
    ['dense/kernel', 'dense/bias']
    """
    with keras.StatelessScope():  # variables get their first values where it ends
        model = build()
        report, plan = _compare(model, table, source, strict, fresh, optional, new)
        reader = _Reader(source, plan, report)
        for row in plan:
            row[0]._initializer = functools.partial(reader.first_value, row)
    if reader.error is not None:
        raise reader.error
    _raise_if(strict and not report.complete, report)
    return model, report


class _Reader:
    """Reads the tensors of a plan, each once, and keeps it until its last part is taken."""

    def __init__(self, source, plan, report):
        self.source, self.report = source, report
        self.waiting = collections.Counter(present[0] for _, _, present in plan)
        self.kept = {}
        self.error = None

    def read(self, variable, rule, present):
        """What a variable is to hold, as a numpy array."""
        name, *twins = present
        array = self.kept.pop(name, None)
        if array is None:
            array = self.source.read(name)
            _check_numbers(array.dtype, name)
        self.waiting[name] -= 1
        if self.waiting[name]:
            self.kept[name] = array
        for twin in twins:
            if not np.array_equal(array, self.source.read(twin), equal_nan=True):
                self.report.mismatched.append(
                    f"{variable.path}: {name} and {twin} are one tensor in the model but differ in "
                    "the file"
                )
        self.report.loaded.append(variable.path)
        return rule.load(array)

    def first_value(self, row, shape, dtype=None):
        """The initializer of a row's variable."""
        # Keras has more variables to fill, and cannot go on after an error: kept for later.
        try:
            if self.error is None:
                return ops.convert_to_tensor(self.read(*row), dtype)
        except Exception as error:
            self.error = error
        return ops.zeros(shape, dtype)


def _compare(model, table, source, strict, fresh, optional, new, remedy=REMEDY):
    """What a model and a file have in common: a report, and rows of what is to be loaded.

    A row is a variable, its rule, and the names of its tensor in the file; parts of one tensor
    follow each other.
    """
    report = LoadReport(str(source.path))
    names = set(source.names)
    taken = set()
    plan = []  # (variable, rule, names of its tensor in the file)
    for variable in model.weights:
        if _matches(variable.path, new):
            report.fresh.append(variable.path)
            continue
        rule, candidates = table.find(variable.path) or (None, (f"no rule for {variable.path}",))
        present = [name for name in candidates if name in names]
        taken.update(present)
        if present:
            shapes = {name: _loaded_shape(rule, source.shape(name)) for name in present}
            wrong = [name for name in present if shapes[name] != tuple(variable.shape)]
            report.mismatched += [
                f"{variable.path}: {tuple(variable.shape)} in the model, "
                f"{name}: {source.shape(name)} in the file"
                for name in wrong
            ]
            if not wrong:
                plan.append((variable, rule, present))
        elif _matches(variable.path, fresh):
            report.fresh.append(variable.path)
        else:
            report.missing.append((variable.path, candidates[0]))
    for name in sorted(name for name in names - taken if not table.ignores(name)):
        optional_owners = any(_matches(path, optional) for path in table.owners(name))
        (report.left_out if optional_owners else report.unused).append(name)
    _raise_if(strict and not report.complete, report, remedy)

    return report, sorted(plan, key=lambda row: row[2][0])


def _matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _loaded_shape(rule, shape):
    """The shape that a transform gives, found without reading: zero strides take no memory."""
    try:
        return rule.load(np.broadcast_to(np.zeros((), bool), shape)).shape
    except (ValueError, IndexError):  # a shape that the transform cannot take
        return None


def _check_numbers(dtype, name):
    # bfloat16 and the float8 kinds are no numpy numbers.
    if dtype.kind not in "fiu" and not dtype.name.startswith(("bfloat", "float")):
        raise ValueError(f"{name} holds {dtype}, expected numbers.")


def _raise_if(wrong, report, remedy=REMEDY):
    if wrong:
        raise ValueError(
            f"The weights do not fit the model.\n{report}\n"
            f"Give the arguments that fit the file, or {remedy}."
        )
