"""Formats: which files a family's checkpoints are, and which table and sizes they have."""

import dataclasses
import fnmatch
import pathlib
from collections.abc import Callable

from kerasattn.weights import save, sources
from kerasattn.weights.rules import Table


@dataclasses.dataclass(frozen=True)
class Format:
    """One way in which a family's checkpoints are published.

    Args:
        name: str, for messages.
        config_file: str, name of the JSON file with the sizes, or a shell pattern of it.
        find: function of the folder that returns the path of its weights, or None.
        source: `Source` subclass that opens them.
        table: `Table`.
        accepts: function of the config: whether it is of this family and format.
        arguments: function of the config and the folder that returns the model's constructor
            arguments, by name.
        config: function of the constructor arguments that returns the config, for saving.
        extra: function of the constructor arguments that returns arrays to save besides.
        fresh: shell patterns of variables that such files never have.
        heads: dict from the names of heads to shell patterns of their variables. A model may leave
            out any of them, whatever the file holds.
        tells: function of the config and the names of the tensors in the file: whether these are
            the family's, where families share a kind of config.

    Example:
    >>> import tempfile
    >>> from kerasattn.models import RoFormer
    >>> from kerasattn.weights import find_format
    >>> model = RoFormer(20, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    >>> folder = tempfile.mkdtemp()
    >>> model.save_pretrained(folder)
    >>> form, config = find_format(folder, RoFormer.formats)
    >>> form.describes(folder), config["hidden_size"]
    (True, 8)
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
    heads: dict = dataclasses.field(default_factory=dict)
    tells: Callable = lambda config, names: True

    def open(self, folder):
        """The open `Source` of a folder."""
        return self.source(self.find(folder))

    def config_path(self, folder):
        """The config of a folder, or None.

        Raises:
            ValueError: if a pattern fits several.
        """
        paths = sorted(p for p in pathlib.Path(folder).glob(self.config_file) if p.is_file())
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise ValueError(f"{folder} has several configs ({names}); leave one in it.")
        return paths[0] if paths else None

    def describes(self, folder):
        """Whether a folder is this family's, in this format."""
        folder = pathlib.Path(folder)
        path = self.config_path(folder)
        if not (path and self.find(folder)):
            return False
        config = sources.read_json(path)
        if not self.accepts(config):
            return False
        with self.open(folder) as source:
            return self.tells(config, source.names)

    def heads_in(self, names):
        """The heads that a file with tensors of these names has, where only one can have them."""
        found = set()
        for name in names:
            owners = {
                head
                for path in self.table.owners(name)
                for head, pattern in self.heads.items()
                if fnmatch.fnmatchcase(path, pattern)
            }
            found |= owners if len(owners) == 1 else set()
        return tuple(head for head in self.heads if head in found)

    def save(self, model, arguments, folder):
        """Writes the weights and then the config of a model built with `arguments`."""
        folder = pathlib.Path(folder)
        config, table, extra = self.config(arguments), self.table, self.extra(arguments)
        if _is_bare(config):
            extra = {name.removeprefix(table.prefix): array for name, array in extra.items()}
            table = table.without_prefix()
        save.save_safetensors(model, table, folder, extra=extra)
        save.save_json(config, folder / self.config_file)


def _is_bare(config):
    """Whether a config's architecture has no head: its tensors have names without the prefix."""
    architecture = (config.get("architectures") or [""])[0]
    return architecture.endswith("Model") and not architecture.endswith(("HeadModel", "HeadsModel"))


def find_format(folder, formats):
    """The first format that a folder is in, and its config.

    Returns:
        a `Format` and the dict that its config file holds.

    Raises:
        ValueError: saying what was looked for and what is there.

    Example:
    >>> import tempfile
    >>> from kerasattn.models import RoFormer
    >>> from kerasattn.weights import find_format
    >>> model = RoFormer(20, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    >>> folder = tempfile.mkdtemp()
    >>> model.save_pretrained(folder)
    >>> form, config = find_format(folder, RoFormer.formats)
    >>> form.describes(folder), config["hidden_size"]
    (True, 8)
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder.")
    refused = []
    for form in formats:
        path = form.config_path(folder)
        if path and form.find(folder):
            config = sources.read_json(path)
            if form.accepts(config):
                return form, config
            refused.append(f"{path.name} has model_type {config.get('model_type')!r}")
    expected = "; ".join(f"{form.name} ({form.config_file} and weights)" for form in formats)
    there = ", ".join(sorted(path.name for path in folder.iterdir())[:20]) or "nothing"
    why = "; ".join(dict.fromkeys(refused)) or f"it holds {there}"
    raise ValueError(f"{folder} is in no format known here: {why}. Expected: {expected}.")
