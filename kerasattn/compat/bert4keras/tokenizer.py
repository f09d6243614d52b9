"""bert4keras' tokenizer, as its users' scripts know it: token for token, in Python.

For scripts that come from there. `WordPieceTokenizer` is the one for new code: it is faster, runs
in the graph, and takes text of strangers.
"""

import re
import unicodedata

from kerasattn.compat.bert4keras.helpers import lowercase_and_normalize
from kerasattn.tokenizers.checks import read_vocabulary

CONTRACTIONS = r"' (re|m|s|t|ve|d|ll) "
_WIDE = "\u3000-\u3003\u3008-\u3011\u3014-\u301f\u3030\u303e\u303f"
_WIDE += "\uff01-\uff0d\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff64\ufe4f\ufe51\ufe54\u00b7"
_WIDE += "\u2013\u2014\u2018\u2019\u201b-\u201f\u2026\u2027"
NO_SPACE_BEHIND = re.compile(rf"([{_WIDE}+\-/={{(<\[]) ")
CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)


class Tokenizer:
    """WordPiece with bert4keras' arguments and results.

    A word that can't be cut is kept as itself among the tokens, its id is that of `[UNK]`.

    Args:
        token_dict: dict from token to id, or the path of a vocabulary file.
        do_lower_case: whether case and accents are removed.
        word_maxlen: int, a longer word is not cut.
        token_start, token_end: tokens around a text, None for none.
        pre_tokenize: function of a text to its words; those in the vocabulary are tokens.
        token_translate: dict of tokens to put in place of others.

    Example:

    >>> from kerasattn.compat.bert4keras import Tokenizer
    >>> names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "你", "好", "go", "##ing"]
    >>> tokenizer = Tokenizer({t: i for i, t in enumerate(names)}, do_lower_case=True)
    >>> tokenizer.encode("你好", "Going")
    ([2, 5, 6, 3, 7, 8, 3], [0, 0, 0, 0, 1, 1, 1])
    >>> tokenizer.rematch("Going", tokenizer.tokenize("Going"))
    [[], [0, 1], [2, 3, 4], []]
    """

    def __init__(
        self,
        token_dict,
        do_lower_case=False,
        word_maxlen=200,
        token_start="[CLS]",
        token_end="[SEP]",
        pre_tokenize=None,
        token_translate=None,
    ):
        if not isinstance(token_dict, dict):
            token_dict = load_vocab(token_dict)
        self._token_dict = token_dict
        self._token_dict_inv = {i: token for token, i in token_dict.items()}
        self._do_lower_case, self._word_maxlen = do_lower_case, word_maxlen
        self._token_start, self._token_end = token_start, token_end
        self._pre_tokenize, self._token_translate = pre_tokenize, token_translate or {}
        self._token_translate_inv = {new: old for old, new in self._token_translate.items()}
        self._token_pad, self._token_unk, self._token_mask = "[PAD]", "[UNK]", "[MASK]"
        for role in ("pad", "unk", "mask", "start", "end"):
            token = getattr(self, f"_token_{role}")
            if token in token_dict:
                setattr(self, f"_token_{role}_id", token_dict[token])
        self._vocab_size = len(token_dict)

    # === Strings to ids ===

    def tokenize(self, text, maxlen=None):
        """The tokens of a text, with start and end; the end is kept if maxlen cuts it."""
        tokens = [self._token_translate.get(t, t) for t in self._tokenize(text)]
        if self._token_start is not None:
            tokens.insert(0, self._token_start)
        if self._token_end is not None:
            tokens.append(self._token_end)
        if maxlen is not None:
            truncate_sequences(maxlen, -1 - (self._token_end is not None), tokens)
        return tokens

    def encode(
        self, first_text, second_text=None, maxlen=None, pattern="S*E*E", truncate_from="right"
    ):
        """Token ids and segment ids, two lists.

        Args:
            first_text, second_text: str, or lists of tokens.
            maxlen: int, the most tokens; the longer text loses one after the other.
            pattern: "S*E*E", or "S*ES*E" with a start token before the second text too.
            truncate_from: "right", "left", or the index in a text where tokens are taken out.
        """
        split = lambda text: self.tokenize(text) if isinstance(text, str) else text
        first = split(first_text)
        second = None if second_text is None else split(second_text)
        shared_start = second is not None and pattern == "S*E*E"
        if maxlen is not None:
            ends = {"right": -1 - (self._token_end is not None)}
            ends["left"] = int(self._token_start is not None)
            index = ends.get(truncate_from, truncate_from)
            truncate_sequences(maxlen + shared_start, index, first, second or [])
        ids, segments = self.tokens_to_ids(first), [0] * len(first)
        if second is not None:
            if shared_start and self._token_start:
                second = second[1:]
            ids += self.tokens_to_ids(second)
            segments += [1] * len(second)
        return ids, segments

    def token_to_id(self, token):
        """The id of a token, that of `[UNK]` if it has none."""
        found = self._token_dict.get(token, getattr(self, "_token_unk_id", None))
        if found is None:
            raise ValueError(
                f"The vocabulary has neither {token!r} nor {self._token_unk}; set _token_unk_id to "
                "the id that unknown tokens get."
            )
        return found

    def tokens_to_ids(self, tokens):
        """The ids of tokens, a list."""
        return [self.token_to_id(token) for token in tokens]

    def id_to_token(self, i):
        """The token of an id."""
        return self._token_dict_inv[i]

    def ids_to_tokens(self, ids):
        """The tokens of ids, a list."""
        return [self.id_to_token(i) for i in ids]

    def _tokenize(self, text, pre_tokenize=True):
        if self._do_lower_case:
            text = lowercase_and_normalize(text)
        if pre_tokenize and self._pre_tokenize is not None:
            words = self._pre_tokenize(text)
            rows = [[w] if w in self._token_dict else self._tokenize(w, False) for w in words]
            return [token for row in rows for token in row]
        spaced = "".join(map(self._spaced, text))
        return [piece for word in spaced.split() for piece in self._pieces(word)]

    def _spaced(self, character):
        if self._is_alone(character):
            return f" {character} "
        if self._is_space(character):
            return " "
        return "" if self._is_control(character) else character

    def _pieces(self, word):
        if len(word) > self._word_maxlen:
            return [word]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self._token_dict), None)
            if end is None:
                return [word]
            pieces.append(prefix + word[start:end])
            start = end
        return pieces

    # === Ids to strings ===

    def decode(self, ids, tokens=None):
        """Ids, or tokens, to a readable text without special tokens."""
        tokens = self.ids_to_tokens(ids) if tokens is None else tokens
        text = ""
        for i, token in enumerate(t for t in tokens if not self._is_special(t)):
            if token.startswith("##"):
                text += token[2:]
            elif len(token) == 1 and self._is_cjk_character(token):
                text += token
            elif len(token) == 1 and self._is_punctuation(token):
                text += token + " "
            elif i > 0 and self._is_cjk_character(text[-1:]):
                text += token
            else:
                text += " " + token
        text = re.sub(" +", " ", text)
        text = re.sub(CONTRACTIONS, r"'\1 ", text)
        text = NO_SPACE_BEHIND.sub(r"\1", text)
        return re.sub(r"(\d\.) (\d)", r"\1\2", text).strip()

    def rematch(self, text, tokens):
        """For each token, the numbers of the characters of text that it stands for."""
        if self._do_lower_case:
            text = text.lower()
        normal, places = "", []
        for i, character in enumerate(text):
            new = lowercase_and_normalize(character) if self._do_lower_case else character
            new = "".join(c for c in new if not self._is_control(c))
            normal += new
            places += [i] * len(new)
        result, place = [], 0
        for token in tokens:
            if self._is_special(token):
                result.append([])
                continue
            start = normal.index(self.stem(token), place)
            place = start + len(self.stem(token))
            result.append(places[start:place])
        return result

    # === Kinds of characters and tokens ===

    @staticmethod
    def stem(token):
        """A token without "##" before it."""
        return token.removeprefix("##")

    @staticmethod
    def _is_special(token):
        return token[:1] == "[" and token[-1:] == "]"

    @staticmethod
    def _is_redundant(token):
        """Whether no text is cut to such a token."""
        stem = Tokenizer.stem(token)
        return len(token) > 1 and any(map(Tokenizer._is_alone, stem))

    @staticmethod
    def _is_cjk_character(character):
        return bool(CHINESE.match(character))

    @staticmethod
    def _is_punctuation(character):
        ascii_mark = character.isascii() and character.isprintable() and not character.isalnum()
        return (ascii_mark and character != " ") or unicodedata.category(character)[0] == "P"

    @staticmethod
    def _is_alone(character):
        return Tokenizer._is_cjk_character(character) or Tokenizer._is_punctuation(character)

    @staticmethod
    def _is_space(character):
        return character in " \t\n\r" or unicodedata.category(character) == "Zs"

    @staticmethod
    def _is_control(character):
        return character in "\x00\ufffd" or unicodedata.category(character) in ("Cc", "Cf")


