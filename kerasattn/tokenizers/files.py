"""Tokenizers as files: a vocabulary, one token a line, and the options beside it."""

import json
from pathlib import Path

from kerasattn.tokenizers.checks import read_json, read_vocabulary


class Saved:
    """What `Tokenizer` does with files, here for a vocabulary of lines."""

    OPTIONS = ()  # arguments that `tokenizer_config.json` may hold

    def get_config(self):
        return {"vocabulary": list(self.vocabulary)}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def save(self, path):
        """Writes the vocabulary, one token a line: the line's number, from 0, is the id.

        Args:
            path: a file ending in `.txt`, or a folder, which then gets `vocab.txt` and
                `tokenizer_config.json`, the further options.
        """
        path = Path(path)
        if path.suffix != ".txt":
            options = {k: v for k, v in self.get_config().items() if k != "vocabulary"}
            self._save_options(path, options)
            path = path / "vocab.txt"
        lines = "".join(token + "\n" for token in self.vocabulary)
        path.write_text(lines, encoding="utf-8", newline="\n")

    def _save_options(self, folder, options):
        """Makes the folder, and in it `tokenizer_config.json` with the class and its options."""
        folder.mkdir(parents=True, exist_ok=True)
        config = json.dumps({"tokenizer_class": type(self).__name__, **options}, indent=2)
        (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path, **options):
        """Reads what `save` wrote, or another program's `vocab.txt` or folder with one.

        Args:
            path: a vocabulary file, or a folder with `vocab.txt` in it.
            **options: arguments of the class; they go before the folder's own.

        Raises:
            ValueError: if there is no such file, or it holds no vocabulary.
        """
        path = Path(path)
        if path.is_dir():
            options = {**cls.read_options(path), **options}
            path = path / "vocab.txt"
        return cls(vocabulary=read_vocabulary(path), **options)

    @classmethod
    def from_pretrained(cls, folder, **options):
        """The tokenizer in a folder: `Tokenizer.from_pretrained` finds which kind it is."""
        if Saved not in cls.__bases__:
            return cls.load(folder, **options)
        from kerasattn.tokenizers.finder import from_pretrained

        return from_pretrained(folder, **options)

    @classmethod
    def read_options(cls, folder):
        """The further options in a folder's `tokenizer_config.json`, if it is there."""
        config = read_json(Path(folder) / "tokenizer_config.json")
        return {key: config[key] for key in cls.OPTIONS if key in config}
