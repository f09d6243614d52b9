"""BERT's WordPiece: words and punctuation, words cut into pieces of the vocabulary."""

import warnings
from pathlib import Path

import keras

from kerasattn.tokenizers.alignment import Aligned, merge_long_words
from kerasattn.tokenizers.base import SPECIAL_TOKENS, UNK, Tokenizer
from kerasattn.tokenizers.checks import check_texts, read_json
from kerasattn.tokenizers.spacing import space_before, spacing_tables
from kerasattn.tokenizers.wordpiece_learning import learn_vocabulary

# Special tokens travel through the splitting as private characters. A text's own are
# removed first, with the other control characters.
MARKS = {token: chr(0xE000 + i) for i, token in enumerate(SPECIAL_TOKENS)}
CONTROL = r"[^\P{C}\t\n\r]|\x{FFFD}"
ASCII_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
CHINESE = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
)
ALONE = f"[\ue000-\ue004{PUNCTUATION}{CHINESE}]"  # a word by itself
SPACES = r"[\s\p{Z}]+"
MAX_WORD = 100  # characters; a longer word is one [UNK]
# Characters that are words by themselves or stand between words, not all of them.
_BETWEEN = (
    r"\x{2010}-\x{2027}\x{3001}-\x{3003}\x{3008}-\x{3011}\x{4E00}-\x{9FA5}"
    r"\x{FF01}-\x{FF03}\x{FF05}-\x{FF0A}\x{FF0C}-\x{FF0F}\x{FF1A}\x{FF1B}\x{FF1F}"
)
# Texts of these characters only, most English and Chinese ones, have no accents and no case
# beyond ASCII's: a shorter way gives the same.
PLAIN = rf"[\x00-\x7F{_BETWEEN}]*"
# A word that may be too long; it need not be exact, for it only says where to look closer.
LONG_WORD = rf"(?s).*[^\x00-/:-@\[-`{{-\x7F{_BETWEEN}]{{{MAX_WORD + 1}}}.*"


