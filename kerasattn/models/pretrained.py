"""From a folder of weights to a model and back."""

import contextlib
import inspect
import logging
import pathlib

import keras
import numpy as np

from kerasattn.models import changes
from kerasattn.weights import build_with_weights, find_format


class Pretrained:
    """Gives a model class `from_pretrained` and `save_pretrained`.

    A class declares

        formats: tuple of `kerasattn.weights.Format`, in the order in which a folder is tried;
            `save_pretrained` writes the first.

    and keeps the arguments of its constructor in `self._config`.
    """

    formats = ()

    @classmethod
    def from_pretrained(cls, folder, strict=True, load_in=None, **overrides):
        """Builds the model that a folder's config describes and loads its weights.

        Args:
            folder: path of a folder with a config and weights, in one of the class's formats.
            strict: bool, whether weights that are missing, unused or of another shape are an
                error. Otherwise what fits is loaded and the rest named in a warning.
            load_in: str, the dtype policy of the model's layers, such as "bfloat16", in which
                weights take half the room. By default Keras' policy, whatever the file's dtype;
                `model.dtype_policy`, which no weight is made by, is that in any case.
            **overrides: constructor arguments that replace those of the config or add to them.
                `heads` asks for other heads than the checkpoint's: those that it lacks are newly
                initialized, which a warning names.

        Raises:
            ValueError: for a folder in no known format, a corrupt file, or weights that do not fit.
        """
        folder = pathlib.Path(folder)
        if load_in is not None and overrides.setdefault("dtype", load_in) != load_in:
            raise ValueError(f"load_in={load_in!r} and dtype={overrides['dtype']!r} differ.")
        form, config = find_format(folder, cls.formats)
        path = form.config_path(folder)
        with _naming(cls, path):
            arguments = form.arguments(config, folder)
            new = _settle_heads(arguments, overrides, form, folder)
            _settle_tie(arguments, form, folder)
            arguments = {name: _revive(value) for name, value in arguments.items()} | overrides
            # Keras itself ignores names that it does not know.
            unknown = arguments.keys() - inspect.signature(cls.__init__).parameters.keys()
            if unknown:
                raise TypeError(f"there are no arguments {', '.join(sorted(unknown))}")

        def build():
            with _naming(cls, path):
                return cls(**arguments)

        optional = tuple(form.heads.values())
        with form.open(folder) as source:
            model, report = build_with_weights(
                build, form.table, source, strict, form.fresh, optional, new
            )
        forgotten = report.left_out and "heads" not in overrides
        if report.fresh or forgotten or not report.complete:
            logging.getLogger(__name__).warning("%s", report)
        return model

    def save_pretrained(self, folder):
        """Writes the weights and the config, in the family's published format; made if need be.

        Raises:
            ValueError: if the folder cannot be written; for a quantized model or adapters.
        """
        if not self.formats or self.formats[0].config is None:
            raise ValueError(
                f"{self.name} has no format of folders to write: save(path) writes a .keras file."
            )
        changes.check_unchanged(self)
        self.formats[0].save(self, self._config, folder)


@contextlib.contextmanager
def _naming(cls, path):
    """Turns what a constructor raises for a config that it cannot take into one error."""
    try:
        yield
    except Exception as error:  # a config may hold anything
        said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(
            f"No {cls.__name__} can be built from {path} and the arguments given ({said})."
        ) from error


def _settle_heads(arguments, overrides, form, folder):
    """Fills in the heads where the config does not say them, from the file.

    Returns:
        patterns of variables to be newly initialized: of heads that the file does not have, where
        other heads than its own are asked for.
    """
    if "heads" not in arguments or ("heads" not in overrides and arguments["heads"] is not None):
        return ()
    with form.open(folder) as source:
        found = form.heads_in(source.names)
    if arguments["heads"] is None:
        arguments["heads"] = found
    if "heads" not in overrides:
        return ()
    there = {*arguments["heads"], *found}
    return tuple(pattern for head, pattern in form.heads.items() if head not in there)


def _settle_tie(arguments, form, folder):
    """Unties a head for which the file has a table of its own, whatever the config says.

    So are files of T5 1.1 and mT5 written by transformers 5.
    """
    paths = ("token_embedding/embeddings", "head/kernel")
    found = [form.table.find(path) for path in paths]
    if not arguments.get("tied_head") or None in found:
        return
    with form.open(folder) as source:
        there = [(rule, name) for rule, names in found for name in names[:1] if name in source]
        if len(there) == 2:
            table, kernel = (rule.load(source.read(name)) for rule, name in there)
            arguments["tied_head"] = np.array_equal(table, kernel.T)


def _revive(value):
    """An object of ours, such as a tokenizer, from the dict that a config keeps of it."""
    if not isinstance(value, dict) or all(isinstance(v, (int, float)) for v in value.values()):
        return value
    ours = str(value.get("registered_name")).startswith("kerasattn>")
    if not (ours and str(value.get("module")).startswith("kerasattn.")):
        raise ValueError(f"A config may hold objects of kerasattn alone, got {str(value)[:200]}.")
    return keras.saving.deserialize_keras_object(value)
