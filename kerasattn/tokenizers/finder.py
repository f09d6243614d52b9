"""Finds the kind of tokenizer that a folder holds."""

from pathlib import Path

from kerasattn.tokenizers import bpe, character, host, roformer, sentencepiece, wordpiece
from kerasattn.tokenizers.checks import read_json, read_vocabulary

CLASSES = {
    cls.__name__: cls
    for cls in (
        character.CharacterTokenizer,
        wordpiece.WordPieceTokenizer,
        roformer.RoFormerTokenizer,
        sentencepiece.SentencePieceTokenizer,
        host.HostTokenizer,
        bpe.BytePairTokenizer,
    )
}


def from_pretrained(folder, **options):
    """The tokenizer in a folder of this library, of Hugging Face, or of a published checkpoint.

    Args:
        folder: path of a folder. It is one of ours if its `tokenizer_config.json` says so; else
            the files say what it is: a SentencePiece model, `vocab.txt`, `vocab.json` with
            `merges.txt`, or `tokenizer.json`. Nothing is executed or fetched.
        **options: arguments of the tokenizer's class; they go before the folder's own.

    Raises:
        ValueError: if the folder holds no tokenizer.
        ImportError: if the tokenizer needs an extra that is not installed.

    Example:

    >>> import tempfile
    >>> from kerasattn.tokenizers import CharacterTokenizer, Tokenizer
    >>> folder = tempfile.mkdtemp()
    >>> CharacterTokenizer.build(["今日好熱"]).save(folder)
    >>> type(Tokenizer.from_pretrained(folder)).__name__
    'CharacterTokenizer'
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}; a single file is read by a class's `load`.")
    config = read_json(folder / "tokenizer_config.json")
    name = config.get("tokenizer_class")
    cls = CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        cls = find_class(folder, str(name or ""))
    return cls.load(folder, **options)


def find_class(folder, name=""):
    """The class for the files of a folder that another program wrote."""
    has = lambda file: (folder / file).exists()
    if any(has(file) for file in sentencepiece.FILES):
        return sentencepiece.SentencePieceTokenizer
    if has("vocab.json") and has("merges.txt"):
        return bpe.BytePairTokenizer
    if has("vocab.txt"):
        family = read_json(folder / "config.json").get("model_type")
        if name.startswith("RoFormer") or family == "roformer" or _has_words(folder / "vocab.txt"):
            return roformer.RoFormerTokenizer
        return wordpiece.WordPieceTokenizer
    if has("tokenizer.json"):
        return host.HostTokenizer
    raise ValueError(
        f"{folder} holds no tokenizer: none of {', '.join(sentencepiece.FILES)}, vocab.txt, "
        "vocab.json with merges.txt, tokenizer.json."
    )


def _has_words(path):
    """Whether a vocabulary has Chinese words, which BERT's splitting never makes."""
    chinese = lambda token: all("\u4e00" <= character <= "\u9fff" for character in token)
    return any(len(token) > 1 and chinese(token) for token in read_vocabulary(path))
