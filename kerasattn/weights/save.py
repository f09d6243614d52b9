"""Saving a model's variables under foreign names, through the table that loads them."""

import contextlib
import json
import os
import pathlib

import numpy as np
import safetensors
import safetensors.numpy
from keras import ops


@contextlib.contextmanager
def replacing(path):
    """Gives a new file's path and puts it in the place of `path` only when all went well.

    Raises:
        ValueError: naming `path`, if it cannot be written.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, safetensors.SafetensorError) as error:
        raise ValueError(f"{path} cannot be written ({error}).") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def save_json(value, path):
    """Writes an object as JSON, atomically.

    Example:
    >>> import os, tempfile
    >>> from kerasattn.weights import save_json
    >>> path = os.path.join(tempfile.mkdtemp(), "config.json")
    >>> save_json({"hidden_size": 8}, path)
    >>> print(open(path).read())
    {
      "hidden_size": 8
    }
    """
    with replacing(path) as temporary:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def save_safetensors(model, table, folder, extra=None):
    """Writes `model.safetensors` with the names of a table, atomically.

    Args:
        model: a built `keras.Model` or layer.
        table: `Table`, the rules.
        folder: made if need be.
        extra: dict of numpy arrays to write besides, such as buffers that others expect.

    Raises:
        ValueError: for variables that the table has no rule for, two with the same name, or a
            folder that cannot be written.

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
    arrays, parts, axes = {}, {}, {}
    unknown = []
    for variable in model.weights:
        rule, names = table.find(variable.path) or (None, None)
        if rule is None:
            unknown.append(variable.path)
            continue
        name = names[0]
        array = rule.save(ops.convert_to_numpy(variable.value))
        if name in arrays or rule.part in parts.get(name, ()):
            raise ValueError(f"{variable.path} and another variable would both be {name}.")
        if rule.part is not None:
            parts.setdefault(name, {})[rule.part] = array
            axes[name] = rule.axis
        else:
            arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    for name, pieces in parts.items():
        whole = np.concatenate([pieces[i] for i in sorted(pieces)], axis=axes[name])
        arrays[name] = np.ascontiguousarray(whole)
    if unknown:
        raise ValueError(f"The table has no rule for {', '.join(unknown)}.")
    with replacing(pathlib.Path(folder) / "model.safetensors") as temporary:
        # transformers refuses files that do not say so.
        safetensors.numpy.save_file(
            {**arrays, **(extra or {})}, temporary, metadata={"format": "pt"}
        )