def load_vocab(dict_path, encoding="utf-8", simplified=False, startswith=None):
    """A vocabulary file as a dict from token to id, the id being the line's number.

    With simplified, tokens that never stand for Chinese text are left out: returns the new dict
    and the list of kept ids, those of `startswith` first, then by id.
    """
    if encoding.lower().replace("-", "") != "utf8":
        raise ValueError(f"A vocabulary must be UTF-8, got encoding={encoding!r}.")
    ids = {token: i for i, token in enumerate(read_vocabulary(dict_path))}
    if not simplified:
        return ids
    first = list(startswith or [])
    missing = [token for token in first if token not in ids]
    if missing:
        raise ValueError(f"The vocabulary lacks {' '.join(missing)} of startswith.")
    kept = first + [t for t in ids if t not in first and not Tokenizer._is_redundant(t)]
    return {token: i for i, token in enumerate(kept)}, [ids[token] for token in kept]


def save_vocab(dict_path, token_dict, encoding="utf-8"):
    """Writes a dict from token to id as a vocabulary file: tokens by their ids, one a line."""
    tokens = sorted(token_dict, key=token_dict.get)
    with open(dict_path, "w", encoding=encoding) as file:
        file.writelines(f"{token}\n" for token in tokens)


def truncate_sequences(maxlen, indices, *sequences):
    """Takes elements out of the longest list, at its index, until all have maxlen together.

    The lists are changed; returns those that were not empty.

    Raises:
        ValueError: if the longest has no such element.
    """
    sequences = [sequence for sequence in sequences if sequence]
    if not isinstance(indices, (list, tuple)):
        indices = [indices] * len(sequences)
    while sum(map(len, sequences)) > maxlen:
        lengths = [len(sequence) for sequence in sequences]
        longest = lengths.index(max(lengths))
        index, length = indices[longest], lengths[longest]
        if not -length <= index < length:
            raise ValueError(
                f"maxlen={maxlen} is too short: of {length} elements none is number {index}."
            )
        sequences[longest].pop(index)
    return sequences
