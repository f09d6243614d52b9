"""What every tokenizer does: special tokens, pairs, padding, truncation, saving.

A tokenizer holds its vocabulary as numpy arrays and no TensorFlow resource (a table would
have to be tracked by whoever exports it), so that its methods can be called eagerly, in a
`tf.data` pipeline and in a SavedModel alike. TensorFlow is imported when first needed.
"""

import numpy as np

from kerasattn.tokenizers.checks import (
    CLS,
    MASK,
    PAD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    check_ids,
    check_pairs,
    check_texts,
    check_vocabulary,
    is_tensor,
)
from kerasattn.tokenizers.files import Saved
from kerasattn.tokenizers.layout import Layout, as_ragged, keep_lengths

__all__ = ["CLS", "MASK", "PAD", "SEP", "SPECIAL_TOKENS", "UNK", "Tokenizer"]

ENCODE_BATCH, DECODE_BATCH = 8192, 1024  # sentences at a time
ROLES = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")


class Tokenizer(Saved):
    """Base of the tokenizers: one interface for strings, string tensors and pairs.

    A subclass defines `to_ids` and `join_tokens`, which run in the graph, and `spans`. The ids
    `pad_id`, `unk_id`, `cls_id`, `sep_id`, `mask_id`, `bos_id`, `eos_id` are None where the
    vocabulary has no such token, but for `pad_id`, which batches need.

    Args:
        vocabulary: list of str, the token of each id, no token twice.
        special_tokens: dict from a role (`pad`, `unk`, `cls`, `sep`, `mask`, `bos`, `eos`) to
            the token in the vocabulary. None for BERT's five, `[PAD]` and so on.
        layout: a `Layout`, where special tokens go. None for `[CLS] A [SEP] B [SEP]`.
        padding_side: "right" or "left".
        allow_special: whether special tokens written in a text are those tokens. Turn it off
            for text of strangers, here or in each call.

    Raises:
        ValueError: if the vocabulary is empty, repeats a token, or lacks a special token.
    """

    IN_LINES = True  # whether the vocabulary is saved as lines of a file

    def __init__(
        self,
        vocabulary,
        special_tokens=None,
        layout=None,
        padding_side="right",
        allow_special=True,
    ):
        if special_tokens is None:
            special_tokens = zip(ROLES, SPECIAL_TOKENS)
        special_tokens = dict(special_tokens)
        needed = list(dict.fromkeys(special_tokens.values()))
        self.vocabulary = check_vocabulary(vocabulary, needed, self.IN_LINES)
        if padding_side not in ("left", "right"):
            raise ValueError(f'padding_side must be "left" or "right", got {padding_side!r}.')
        self.special_tokens, self.padding_side = special_tokens, padding_side
        self.allow_special = bool(allow_special)
        ids = self._ids = {token: i for i, token in enumerate(self.vocabulary)}
        for role in ROLES:
            setattr(self, f"{role}_id", ids.get(special_tokens.get(role)))
        if self.pad_id is None:
            others = (self.eos_id, self.unk_id, 0)
            self.pad_id = next(i for i in others if i is not None)
        if layout is None:
            start, end = (self.cls_id, 0), (self.sep_id, 0)
            pair = [start, ("A", 0), end, ("B", 1), (self.sep_id, 1)]
            layout = Layout([start, ("A", 0), end], pair)
        self.layout = layout
        self._set_special(special_tokens.values())
        self._decoders = {}

    def _set_special(self, tokens):
        """These tokens are left out by `decode` and found in texts."""
        self.special_ids = sorted({self._ids[token] for token in tokens})
        self._is_special = np.zeros(len(self.vocabulary), bool)
        self._is_special[self.special_ids] = True
        self.end_id = self.eos_id if self.sep_id is None else self.sep_id

    @property
    def vocabulary_size(self):
        """Number of tokens, special ones included."""
        return len(self.vocabulary)

    def token_to_id(self, token):
        """The id of a token, that of the unknown token if the vocabulary lacks it."""
        return self._ids.get(token, self.unk_id)

    def _allows(self, allow_special):
        return self.allow_special if allow_special is None else allow_special

    # === Strings to ids, in the graph ===

    def to_ids(self, text, allow_special=None):
        """Strings (batch,) -> ragged int32 ids (batch, (length)), nothing added; in the graph."""
        raise NotImplementedError

    def encode_ragged_tensor(self, text, max_length=None, allow_special=None):
        """Strings (batch,) -> ragged ids, as `encode_ragged`; in the graph."""
        room = self.layout.room(max_length, False)
        ids = self.to_ids(text, allow_special)
        return self.layout.fill_tensors(ids if room is None else ids[:, :room])[0]

    def encode_tensor(self, text, max_length=None, allow_special=None):
        """Strings (batch,) -> int32 ids (batch, length), as `encode`; in the graph."""
        ids = self.encode_ragged_tensor(text, max_length, allow_special)
        return self._to_dense(ids, self.pad_id, max_length)

    def encode_pair_tensor(self, first, second, max_length=None, allow_special=None):
        """Two string tensors (batch,) -> a dict of tensors, as `encode_pair`; in the graph."""
        import tensorflow as tf

        room = self.layout.room(max_length, True)
        first, second = (self.to_ids(text, allow_special) for text in (first, second))
        if room is not None:
            lengths = first.row_lengths(), second.row_lengths()
            kept = keep_lengths(*lengths, room, tf.minimum, tf.maximum)
            first, second = (_cut(ids, n) for ids, n in zip((first, second), kept))
        ids, segments = self.layout.fill_tensors(first, second)
        return {
            "token_ids": self._to_dense(ids, self.pad_id, max_length),
            "segment_ids": self._to_dense(segments, self.layout.pad_segment, max_length),
            "padding_mask": self._to_dense(tf.ones_like(ids, "bool"), False, max_length),
        }

    def _to_dense(self, ragged, value, length):
        import tensorflow as tf

        if self.padding_side == "right":
            return ragged.to_tensor(value, shape=(None, length))
        ragged = as_ragged(tf.reverse(ragged, [1]))
        return tf.reverse(ragged.to_tensor(value, shape=(None, length)), [1])

    # === Strings to ids ===

    def rows(self, texts, allow_special=None):
        """A list of strings to a list of int32 arrays, nothing added, nothing cut."""
        import tensorflow as tf

        texts, rows = check_texts(texts), []
        with tf.device("CPU"):
            for start in range(0, len(texts), ENCODE_BATCH):
                batch = tf.constant(texts[start : start + ENCODE_BATCH], tf.string)
                ids = self.to_ids(batch, allow_special)
                rows += np.split(ids.flat_values.numpy(), ids.row_splits.numpy()[1:-1])
        return rows

    def encode_ragged(self, texts, max_length=None, allow_special=None):
        """A list of strings to a list of int32 arrays `[CLS] ... [SEP]`, each of its own length.

        For a whole corpus: 100,000 sentences take about a second.
        """
        room = self.layout.room(max_length, False)
        rows = self.rows(texts, allow_special)
        edges = [
            "A" if item == "A" else np.array([item], "int32") for item, _ in self.layout.single
        ]
        return [
            np.concatenate([row[:room] if isinstance(e, str) else e for e in edges]) for row in rows
        ]

    def encode(self, texts, max_length=None, allow_special=None):
        """Strings to padded ids, `[CLS] ... [SEP] [PAD] ...` or what the model's family has.

        Args:
            texts: list of str, or one str (a batch of one). Lone surrogates count as unknown.
            max_length: int, the length of every row: longer texts lose their end but keep
                `[SEP]`. None pads to the longest text.
            allow_special: whether `[MASK]` and its kin, written in a text, are those tokens; None
                as the tokenizer was made.

        Returns:
            int32 array (batch, length).

        Raises:
            ValueError: if texts is empty or holds something else than strings.
        """
        rows = self.encode_ragged(texts, max_length, allow_special)
        return self._pad(rows, self.pad_id, max_length)

    def encode_pair(self, first, second, max_length=None, allow_special=None):
        """Pairs of strings to the inputs of a model, `[CLS] ... [SEP] ... [SEP] [PAD] ...`.

        Args:
            first, second: lists of str of the same length, or one str each.
            max_length: int, the length of every row: of a pair that is longer, the longer text
                loses its end first. None pads to the longest pair.
            allow_special: as of `encode`.

        Returns:
            dict of arrays (batch, length): `token_ids` and `segment_ids`, int32, and
            `padding_mask`, bool, True = real token.
        """
        first, second = check_pairs(first, second)
        room = self.layout.room(max_length, True)
        rows = self.rows(first + second, allow_special)
        token_ids, segments = [], []
        for a, b in zip(rows[: len(first)], rows[len(first) :]):
            if room is not None:
                kept = keep_lengths(len(a), len(b), room, min, max)
                a, b = a[: kept[0]], b[: kept[1]]
            token_ids.append(self.layout.fill(a, b))
            segments.append(self.layout.segments(len(a), len(b)))
        mask = [np.ones(len(row), bool) for row in token_ids]
        return {
            "token_ids": self._pad(token_ids, self.pad_id, max_length),
            "segment_ids": self._pad(segments, self.layout.pad_segment, max_length),
            "padding_mask": self._pad(mask, False, max_length).astype(bool),
        }

    def _pad(self, rows, value, length):
        length = length or max(len(row) for row in rows)
        padded = np.full((len(rows), length), value, "int32")
        for i, row in enumerate(rows):
            if self.padding_side == "right":
                padded[i, : len(row)] = row
            else:
                padded[i, length - len(row) :] = row
        return padded

    def __call__(self, texts, max_length=None, allow_special=None):
        """`encode` for strings, `encode_tensor` for a string tensor."""
        encode = self.encode_tensor if is_tensor(texts) else self.encode
        return encode(texts, max_length, allow_special)

    # === Tokens and where they stand ===

    def tokenize(self, texts, pairs=None, special_tokens=False, allow_special=None):
        """Strings to tokens.

        Args:
            texts: one str, a list of str, or a string tensor (batch,).
            pairs: as texts, their second halves, or None.
            special_tokens: whether the tokens that `encode` adds are there too.
            allow_special: as of `encode`.

        Returns:
            list of str for one str, list of those for a list, a ragged string tensor for a tensor.
        """
        if is_tensor(texts):
            import tensorflow as tf

            ids = [self.to_ids(t, allow_special) for t in (texts, pairs) if t is not None]
            if special_tokens:
                ids = self.layout.fill_tensors(*ids)
            return tf.gather(tf.constant(self.vocabulary), ids[0])
        name = lambda i: self.vocabulary[i]
        rows = lambda texts: [[name(i) for i in row] for row in self.rows(texts, allow_special)]
        return self._lay_out(rows, name, texts, pairs, special_tokens)

    def offsets(self, texts, pairs=None, special_tokens=False, allow_special=None):
        """The characters of the original string, [start, end), that each token stands for.

        Args:
            texts, pairs, special_tokens, allow_special: as of `tokenize`, strings only. Positions
                in a second text count from its own start.

        Returns:
            list of (start, end) for one str, list of those for a list, in the order of
            `tokenize`. A special token that was added has (0, 0).
        """
        spans = lambda texts: self.spans(texts, allow_special)
        return self._lay_out(spans, lambda i: (0, 0), texts, pairs, special_tokens)

    def spans(self, texts, allow_special=None):
        """The spans of the tokens of `rows(texts)`, a list of (start, end) a text."""
        raise NotImplementedError

    def _lay_out(self, function, special, texts, pairs, special_tokens):
        """function's rows for texts and pairs, with `special(id)` where special tokens go."""
        single = isinstance(texts, (str, bytes))
        if pairs is not None:
            texts, pairs = check_pairs(texts, pairs)
            rows = function(texts + pairs)
            rows, others = rows[: len(texts)], rows[len(texts) :]
        else:
            rows = function(check_texts(texts))
            others = [None] * len(rows)
        if special_tokens or pairs is not None:
            fill = self.layout.fill if special_tokens else lambda a, b, _: [*a, *b]
            rows = [fill(a, b, special) for a, b in zip(rows, others)]
        return rows[0] if single else rows

    # === Ids to strings ===

    def join_tokens(self, ids, spacing="natural"):
        """Ragged ids -> strings (batch,); in the graph."""
        raise NotImplementedError

    def detokenize(self, token_ids, skip_special_tokens=True, whole=False, spacing="natural"):
        """Ids (batch, length), dense or ragged -> strings (batch,), as `decode`; in the graph."""
        import tensorflow as tf

        if not isinstance(token_ids, tf.RaggedTensor):
            token_ids = tf.RaggedTensor.from_tensor(tf.convert_to_tensor(token_ids))
        ids, row = token_ids.flat_values, token_ids.value_rowids()
        keep = tf.ones_like(ids, "bool")
        if not whole and self.end_id is not None:
            # How many ends stand in the row up to each id: all of them, less those of former rows.
            ends = tf.cumsum(tf.cast(ids == self.end_id, "int32"))
            former = tf.gather(tf.concat([[0], ends], axis=0), token_ids.row_starts())
            keep = ends == tf.gather(former, row)
        if skip_special_tokens:
            keep &= ~tf.gather(self._is_special, ids)
        kept = tf.ragged.boolean_mask(token_ids, token_ids.with_flat_values(keep))
        return self.join_tokens(kept, spacing)

    def decode(self, token_ids, skip_special_tokens=True, whole=False, spacing="natural"):
        """Ids to a list of strings.

        Args:
            token_ids: integers of shape (batch, length) or (length,), or a list of lists.
            skip_special_tokens: whether special tokens are left out.
            whole: whether what follows the first end token (`[SEP]`, or `</s>`) is read too, as
                the second text of a pair.
            spacing: "natural" puts spaces where a reader expects them; "hugging_face" where
                its tokenizers do. They differ for WordPiece only.

        Raises:
            ValueError: if an id is not an integer or lies outside of the vocabulary.
        """
        import tensorflow as tf

        options = (bool(skip_special_tokens), bool(whole), check_spacing(spacing))
        if options not in self._decoders:  # a graph: operations run one by one are slow
            spec = tf.RaggedTensorSpec((None, None), tf.int32, ragged_rank=1)
            function = lambda ids: self.detokenize(ids, *options)
            self._decoders[options] = tf.function(function, input_signature=[spec])
        texts, rows = [], check_ids(token_ids, self.vocabulary_size)
        with tf.device("CPU"):
            for start in range(0, len(rows), DECODE_BATCH):
                batch = rows[start : start + DECODE_BATCH]
                flat = np.concatenate(batch).astype("int32")
                ids = tf.RaggedTensor.from_row_lengths(flat, [len(row) for row in batch])
                texts += self._decoders[options](ids).numpy().tolist()
        return [text.decode("utf-8", "replace") for text in texts]


def check_spacing(spacing):
    if spacing not in ("natural", "hugging_face"):
        raise ValueError(f'spacing must be "natural" or "hugging_face", got {spacing!r}.')
    return spacing


def _cut(ids, lengths):
    """The first `lengths` of each row of ragged ids."""
    import tensorflow as tf

    place = tf.ragged.range(ids.row_lengths(), row_splits_dtype=ids.row_splits.dtype)
    return tf.ragged.boolean_mask(ids, place < tf.expand_dims(tf.cast(lengths, place.dtype), 1))
