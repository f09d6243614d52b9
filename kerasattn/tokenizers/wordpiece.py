"""BERT's WordPiece: words and punctuation, words cut into pieces of the vocabulary."""

import json
from collections import Counter

import keras

from kerasattn.tokenizers.base import SPECIAL_TOKENS, UNK, Tokenizer, check_texts
from kerasattn.tokenizers.spacing import space_before, spacing_tables

# Special tokens travel through the splitting as private characters. A text's own are
# removed first, with the other control characters.
MARKS = {token: chr(0xE000 + i) for i, token in enumerate(SPECIAL_TOKENS)}
CONTROL = r"[^\P{C}\t\n\r]|\x{FFFD}"
PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
CHINESE = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
)
ALONE = f"[\ue000-\ue004{PUNCTUATION}{CHINESE}]"  # a word by itself
SPACES = r"[\s\p{Z}]+"
MAX_WORD = 100  # characters; a longer word is one [UNK]


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
        parse_special_tokens: whether `[MASK]` and its kin, written in a text, are those
            tokens. Turn it off for text of strangers.

    Example:

    >>> from kerasattn.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "how", "do", "##ing", "?", "很", "好"])
    >>> ids = tokenizer.encode(["How doing?", "很好"], max_length=7)
    >>> ids.tolist()
    [[2, 5, 6, 7, 8, 3, 0], [2, 9, 10, 3, 0, 0, 0]]
    >>> tokenizer.decode(ids)
    ['how doing?', '很好']

    Source: https://arxiv.org/abs/1609.08144, section 4.1; https://arxiv.org/abs/1810.04805
    """

    def __init__(self, vocabulary, lowercase=True, parse_special_tokens=True):
        super().__init__(vocabulary)
        self.lowercase = lowercase
        self.parse_special_tokens = parse_special_tokens
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
        parse_special_tokens=True,
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
        import tensorflow as tf

        texts, words = check_texts(sentences), Counter()
        plain = cls(SPECIAL_TOKENS, lowercase, parse_special_tokens=False)
        for start in range(0, len(texts), 8192):
            split = plain.split_words(tf.constant(texts[start : start + 8192]))
            words.update(split.flat_values.numpy().tolist())
        words = {word.decode("utf-8"): count for word, count in words.items()}
        alone = tf.strings.regex_full_match(list(words), ALONE).numpy() if words else []
        single = {word: n for (word, n), is_alone in zip(words.items(), alone) if is_alone}
        found = sorted(single.items(), key=lambda item: (-item[1], item[0]))
        tokens = [*SPECIAL_TOKENS, *(c for c, n in found if n >= min_count)][:vocabulary_size]
        longer = {word: n for word, n in words.items() if word not in single}
        tokens += _learn_pieces(longer, vocabulary_size - len(tokens), min_count)
        return cls(tokens, lowercase, parse_special_tokens)

    def split_words(self, text):
        """Strings (batch,) -> ragged words (batch, (words)), cleaned as BERT does; in the graph."""
        import tensorflow as tf
        import tensorflow_text

        text = tf.strings.regex_replace(text, CONTROL, "")
        if self.parse_special_tokens:
            for token, mark in MARKS.items():
                text = tf.strings.regex_replace(text, rf"\[{token[1:-1]}\]", mark)
        if self.lowercase:
            text = tensorflow_text.normalize_utf8(tf.strings.lower(text, "utf-8"), "NFD")
            text = tf.strings.regex_replace(text, r"\p{Mn}", "")
        return tensorflow_text.regex_split(text, f"{SPACES}|{ALONE}", ALONE)

    def tokenize(self, text):
        import tensorflow as tf

        words = self.split_words(text)
        flat = words.flat_values
        too_long = tf.strings.length(flat, "UTF8_CHAR") > MAX_WORD
        words = words.with_flat_values(tf.where(too_long, MARKS[UNK], flat))
        return self._piece_tokenizer().tokenize(words).merge_dims(1, 2)

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
                    no_pretokenization=True,
                )
        return self._pieces

    def join_tokens(self, ids):
        import tensorflow as tf

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

    def normalize(self, texts):
        """What `decode` aims at: texts cleaned, lower-cased if so set, runs of spaces made one."""
        import tensorflow as tf

        words = [" ".join(text.split()) for text in check_texts(texts)]
        text = tf.strings.regex_replace(tf.constant(words, tf.string), CONTROL, "")
        if self.lowercase:
            import tensorflow_text

            text = tensorflow_text.normalize_utf8(tf.strings.lower(text, "utf-8"), "NFD")
            text = tf.strings.regex_replace(text, r"\p{Mn}", "")
        return [text.decode("utf-8") for text in text.numpy()]

    @classmethod
    def read_options(cls, path):
        """The options in our own or in Hugging Face's `tokenizer_config.json`."""
        if not path.exists():
            return {}
        config = json.loads(path.read_text(encoding="utf-8"))
        if "do_lower_case" in config:
            config.setdefault("lowercase", bool(config["do_lower_case"]))
        return {k: config[k] for k in ("lowercase", "parse_special_tokens") if k in config}

    def get_config(self):
        return {
            **super().get_config(),
            "lowercase": self.lowercase,
            "parse_special_tokens": self.parse_special_tokens,
        }


def _learn_pieces(word_counts, size, min_count):
    """At most `size` pieces of words, single characters first."""
    if size <= 0 or not word_counts:
        return []
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    # The learner searches for the count from which on pieces are kept. Every word of that count
    # is one, so `size` words bound it from below; four times fewer are ample from above.
    counts = sorted(word_counts.values(), reverse=True)
    lowest = counts[size] + 1 if size < len(counts) else min_count
    highest = counts[min(size // 4, len(counts) - 1)]
    pieces = learner.learn(
        word_counts,
        size,
        [],
        lower_thresh=max(lowest, min_count),
        upper_thresh=max(highest, lowest, min_count),
        max_token_length=24,
        max_unique_chars=max(1, size // 4),
    )
    return pieces[:size]
