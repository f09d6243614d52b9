"""SentencePiece in the graph: the tokenizers of T5, XLNet, ALBERT and Llama."""

import base64
import re
from pathlib import Path

import keras

from kerasattn.tokenizers.base import ROLES, Tokenizer
from kerasattn.tokenizers.checks import check_texts, read_json
from kerasattn.tokenizers.folding import Folding
from kerasattn.tokenizers.layout import Layout
from kerasattn.tokenizers.sentencepiece_model import BYTE, CONTROL, read_model, read_pieces
from kerasattn.tokenizers.sentencepiece_spans import piece_spans

NONE = "\U0010ffff"  # which Unicode says is no character
SPACE = "\u2581"  # what stands for a space inside of a piece
_ANGLE = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}
# What a family adds to its model: roles of tokens; where they go, a role or a text and a segment
# id; how text is changed first.
FAMILIES = {
    "t5": dict(
        special={"pad": "<pad>", "unk": "<unk>", "eos": "</s>"},
        single=[("A", 0), ("eos", 0)],
        pair=[("A", 0), ("eos", 0), ("B", 0), ("eos", 0)],
    ),
    "xlnet": dict(
        special={**_ANGLE, "cls": "<cls>", "sep": "<sep>", "mask": "<mask>"},
        single=[("A", 0), ("sep", 0), ("cls", 2)],
        pair=[("A", 0), ("sep", 0), ("B", 1), ("sep", 1), ("cls", 2)],
        pad_segment=3,
        padding_side="left",
        folding=Folding(accents=False, lowercase=False),
    ),
    "albert": dict(
        special={
            "pad": "<pad>",
            "unk": "<unk>",
            "cls": "[CLS]",
            "sep": "[SEP]",
            "mask": "[MASK]",
        },
        single=[("cls", 0), ("A", 0), ("sep", 0)],
        pair=[("cls", 0), ("A", 0), ("sep", 0), ("B", 1), ("sep", 1)],
        folding=Folding(accents=False, lowercase=True),
    ),
    "llama": dict(
        special=_ANGLE,
        single=[("bos", 0), ("A", 0)],
        pair=[("bos", 0), ("A", 0), ("bos", 1), ("B", 1)],
        padding_side="left",
    ),
}
HUGGING_FACE_OPTIONS = {
    "do_lower_case": "lowercase",
    "add_bos_token": "add_bos",
    "add_eos_token": "add_eos",
}
FILES = ("spiece.model", "tokenizer.model", "sentencepiece.model", "spm.model")


