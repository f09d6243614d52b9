"""Tokenizers that run on the host, with the library `tokenizers`."""

import json
from pathlib import Path

import keras
import numpy as np

from kerasattn.tokenizers.base import Tokenizer
from kerasattn.tokenizers.checks import check_ids, check_texts, read_json
from kerasattn.tokenizers.layout import Layout

MAX_SIZE = 256 * 2**20  # bytes of a tokenizer.json
# Spellings of special tokens, the likeliest first.
SPELLINGS = {
    "pad": ("<pad>", "[PAD]", "<|pad|>"),
    "unk": ("<unk>", "[UNK]", "<|endoftext|>"),
    "cls": ("[CLS]", "<s>", "<cls>"),
    "sep": ("[SEP]", "</s>", "<sep>"),
    "mask": ("<mask>", "[MASK]"),
    "bos": ("<s>", "<|endoftext|>", "<|begin_of_text|>"),
    "eos": ("</s>", "<|endoftext|>", "<|end_of_text|>"),
}


def import_tokenizers():
    """The library `tokenizers`.

    Raises:
        ImportError: if it is not installed; it names the extra.
    """
    try:
        import tokenizers
    except ImportError:
        raise ImportError(
            "This tokenizer needs the library tokenizers: pip install kerasattn[tokenizers]"
        ) from None
    return tokenizers