@keras.saving.register_keras_serializable(package="kerasattn")
class WordPieceTokenizer(Tokenizer):
    """Greedy longest pieces of words, as BERT: ids equal those of the published tokenizers.

    Chinese characters and punctuation are words of their own; a word that the pieces do not
    cover, or of more than 100 characters, is one `[UNK]`. Decoding puts spaces where English
    has them and none between Chinese characters.

    Args:
        vocabulary: list of str with the five special tokens; pieces inside of a word start
            with `##`.
        lowercase: whether case and accents are removed first, as in "uncased" models.
        allow_special: whether `[MASK]` and its kin, written in a text, are those tokens. Turn it
            off for text of strangers, here or in each call.
        parse_special_tokens: the former name of allow_special.

    Example:

    >>> from kerasattn.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "how", "do", "##ing", "?", "很", "好"])
    >>> ids = tokenizer.encode(["How doing?", "很好"], max_length=7)
    >>> ids.tolist()
    [[2, 5, 6, 7, 8, 3, 0], [2, 9, 10, 3, 0, 0, 0]]
    >>> tokenizer.decode(ids)
    ['how doing?', '很好']
    >>> tokenizer.tokenize("How doing?"), tokenizer.offsets("How doing?")
    (['how', 'do', '##ing', '?'], [(0, 3), (4, 6), (6, 9), (9, 10)])
    >>> inputs = tokenizer.encode_pair("How doing?", "很好", max_length=8)
    >>> inputs["token_ids"].tolist(), inputs["segment_ids"].tolist()
    ([[2, 5, 6, 7, 3, 9, 10, 3]], [[0, 0, 0, 0, 0, 1, 1, 1]])
    >>> tokenizer.encode("[MASK]").tolist()
    [[2, 4, 3]]
    >>> tokenizer.encode("[MASK]", allow_special=False).tolist()
    [[2, 1, 1, 1, 3]]

    Source: https://arxiv.org/abs/1609.08144, section 4.1; https://arxiv.org/abs/1810.04805
    """

    OPTIONS = ("lowercase", "allow_special", "parse_special_tokens")

    def __init__(self, vocabulary, lowercase=True, allow_special=True, parse_special_tokens=None):
        if parse_special_tokens is not None:
            message = "parse_special_tokens is now called allow_special."
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            allow_special = parse_special_tokens
        super().__init__(vocabulary, allow_special=allow_special)
        self.lowercase = lowercase
        tables = spacing_tables(self.vocabulary)
        self._texts, self._kinds, self._continues, self._contraction = tables
        self._pieces = None

    @classmethod
    def build(
        cls,
        sentences,
        vocabulary_size=8000,
        min_count=2,
        lowercase=True,
        allow_special=True,
        parse_special_tokens=None,
    ):
        """A tokenizer whose pieces are learned from a corpus.

        The learner of tensorflow-text finds the pieces of words; Chinese characters and
        punctuation, which are never parts of words, go before them, the most frequent first.

        Args:
            sentences: list of str.
            vocabulary_size: int > 5, the most tokens, special ones included; the learner
                ends within 5% below it where the corpus has as many pieces.
            min_count: int >= 1, how often a piece must occur; characters of words are kept
                anyway.
        """
        if not vocabulary_size > len(SPECIAL_TOKENS):
            raise ValueError(f"vocabulary_size must be more than 5, got {vocabulary_size}.")
        plain = WordPieceTokenizer(SPECIAL_TOKENS, lowercase, allow_special=False)
        tokens = learn_vocabulary(
            check_texts(sentences), plain.split_words, ALONE, vocabulary_size, min_count
        )
        if parse_special_tokens is not None:
            return cls(tokens, lowercase, parse_special_tokens=parse_special_tokens)
        return cls(tokens, lowercase, allow_special)

    # === Strings to ids ===

    def clean(self, text, allow_special=None):
        """Strings (batch,) -> without control characters, case and accents; in the graph.

        Special tokens become their marks, with spaces around them.
        """
        import tensorflow as tf

        plain = tf.strings.regex_full_match(text, PLAIN)
        text = tf.strings.regex_replace(text, ASCII_CONTROL, "")
        rest = tf.where(~plain)  # (some, 1)
        texts = tf.strings.regex_replace(tf.gather_nd(text, rest), CONTROL, "")
        text = tf.tensor_scatter_nd_update(text, rest, texts)
        if self._allows(allow_special):
            for token, mark in MARKS.items():
                text = tf.strings.regex_replace(text, rf"\[{token[1:-1]}\]", f" {mark} ")
        if self.lowercase:
            import tensorflow_text

            texts = tf.strings.lower(tf.gather_nd(text, rest), "utf-8")
            texts = tensorflow_text.normalize_utf8(texts, "NFD")
            texts = tf.strings.regex_replace(texts, r"\p{Mn}", "")
            text = tf.tensor_scatter_nd_update(tf.strings.lower(text), rest, texts)
        return text

    def split_words(self, text, allow_special=None):
        """Strings (batch,) -> ragged words (batch, (words)), cleaned as BERT does; in the graph."""
        import tensorflow_text

        text = self.clean(text, allow_special)
        return tensorflow_text.regex_split(text, f"{SPACES}|{ALONE}", ALONE)

    def to_ids(self, text, allow_special=None):
        text = self._mark_long_words(self.clean(text, allow_special))
        return self._piece_tokenizer().tokenize(text)

    def _mark_long_words(self, text):
        """Words of more than 100 characters become `[UNK]`; most batches have none."""
        import tensorflow as tf
        import tensorflow_text

        long = tf.strings.regex_full_match(text, LONG_WORD)

        def mark():
            place = tf.where(long)
            some = tf.gather_nd(text, place)
            words = tensorflow_text.regex_split(some, f"{SPACES}|{ALONE}", ALONE)
            flat = words.flat_values
            too_long = tf.strings.length(flat, "UTF8_CHAR") > MAX_WORD
            words = words.with_flat_values(tf.where(too_long, MARKS[UNK], flat))
            joined = tf.strings.reduce_join(words, axis=-1, separator=" ")
            return tf.tensor_scatter_nd_update(text, place, joined)

        return tf.cond(tf.reduce_any(long), mark, lambda: text)

    def _piece_tokenizer(self):
        if self._pieces is None:
            import tensorflow as tf
            import tensorflow_text

            tokens = [MARKS.get(token, token) for token in self.vocabulary]
            for i, token in enumerate(self.vocabulary):
                if token in ("", "##") or token in MARKS.values():  # never a piece of a word
                    tokens[i] = f"{chr(0xE005)}{i}"
            with tf.init_scope():  # its constants must outlive a graph that is being built
                self._pieces = tensorflow_text.FastWordpieceTokenizer(
                    tokens,
                    max_bytes_per_word=4 * MAX_WORD,
                    token_out_type=tf.int32,
                    unknown_token=MARKS[UNK],
                )
        return self._pieces

    def spans(self, texts, allow_special=None):
        import tensorflow as tf

        texts = check_texts(texts)
        special = list(MARKS) if self._allows(allow_special) else []
        with tf.device("CPU"):
            batch = tf.constant(texts, tf.string)
            cleaned = self.clean(batch, allow_special)
            ids, starts, ends = self._piece_tokenizer().tokenize_with_offsets(cleaned)
            aligned = Aligned(texts, special, lambda chars: self.clean(tf.constant(chars), False))
            rows = zip(cleaned.numpy(), ids.to_list(), starts.to_list(), ends.to_list())
            merged = [
                merge_long_words(text.decode("utf-8"), row, self._continues, MAX_WORD)
                for text, *row in rows
            ]
        return aligned.spans(merged, len(f" {MARKS[UNK]} ".encode()))

    # === Ids to strings ===

    def join_tokens(self, ids, spacing="natural"):
        import tensorflow as tf

        if spacing == "hugging_face":
            return self._join_as_hugging_face(ids)
        dense = ids.to_tensor(self.pad_id)  # (batch, length)
        spaces = space_before(
            tf.gather(self._kinds, dense),
            tf.gather(self._continues, dense),
            tf.gather(self._contraction, dense),
        )
        spaces = tf.RaggedTensor.from_tensor(spaces, lengths=ids.row_lengths()).flat_values
        texts = tf.constant(self._texts + [" " + text for text in self._texts])
        pieces = tf.gather(texts, ids.flat_values + self.vocabulary_size * tf.cast(spaces, "int32"))
        return tf.strings.reduce_join(ids.with_flat_values(pieces), axis=-1)

    def _join_as_hugging_face(self, ids):
        """A space before each word, none before a full stop, comma, `!` or `?`."""
        import tensorflow as tf

        first = tf.ragged.range(ids.row_lengths(), row_splits_dtype=ids.row_splits.dtype) == 0
        glued = [c or t in (*".?!,",) for t, c in zip(self.vocabulary, self._continues)]
        later = [text if g else " " + text for text, g in zip(self._texts, glued)]
        texts = tf.constant(later + list(self.vocabulary))
        index = ids.flat_values + self.vocabulary_size * tf.cast(first.flat_values, "int32")
        return tf.strings.reduce_join(ids.with_flat_values(tf.gather(texts, index)), axis=-1)

    def normalize(self, texts):
        """What `decode` aims at: texts cleaned, lower-cased if so set, runs of spaces made one."""
        import tensorflow as tf

        words = [" ".join(text.split()) for text in check_texts(texts)]
        return [t.decode("utf-8") for t in self.clean(tf.constant(words), False).numpy()]

    # === Files and configuration ===

    @classmethod
    def load(cls, path, **options):
        tokenizer = super().load(path, **options)
        config = {} if not Path(path).is_dir() else cls.read_options(path)
        if "lowercase" not in {**config, **options} and is_cased(tokenizer.vocabulary):
            options = {**config, **options, "lowercase": False}
            tokenizer = cls(tokenizer.vocabulary, **options)
        return tokenizer

    @classmethod
    def read_options(cls, folder):
        """The options in our own or in Hugging Face's `tokenizer_config.json`."""
        options = super().read_options(folder)
        config = read_json(Path(folder) / "tokenizer_config.json")
        if "do_lower_case" in config:
            options.setdefault("lowercase", bool(config["do_lower_case"]))
        return options

    def get_config(self):
        return {
            **super().get_config(),
            "lowercase": self.lowercase,
            "allow_special": self.allow_special,
        }


def is_cased(vocabulary):
    """Whether a vocabulary has words that only text with its case kept can have."""
    words = [t for t in vocabulary if not (t.startswith("[") and t.endswith("]"))]
    return any(word != word.lower() for word in words)
