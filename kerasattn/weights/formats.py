"""Formats: which files a family's checkpoints are, and which table and sizes they have."""

import dataclasses
import pathlib
from collections.abc import Callable

from kerasattn.weights import save, sources
from kerasattn.weights.rules import Table


@dataclasses.dataclass(frozen=True)
class Format:
    """One way in which a family's checkpoints are published.

    Args:
        name: str, for messages.
        config_file: str, name of the JSON file with the sizes.
        find: function of the folder that returns the path of its weights, or None.
        source: `Source` subclass that opens them.
        table: `Table`.
        accepts: function of the config: whether it is of this family and format.
        arguments: function of the config and the folder that returns the model's constructor
            arguments, by name.
        config: function of the constructor arguments that returns the config, for saving.
        extra: function of the constructor arguments that returns arrays to save besides.
        fresh: shell patterns of variables that such files never have.
    """

    name: str
    config_file: str
    find: Callable
    source: type
    table: Table
    accepts: Callable
    arguments: Callable
    config: Callable | None = None
    extra: Callable = lambda arguments: {}
    fresh: tuple = ()

    def open(self, folder):
        """The open `Source` of a folder."""
        return self.source(self.find(folder))

    def save(self, model, arguments, folder):
        """Writes the weights and then the config of a model built with `arguments`."""
        folder = pathlib.Path(folder)
        config = self.config(arguments)
        save.save_safetensors(model, self.table, folder, extra=self.extra(arguments))
        save.save_json(config, folder / self.config_file)


def find_format(folder, formats):
    """The first format that a folder is in, and its config.

    Returns:
        a `Format` and the dict that its config file holds.

    Raises:
        ValueError: saying what was looked for and what is there.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder.")
    refused = []
    for form in formats:
        if (folder / form.config_file).is_file() and form.find(folder):
            config = sources.read_json(folder / form.config_file)
            if form.accepts(config):
                return form, config
            refused.append(f"{form.config_file} has model_type {config.get('model_type')!r}")
    expected = "; ".join(f"{form.name} ({form.config_file} and weights)" for form in formats)
    there = ", ".join(sorted(path.name for path in folder.iterdir())[:20]) or "nothing"
    hint = ""
    if "pytorch_model" in there:
        hint = " pytorch_model.bin is not read: save it as safetensors."
    why = "; ".join(dict.fromkeys(refused)) or f"it holds {there}"
    raise ValueError(f"{folder} is in no format known here: {why}.{hint} Expected: {expected}.")
