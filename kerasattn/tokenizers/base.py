"""What every tokenizer does: special tokens, padding, truncation, saving.

A tokenizer holds its vocabulary as numpy arrays and no TensorFlow resource (a table would
have to be tracked by whoever exports it), so that its methods can be called eagerly, in a
`tf.data` pipeline and in a SavedModel alike. TensorFlow is imported when first needed.
"""

import json
import re
from pathlib import Path

import numpy as np

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SURROGATE = re.compile("[\ud800-\udfff]")
ENCODE_BATCH, DECODE_BATCH = 8192, 1024  # sentences at a time


class Tokenizer:
    """Base of the tokenizers; a subclass defines `tokenize` and `join_tokens`.

    Args:
        vocabulary: list of str, the token of each id. It must hold `[PAD]`, `[UNK]`, `[CLS]`,
            `[SEP]` and `[MASK]`, at any place, and no token twice.

    Raises:
        ValueError: if the vocabulary is empty, repeats a token, or lacks a special token.
    """

    def __init__(self, vocabulary):
        self.vocabulary = check_vocabulary(vocabulary)
        ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            ids[token] for token in SPECIAL_TOKENS
        )
        self._is_special = np.array([token in SPECIAL_TOKENS for token in self.vocabulary])
        self._ids = ids
        self._decode = None

    @property
    def vocabulary_size(self):
        """Number of tokens, special ones included."""
        return len(self.vocabulary)

    def token_to_id(self, token):
        """The id of a token, that of `[UNK]` if the vocabulary lacks it."""
        return self._ids.get(token, self.unk_id)

    # === Strings to ids ===

    def tokenize(self, text):
        """Strings (batch,) -> ragged int32 ids (batch, (length)), nothing added; in the graph."""
        raise NotImplementedError

    def encode_ragged_tensor(self, text, max_length=None):
        """Strings (batch,) -> ragged ids `[CLS] ... [SEP]` of at most max_length; in the graph."""
        import tensorflow as tf

        check_max_length(max_length)
        ids = self.tokenize(text)
        if max_length is not None:
            ids = ids[:, : max_length - 2]
        edge = tf.ones([ids.nrows(), 1], ids.dtype)
        return tf.concat([edge * self.cls_id, ids, edge * self.sep_id], axis=1)

    def encode_tensor(self, text, max_length=None):
        """Strings (batch,) -> int32 ids (batch, length), as `encode`; in the graph."""
        ids = self.encode_ragged_tensor(text, max_length)
        return ids.to_tensor(self.pad_id, shape=(None, max_length))

    def encode_ragged(self, texts, max_length=None):
        """A list of strings to a list of int32 arrays `[CLS] ... [SEP]`, each of its own length.

        For a whole corpus: 100,000 sentences take about a second.
        """
        import tensorflow as tf

        check_max_length(max_length)
        texts, rows = check_texts(texts), []
        with tf.device("CPU"):
            for start in range(0, len(texts), ENCODE_BATCH):
                batch = tf.constant(texts[start : start + ENCODE_BATCH], tf.string)
                ids = self.encode_ragged_tensor(batch, max_length)
                rows += np.split(ids.flat_values.numpy(), ids.row_splits.numpy()[1:-1])
        return rows

    def encode(self, texts, max_length=None):
        """Strings to padded ids, `[CLS] ... [SEP] [PAD] ...`.

        Args:
            texts: list of str, or one str (a batch of one). Lone surrogates count as unknown.
            max_length: int >= 2, the length of every row: longer texts lose their end but keep
                `[SEP]`. None pads to the longest text.

        Returns:
            int32 array (batch, length).

        Raises:
            ValueError: if texts is empty or holds something else than strings.
        """
        rows = self.encode_ragged(texts, max_length)
        length = max_length or max(len(row) for row in rows)
        ids = np.full((len(rows), length), self.pad_id, "int32")
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
        return ids

    def __call__(self, texts, max_length=None):
        """`encode` for strings, `encode_tensor` for a string tensor."""
        if is_symbolic_or_tensor(texts):
            return self.encode_tensor(texts, max_length)
        return self.encode(texts, max_length)

    # === Ids to strings ===

    def join_tokens(self, ids):
        """Ragged ids without special tokens -> strings (batch,); in the graph."""
        raise NotImplementedError

    def detokenize(self, token_ids):
        """Ids (batch, length), dense or ragged -> strings (batch,); in the graph.

        What follows the first `[SEP]` is not read, special tokens are left out.
        """
        import tensorflow as tf

        if not isinstance(token_ids, tf.RaggedTensor):
            token_ids = tf.RaggedTensor.from_tensor(tf.convert_to_tensor(token_ids))
        ids, row = token_ids.flat_values, token_ids.value_rowids()
        # How many [SEP] stand in the row up to each id: all of them, less those of former rows.
        ends = tf.cumsum(tf.cast(ids == self.sep_id, "int32"))
        former = tf.gather(tf.concat([[0], ends], axis=0), token_ids.row_starts())
        keep = (ends == tf.gather(former, row)) & ~tf.gather(self._is_special, ids)
        return self.join_tokens(tf.ragged.boolean_mask(token_ids, token_ids.with_flat_values(keep)))

    def decode(self, token_ids):
        """Ids to a list of strings, up to the first `[SEP]`, without special tokens.

        Args:
            token_ids: integers of shape (batch, length) or (length,), or a list of lists.

        Raises:
            ValueError: if an id is not an integer or lies outside of the vocabulary.
        """
        import tensorflow as tf

        if self._decode is None:  # a graph: a hundred small operations run one by one are slow
            spec = tf.RaggedTensorSpec((None, None), tf.int32, ragged_rank=1)
            self._decode = tf.function(self.detokenize, input_signature=[spec])
        texts, rows = [], check_ids(token_ids, self.vocabulary_size)
        with tf.device("CPU"):
            for start in range(0, len(rows), DECODE_BATCH):
                batch = rows[start : start + DECODE_BATCH]
                flat = np.concatenate(batch).astype("int32")
                ids = tf.RaggedTensor.from_row_lengths(flat, [len(row) for row in batch])
                texts += self._decode(ids).numpy().tolist()
        return [text.decode("utf-8", "replace") for text in texts]

    # === Files and configuration ===

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
        folder = None if path.suffix == ".txt" else path
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            options = {k: v for k, v in self.get_config().items() if k != "vocabulary"}
            config = json.dumps({"tokenizer_class": type(self).__name__, **options}, indent=2)
            (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")
            path = folder / "vocab.txt"
        lines = "".join(token + "\n" for token in self.vocabulary)
        path.write_text(lines, encoding="utf-8", newline="\n")

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
            options = {**cls.read_options(path / "tokenizer_config.json"), **options}
            path = path / "vocab.txt"
        return cls(vocabulary=read_vocabulary(path), **options)

    @classmethod
    def read_options(cls, path):
        """The further options in a folder's `tokenizer_config.json`, if it is there."""
        return {}


def check_vocabulary(vocabulary):
    """The vocabulary as a list, if it is one that ids can be read from."""
    if isinstance(vocabulary, str):
        raise ValueError(
            f"vocabulary must be a list of tokens, got the string {vocabulary[:40]!r}; "
            "a vocabulary file is read by `load(path)`."
        )
    vocabulary = list(vocabulary)
    if not vocabulary:
        raise ValueError("The vocabulary is empty: give a list of tokens, or `build` one.")
    seen = {}
    for i, token in enumerate(vocabulary):
        if not isinstance(token, str):
            raise ValueError(f"Token {i} of the vocabulary must be a string, got {token!r}.")
        if "\n" in token or SURROGATE.search(token):
            raise ValueError(f"Token {i}, {token!r}, holds a line end or a lone surrogate.")
        if token in seen:
            raise ValueError(f"The vocabulary has {token!r} twice, at {seen[token]} and {i}.")
        seen[token] = i
    missing = [token for token in SPECIAL_TOKENS if token not in seen]
    if missing:
        raise ValueError(
            f"The vocabulary of {len(vocabulary)} tokens lacks {' '.join(missing)}; "
            f"it must hold {' '.join(SPECIAL_TOKENS)}, at any place."
        )
    return vocabulary


def read_vocabulary(path):
    """The lines of a vocabulary file, only their ends taken off: U+3000 is a token too."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ValueError(f"There is no vocabulary file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read as a UTF-8 vocabulary: {error}.") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    if lines and all(line.endswith("\r") for line in lines):  # written on Windows
        lines = [line[:-1] for line in lines]
    return lines


def check_texts(texts):
    """A list of encodable strings; a single string is a batch of one."""
    if isinstance(texts, (str, bytes)):
        texts = [texts]
    try:
        texts = list(texts)
    except TypeError:
        raise ValueError(f"texts must be a string or a list of strings, got {texts!r}.") from None
    if not texts:
        raise ValueError("texts is empty: give at least one string ('' is one).")
    for i, text in enumerate(texts):
        if isinstance(text, bytes):
            texts[i] = text.decode("utf-8", "replace")
        elif not isinstance(text, str):
            raise ValueError(f"texts must hold strings, got {type(text).__name__} at {i}.")
        elif not text.isascii():
            texts[i] = SURROGATE.sub("\ufffd", text)
    return texts


def check_ids(token_ids, vocabulary_size):
    """Rows of integer arrays, every id inside of the vocabulary."""
    if hasattr(token_ids, "to_list"):  # a ragged tensor
        token_ids = token_ids.to_list()
    rows = token_ids if isinstance(token_ids, (list, tuple)) else np.asarray(token_ids)
    if isinstance(rows, np.ndarray) and rows.ndim > 2:
        raise ValueError(f"token_ids must have shape (batch, length), got {rows.shape}.")
    if len(rows) and np.ndim(rows[0]) == 0:
        rows = [rows]
    rows = [np.asarray(row) for row in rows]
    for i, row in enumerate(rows):
        if row.size == 0:
            continue
        if row.ndim != 1 or row.dtype.kind not in "iu":
            raise ValueError(
                f"token_ids must hold rows of integers, got row {i} of shape {row.shape} "
                f"and type {row.dtype}."
            )
        if row.min() < 0 or row.max() >= vocabulary_size:
            bad = row.min() if row.min() < 0 else row.max()
            raise ValueError(
                f"Token id {bad} in row {i} is out of range: the vocabulary has "
                f"{vocabulary_size} tokens, ids 0 to {vocabulary_size - 1}."
            )
    return rows


def check_max_length(max_length):
    if max_length is not None and (isinstance(max_length, bool) or not max_length >= 2):
        raise ValueError(f"max_length must be at least 2, for [CLS] and [SEP], got {max_length}.")


def is_symbolic_or_tensor(value):
    """Whether value is a TensorFlow tensor, without importing TensorFlow to find out."""
    if not type(value).__module__.startswith("tensorflow"):
        return False
    import tensorflow as tf

    return tf.is_tensor(value)
