"""The tokenizers of GPT-2, RoBERTa and OpenAI GPT: byte pair encoding, on the host."""

from pathlib import Path

import keras

from kerasattn.tokenizers.checks import read_json, read_vocabulary
from kerasattn.tokenizers.host import HostTokenizer, import_tokenizers

GPT2, ROBERTA, OPENAI_GPT = FAMILIES = ("gpt2", "roberta", "openai_gpt")


@keras.saving.register_keras_serializable(package="kerasattn")
class BytePairTokenizer(HostTokenizer):
    """Byte pair encoding from `vocab.json` and `merges.txt`.

    GPT-2's and RoBERTa's (and BART's) read bytes, so that any text comes back as it was; OpenAI
    GPT's reads lower-cased words that end with `</w>`. Made with `from_files` or `load`; `save`
    writes a `tokenizer.json`.

    Example:

    >>> import pytest
    >>> tokenizers = pytest.importorskip("tokenizers")
    >>> from kerasattn.tokenizers import BytePairTokenizer
    >>> vocabulary = {"h": 0, "i": 1, "\\u0120": 2, "hi": 3, "<|endoftext|>": 4}
    >>> tokenizer = BytePairTokenizer.from_files(vocabulary, [("h", "i")])
    >>> tokenizer.tokenize("hi hi"), tokenizer.encode("hi hi").tolist()
    (['hi', '\\u0120', 'hi'], [[3, 2, 3]])
    >>> tokenizer.decode([3, 2, 3])
    ['hi hi']
    """

    @classmethod
    def from_files(cls, vocabulary, merges, family=None, **options):
        """A tokenizer from the contents of the two files.

        Args:
            vocabulary: dict from token to id.
            merges: list of pairs of tokens, the first merged first.
            family: "gpt2", "roberta" or "openai_gpt"; None finds it from the vocabulary.
            **options: arguments of the class.
        """
        family = family or find_family(vocabulary)
        if family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}.")
        build = _build_openai_gpt if family == OPENAI_GPT else _build_byte_level
        return cls(build(import_tokenizers(), vocabulary, merges, family).to_str(), **options)

    @classmethod
    def load(cls, path, **options):
        """Reads a folder with `vocab.json` and `merges.txt`, or with a `tokenizer.json`."""
        path = Path(path)
        if not (path / "vocab.json").exists():
            return super().load(path, **options)
        vocabulary = read_json(path / "vocab.json")
        for token, token_id in vocabulary.items():
            if type(token_id) is not int or not 0 <= token_id < 10 * len(vocabulary) + 1000:
                raise ValueError(f"{path / 'vocab.json'}: {token!r} has the id {token_id!r}.")
        lines = read_vocabulary(path / "merges.txt")
        pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        bad = next((pair for pair in pairs if len(pair) != 2), None)
        if bad is not None:
            raise ValueError(f"{path / 'merges.txt'} must hold two tokens a line, got {bad!r}.")
        options = {**cls.read_options(path), **options}
        try:
            return cls.from_files(vocabulary, [tuple(pair) for pair in pairs], **options)
        except ValueError as error:
            raise ValueError(f"The files in {path} don't go together: {error}") from None


def find_family(vocabulary):
    """Which family's special tokens and spellings a vocabulary has."""
    if any(token.endswith("</w>") for token in vocabulary):
        return OPENAI_GPT
    return ROBERTA if "<s>" in vocabulary and "</s>" in vocabulary else GPT2


def _build_byte_level(library, vocabulary, merges, family):
    tokenizer = library.Tokenizer(_model(library, vocabulary, merges))
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    if family == GPT2:
        tokenizer.post_processor = library.processors.ByteLevel(trim_offsets=False)
        names = ("<|endoftext|>",)
    else:
        tokenizer.post_processor = library.processors.RobertaProcessing(
            ("</s>", vocabulary["</s>"]),
            ("<s>", vocabulary["<s>"]),
            trim_offsets=True,
            add_prefix_space=False,
        )
        names = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    for name in names:
        if name in vocabulary:  # the space before a <mask> belongs to it
            token = library.AddedToken(name, lstrip=name == "<mask>", normalized=False)
            tokenizer.add_special_tokens([token])
    return tokenizer


def _build_openai_gpt(library, vocabulary, merges, family):
    unknown = {"unk_token": "<unk>"} if "<unk>" in vocabulary else {}
    model = _model(library, vocabulary, merges, end_of_word_suffix="</w>", **unknown)
    tokenizer = library.Tokenizer(model)
    tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = library.decoders.BPEDecoder(suffix="</w>")
    if unknown:
        tokenizer.add_special_tokens(["<unk>"])
    return tokenizer


def _model(library, vocabulary, merges, **options):
    try:
        return library.models.BPE(vocabulary, merges, **options)
    except Exception as error:  # the library raises plain Exceptions
        raise ValueError(str(error).splitlines()[0][:200]) from None