@keras.saving.register_keras_serializable(package="kerasattn")
class HostTokenizer(Tokenizer):
    """Any `tokenizer.json`: byte-level BPE, BPE, WordPiece or Unigram, on the host.

    In `tf.data` it works on string tensors too, by calling back to Python; it can't be
    part of a SavedModel.

    Args:
        json: str, the text of a `tokenizer.json`.
        special_tokens: dict from a role (`pad`, `unk`, `cls`, `sep`, `mask`, `bos`, `eos`) to a
            token; None finds the usual spellings among its special tokens.
        padding_side: "right" or "left".
        allow_special: whether special tokens written in a text are those tokens.

    Raises:
        ImportError: if the library tokenizers is missing.
        ValueError: if the text is no `tokenizer.json` that it can read.

    Example:

    >>> import pytest
    >>> tokenizers = pytest.importorskip("tokenizers")
    >>> from kerasattn.tokenizers import HostTokenizer
    >>> words = tokenizers.models.WordLevel({"<unk>": 0, "hello": 1, "world": 2}, unk_token="<unk>")
    >>> library = tokenizers.Tokenizer(words)
    >>> library.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    >>> tokenizer = HostTokenizer(library.to_str())
    >>> tokenizer.encode(["hello world", "hello"]).tolist()
    [[1, 2], [1, 0]]
    >>> tokenizer.offsets("hello world")
    [(0, 5), (6, 11)]
    """

    IN_LINES = False
    OPTIONS = ("special_tokens", "padding_side", "allow_special")

    def __init__(self, json, special_tokens=None, padding_side="right", allow_special=True):
        import_tokenizers()
        self._library = parse(json)
        names = self._library.get_vocab(with_added_tokens=True)
        last = max(names.values(), default=-1)
        if last > 10 * len(names) + 1000:
            raise ValueError(f"The tokenizer.json has {len(names)} tokens, but ids up to {last}.")
        vocabulary = [f"[unused id {i}]" for i in range(last + 1)]
        for token, token_id in names.items():
            vocabulary[token_id] = token
        added = self._library.get_added_tokens_decoder()
        special = [token.content for token in added.values() if token.special]
        if special_tokens is None:
            special_tokens = find_special_tokens(vocabulary)
        missing = [token for token in special_tokens.values() if token not in names]
        if missing:
            raise ValueError(f"The tokenizer.json lacks the special tokens {' '.join(missing)}.")
        super().__init__(vocabulary, special_tokens, Layout([], []), padding_side, allow_special)
        self._set_special(dict.fromkeys([*special, *special_tokens.values()]))
        self.layout = find_layout(self._library)
        self._strict = None

    # === Strings to ids ===

    def _encodings(self, texts, allow_special=None):
        """The library's encodings, nothing added."""
        library = self._library
        if not self._allows(allow_special):
            if self._strict is None:  # another one: the setting belongs to the object
                self._strict = import_tokenizers().Tokenizer.from_str(library.to_str())
                self._strict.encode_special_tokens = True
            library = self._strict
        return library.encode_batch(check_texts(texts), add_special_tokens=False)

    def rows(self, texts, allow_special=None):
        return [np.array(e.ids, "int32") for e in self._encodings(texts, allow_special)]

    def spans(self, texts, allow_special=None):
        return [[tuple(o) for o in e.offsets] for e in self._encodings(texts, allow_special)]

    def to_ids(self, text, allow_special=None):
        return host_ids(self, text, allow_special)

    # === Ids to strings ===

    def decode(self, token_ids, skip_special_tokens=True, whole=False, spacing="natural"):
        rows = [row.tolist() for row in check_ids(token_ids, self.vocabulary_size)]
        if not whole:
            rows = [self._until_end(row) for row in rows]
        if skip_special_tokens:
            special = set(self.special_ids)
            rows = [[i for i in row if i not in special] for row in rows]
        return self._library.decode_batch(rows, skip_special_tokens=False)

    def _until_end(self, row):
        """A row up to the first end token; one that stands before the text begins it."""
        special = set(self.special_ids)
        begun = False
        for place, token_id in enumerate(row):
            if begun and token_id == self.end_id:
                return row[:place]
            begun = begun or token_id not in special
        return row

    # === Files and configuration ===

    def get_config(self):
        return {
            "json": self._library.to_str(),
            "special_tokens": dict(self.special_tokens),
            "padding_side": self.padding_side,
            "allow_special": self.allow_special,
        }

    def save(self, path):
        """Writes a folder with `tokenizer.json` and `tokenizer_config.json`."""
        path, options = Path(path), self.get_config()
        text = options.pop("json")
        self._save_options(path, options)
        (path / "tokenizer.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path, **options):
        """Reads a `tokenizer.json`, or a folder with one."""
        path = Path(path)
        if path.is_dir():
            options = {**cls.read_options(path), **options}
            path = path / "tokenizer.json"
        try:
            if path.stat().st_size > MAX_SIZE:
                raise ValueError(f"{path} is too large for a tokenizer.json.")
            text = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise ValueError(f"There is no file {path}.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} can't be read as UTF-8 JSON: {error}.") from None
        return cls(text, **options)

    @classmethod
    def read_options(cls, folder):
        """Our own options, or the special tokens in Hugging Face's files."""
        options = super().read_options(folder)
        config = read_json(Path(folder) / "tokenizer_config.json")
        if "special_tokens" not in options:
            config = {**read_json(Path(folder) / "special_tokens_map.json"), **config}
            named = {role: config.get(f"{role}_token") for role in SPELLINGS}
            named = {r: t["content"] if isinstance(t, dict) else t for r, t in named.items() if t}
            if named:
                options["special_tokens"] = named
        if options.get("padding_side", "right") not in ("left", "right"):
            del options["padding_side"]
        return options


def parse(text):
    """The library's tokenizer from the text of a `tokenizer.json`."""
    try:
        if not isinstance(json.loads(text), dict):
            raise ValueError("it is no JSON object")
        library = import_tokenizers().Tokenizer.from_str(text)
        library.no_truncation()
        library.no_padding()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the library may panic, which is no Exception
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise ValueError(f"This is no tokenizer.json that can be read: {reason}.") from None
    return library


def find_special_tokens(vocabulary):
    """The roles whose usual spelling is in the vocabulary."""
    tokens = set(vocabulary)
    found = {}
    for role, spellings in SPELLINGS.items():
        spelling = next((s for s in spellings if s in tokens), None)
        if spelling is not None:
            found[role] = spelling
    return found


def find_layout(library):
    """Where a library's tokenizer puts special tokens, seen from what it does with two words."""
    probe = next(
        (t for t in ("a", "the", "1", "中", *library.get_vocab()) if len(_ids(library, t))), None
    )
    if probe is None:
        raise ValueError("The tokenizer.json gives no token for any text.")
    layouts = []
    for pair in (None, probe):
        encoding = library.encode(probe, pair)
        items = []
        for token_id, segment, sequence in zip(
            encoding.ids, encoding.type_ids, encoding.sequence_ids
        ):
            item = token_id if sequence is None else "AB"[sequence]
            if not items or isinstance(item, int) or items[-1][0] != item:
                items.append((item, segment))
        layouts.append(items)
    return Layout(*layouts)


def _ids(library, text):
    return library.encode(text, add_special_tokens=False).ids


def host_ids(tokenizer, text, allow_special):
    """`tokenizer.rows` of a string tensor, ragged; in `tf.data`, by a call back to Python."""
    import tensorflow as tf

    def call(texts):
        rows = tokenizer.rows(texts.tolist(), allow_special) if len(texts) else []
        lengths = np.array([len(row) for row in rows], "int64")
        return np.concatenate([*rows, np.zeros(0, "int32")]).astype("int32"), lengths

    flat, lengths = tf.numpy_function(call, [text], (tf.int32, tf.int64))
    flat.set_shape([None])
    lengths.set_shape([text.shape[0]])
    return tf.RaggedTensor.from_row_lengths(flat, lengths)