@keras.saving.register_keras_serializable(package="kerasattn")
class SentencePieceTokenizer(Tokenizer):
    """Pieces of a trained SentencePiece model, with a family's special tokens around them.

    The model is a constant of the graph: what is exported needs no file beside it.

    Args:
        model: bytes, a serialized model, or the same in base64 as `get_config` gives it.
        family: "t5", "xlnet", "albert" or "llama"; None finds it from the model's pieces.
        extra_ids: int, how many `<extra_id_0>` and so on follow the pieces, the last one first
            (T5). None for 100, or 0 if the model has them itself.
        lowercase, keep_accents: whether case is removed and accents are kept first; None as the
            family has it (ALBERT: lower case; XLNet and ALBERT: no accents). T5 and Llama
            leave both to the model.
        padding_side: "right" or "left"; None as the family has it (XLNet, Llama: left).
        add_bos, add_eos: whether Llama's `<s>` and `</s>` are put around each text.
        allow_special: whether `</s>` and its kin, written in a text, are those tokens.

    Example:

    >>> from kerasattn.tokenizers import SentencePieceTokenizer
    >>> SentencePieceTokenizer.load("spiece.model")
    Traceback (most recent call last):
    ValueError: There is no SentencePiece model spiece.model.

    Source: https://arxiv.org/abs/1808.06226; the families: https://arxiv.org/abs/1910.10683,
    https://arxiv.org/abs/1906.08237, https://arxiv.org/abs/1909.11942,
    https://arxiv.org/abs/2302.13971
    """

    IN_LINES = False
    OPTIONS = (
        *("family", "extra_ids", "lowercase", "keep_accents", "padding_side", "allow_special"),
        *("add_bos", "add_eos"),
    )

    def __init__(
        self,
        model,
        family=None,
        extra_ids=None,
        lowercase=None,
        keep_accents=None,
        padding_side=None,
        allow_special=True,
        add_bos=True,
        add_eos=False,
    ):
        model = base64.b64decode(model) if isinstance(model, str) else bytes(model)
        pieces = read_pieces(model)
        tokens = [piece for piece, _ in pieces]
        self.model, self.family = model, family or find_family(tokens)
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}.")
        settings = FAMILIES[self.family]
        if extra_ids is None:
            has_own = any("<extra_id_" in token for token in tokens)
            extra_ids = 100 if self.family == "t5" and not has_own else 0
        extra = [f"<extra_id_{i}>" for i in reversed(range(extra_ids))]
        self.extra_ids, self.num_pieces = extra_ids, len(tokens)
        special = {role: t for role, t in settings["special"].items() if t in tokens}
        needed = {item for item, _ in settings["pair"] if item not in "AB"} | {"unk"}
        missing = [settings["special"][role] for role in sorted(needed - set(special))]
        if missing:
            raise ValueError(
                f"The model of {len(tokens)} pieces lacks {' '.join(missing)}, "
                f"which the family {self.family!r} needs."
            )
        self.add_bos, self.add_eos = bool(add_bos), bool(add_eos)
        super().__init__(
            tokens + extra,
            special,
            Layout([], []),
            padding_side or settings.get("padding_side", "right"),
            allow_special,
        )
        ids = {role: getattr(self, f"{role}_id") for role in ROLES}
        number = lambda items: [(ids.get(item, item), s) for item, s in self._edges(items)]
        self.layout = Layout(
            number(settings["single"]), number(settings["pair"]), settings.get("pad_segment", 0)
        )
        self._set_special([*special.values(), *extra])
        self.folding = settings.get("folding")
        if self.folding or lowercase or keep_accents is False:
            self.folding = (self.folding or Folding()).replace(keep_accents, lowercase)
        self._options = dict(lowercase=lowercase, keep_accents=keep_accents)
        # The bytes that each token stands for.
        self._bytes = [
            bytes([int(t[3:5], 16)]) if kind == BYTE else t.replace(SPACE, " ").encode()
            for t, kind in [*pieces, *((t, CONTROL) for t in extra)]
        ]
        self._commas = self._eager = None

    def _edges(self, items):
        """A family's items, Llama's as `add_bos` and `add_eos` say."""
        for item, segment in items:
            if item != "bos" or self.add_bos:
                yield item, segment
            if self.family == "llama" and item in ("A", "B") and self.add_eos:
                yield "eos", segment

    # === Strings to ids ===

    def _processor(self):
        """The model, made anew in a graph that is being built, so that it need not be tracked."""
        import tensorflow as tf
        import tensorflow_text

        if not tf.executing_eagerly():
            return tensorflow_text.SentencepieceTokenizer(self.model)
        if self._eager is None:
            try:
                self._eager = tensorflow_text.SentencepieceTokenizer(self.model)
            except tf.errors.OpError as error:
                reason = error.message.splitlines()[0][-200:]
                message = f"The SentencePiece model can't be used: {reason}"
                raise ValueError(message) from None
        return self._eager

    def _splits(self):
        """A pattern of the special tokens that a text may hold, and their names."""
        names = [self.vocabulary[i] for i in self.special_ids]
        # Longer names first: none may be the beginning of another.
        pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return pattern.replace("\\ ", " "), names

    def to_ids(self, text, allow_special=None):
        import tensorflow as tf
        import tensorflow_text

        if not self._allows(allow_special):
            return self._plain_ids(text)
        pattern, names = self._splits()
        # The split ends a text at a NUL: another character stands for it meanwhile.
        text = tf.strings.regex_replace(text, "\\x00", NONE)
        parts = tensorflow_text.regex_split(text, pattern, pattern)  # (batch, (parts))
        flat = tf.strings.regex_replace(parts.flat_values, NONE, "\x00")
        same = flat[:, None] == tf.constant(names)[None, :]  # (parts, special)
        is_special = tf.reduce_any(same, axis=1)
        special = tf.gather(self.special_ids, tf.argmax(tf.cast(same, "int32"), axis=1))[:, None]
        ids = self._plain_ids(tf.where(is_special, "", flat))  # (parts, (length))
        special = tf.ragged.boolean_mask(special, is_special[:, None])
        ids = tf.concat([ids, tf.cast(special, ids.dtype)], axis=1)
        return tf.RaggedTensor.from_row_splits(ids, parts.row_splits).merge_dims(1, 2)

    def _plain_ids(self, text):
        if self.folding:
            text = self.folding.fold_tensor(text)
        return self._split_commas(self._processor().tokenize(text))

    def _split_commas(self, ids):
        """XLNet and ALBERT: a comma behind a digit is a piece of its own."""
        import tensorflow as tf

        if self.folding is None:
            return ids
        changed = self._comma_rows()
        if not changed:
            return ids
        rows = [changed.get(i, [i]) for i in range(self.num_pieces)]
        rows = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
        return ids.with_flat_values(tf.gather(rows, ids.flat_values)).merge_dims(1, 2)

    def _comma_rows(self):
        """For each piece that ends so, the ids of its parts."""
        if self._commas is None:
            import tensorflow as tf

            pieces = {
                i: piece
                for i, piece in enumerate(self.vocabulary[: self.num_pieces])
                if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
            }
            self._commas = {}
            if pieces:
                texts = [p[:-1].replace(SPACE, "") for p in pieces.values()]
                with tf.init_scope():
                    parts = self._processor().tokenize(tf.constant(texts)).to_list()
                for (i, piece), row in zip(pieces.items(), parts):
                    names = [self.vocabulary[k] for k in row]
                    if piece[0] != SPACE and names[0][:1] == SPACE:
                        names = names[1:] if names[0] == SPACE else [names[0][1:], *names[1:]]
                    self._commas[i] = [self.token_to_id(name) for name in [*names, ","]]
        return self._commas

    # === Where tokens stand ===

    def spans(self, texts, allow_special=None):
        import tensorflow as tf

        pattern = re.compile(self._splits()[0] if self._allows(allow_special) else r"(?!)")
        texts = check_texts(texts)
        parts = []  # (index of the text, start, what stands there, whether it is special)
        for i, text in enumerate(texts):
            place = 0
            for match in pattern.finditer(text):
                parts.append((i, place, text[place : match.start()], False))
                parts.append((i, match.start(), match.group(), True))
                place = match.end()
            parts.append((i, place, text[place:], False))
        plain = [part for part in parts if not part[3]]
        folded = [self.folding.fold(p[2]) if self.folding else (p[2], None) for p in plain]
        with tf.device("CPU"):
            batch = tf.constant([text for text, _ in folded])
            ids, starts, ends = (
                x.to_list() for x in self._processor().tokenize_with_offsets(batch)
            )
        rows = iter(
            piece_spans(self, part[2], text, owners, *row)
            for part, (text, owners), *row in zip(plain, folded, ids, starts, ends)
        )
        result = [[] for _ in texts]
        for i, start, text, is_special in parts:
            if is_special:
                result[i].append((start, start + len(text)))
            else:
                result[i] += [(a + start, b + start) for a, b in next(rows)]
        return result

    # === Ids to strings ===

    def join_tokens(self, ids, spacing="natural"):
        import tensorflow as tf

        texts = tf.strings.reduce_join(
            ids.with_flat_values(tf.gather(tf.constant(self._bytes), ids.flat_values)), axis=-1
        )
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        return tf.strings.regex_replace(texts, "^ ", "", replace_global=False)

    # === Files and configuration ===

    def get_config(self):
        return {"model": base64.b64encode(self.model).decode("ascii"), **self._saved_options()}

    def _saved_options(self):
        return {
            "family": self.family,
            "extra_ids": self.extra_ids,
            "padding_side": self.padding_side,
            "allow_special": self.allow_special,
            "add_bos": self.add_bos,
            "add_eos": self.add_eos,
            **self._options,
        }

    def save(self, path):
        """Writes a folder with the model file, under its family's name, and the options."""
        path = Path(path)
        self._save_options(path, self._saved_options())
        name = "tokenizer.model" if self.family == "llama" else "spiece.model"
        (path / name).write_bytes(self.model)

    @classmethod
    def load(cls, path, **options):
        """Reads a model file, or a folder with one of the published names in it."""
        path = Path(path)
        if path.is_dir():
            options = {**cls.read_options(path), **options}
            path = next((path / name for name in FILES if (path / name).exists()), path / FILES[0])
        try:
            return cls(read_model(path), **options)
        except ValueError as error:
            message = str(error)
            if message.startswith("This is no"):
                message = f"{path} can't be read. {message}"
            raise ValueError(message) from None

    @classmethod
    def read_options(cls, folder):
        """The options in our own or in Hugging Face's `tokenizer_config.json`."""
        options = super().read_options(folder)
        config = read_json(Path(folder) / "tokenizer_config.json")
        for theirs, ours in HUGGING_FACE_OPTIONS.items():
            if config.get(theirs) is not None:
                options.setdefault(ours, config[theirs])
        if options.get("padding_side") not in ("left", "right"):
            options.pop("padding_side", None)
        return options


def find_family(tokens):
    """The family whose special tokens a model's pieces are."""
    tokens = set(tokens)
    if "[CLS]" in tokens and "[SEP]" in tokens:
        return "albert"
    if "<cls>" in tokens and "<sep>" in tokens:
        return "xlnet"
    if "<s>" in tokens and "</s>" in tokens:
        return "llama"
    if "</s>" in tokens and "<pad>" in tokens:
        return "t5"
    raise ValueError(
        f"The model's {len(tokens)} pieces have the special tokens of none of "
        f"{', '.join(FAMILIES)}; give family=..."
    )
