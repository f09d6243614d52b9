"""Real sentences, as lists of strings: out of data packages, or out of the user's own file."""

import hashlib
import importlib.util
import json
from pathlib import Path


def cantonese_sentences():
    """121,138 mostly short Cantonese sentences, spaces removed, in the file's order.

    The Cantonese-Traditional Chinese Parallel Corpus inside of the package `pycantonese`
    (`data/ctcpc/sents.json`).

    License: CC0 1.0 Universal (the package itself: MIT).

    Raises:
        ValueError: if the package is not installed.

    Source: https://huggingface.co/datasets/raptorkwok/cantonese-traditional-chinese-parallel-corpus

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("pycantonese")
    >>> from kerasattn.data import cantonese_sentences
    >>> len(cantonese_sentences())
    121138
    """
    sentences = json.loads(package_file("pycantonese", "data/ctcpc/sents.json"))
    return [s for s in ("".join(sentence.split()) for sentence in sentences) if s]


def chitchat_conversations():
    """7,168 English conversations of two people chatting: what each said in turn.

    The conversations in the package `chitchat-dataset`, with runs of spaces made one. A turn is the
    utterances of one person in a row, joined.

    License: MIT, copyright (c) 2019 Perception, Control and Cognition Lab.

    Raises:
        ValueError: if the package is not installed.

    Source: Myers, Etchart, Fulda: Conversational Scaffolding, 2020;
    https://github.com/BYU-PCCL/chitchat-dataset

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("chitchat_dataset")
    >>> from kerasattn.data import chitchat_conversations
    >>> len(chitchat_conversations())
    7168
    """
    return [[" ".join(turn) for turn in turns] for turns in _chitchat_turns()]


def chitchat_utterances():
    """258,145 English utterances of people chatting, in the file's order.

    Those of the package `chitchat-dataset`, with runs of spaces made one.

    License: MIT, copyright (c) 2019 Perception, Control and Cognition Lab.

    Raises:
        ValueError: if the package is not installed.

    Source: Myers, Etchart, Fulda: Conversational Scaffolding, 2020;
    https://github.com/BYU-PCCL/chitchat-dataset

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("chitchat_dataset")
    >>> from kerasattn.data import chitchat_utterances
    >>> len(chitchat_utterances())
    258145
    """
    return [text for turns in _chitchat_turns() for turn in turns for text in turn]


def chitchat_questions():
    """38,412 English questions of people chatting, in the file's order.

    Those of `chitchat_utterances` that end in a question mark.

    Raises:
        ValueError: if the package is not installed.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("chitchat_dataset")
    >>> from kerasattn.data import chitchat_questions
    >>> len(chitchat_questions())
    38412
    """
    return [text for text in chitchat_utterances() if text.endswith("?")]


def _chitchat_turns():
    """Conversations of turns of utterances."""
    conversations = json.loads(package_file("chitchat_dataset", "dataset.json"))
    return [
        [[" ".join(utterance["text"].split()) for utterance in turn] for turn in one["messages"]]
        for one in conversations.values()
    ]


def text_file(path):
    """The sentences of a UTF-8 text file, one a line; blank lines are left out.

    Args:
        path: the file. Lines end in a line feed, or in carriage return and line feed.

    Raises:
        ValueError: if the file is missing, empty, not text, or holds fewer than two
            different sentences.

    Example:

    >>> from kerasattn.data import text_file
    >>> text_file("no such file.txt")
    Traceback (most recent call last):
    ValueError: There is no corpus file 'no such file.txt'.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"There is no corpus file {str(path)!r}.") from None
    except OSError as error:
        reason = "it is a folder" if path.is_dir() else error.strerror
        raise ValueError(f"The corpus file {str(path)!r} can't be read: {reason}.") from None
    if not content.strip():
        raise ValueError(f"The corpus file {str(path)!r} is empty; expected one sentence a line.")
    what = f"The corpus file {str(path)!r} is not UTF-8 text"
    if b"\0" in content:
        raise ValueError(f"{what}: it has a zero byte at {content.index(0)}.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what}: byte {error.start} can't be decoded.") from None
    # Not splitlines: it would cut at U+2028 and other characters that stand in sentences.
    sentences = [s for s in (line.strip() for line in text.split("\n")) if s]
    different = len(set(sentences))
    if different < 2:
        raise ValueError(
            f"The corpus file {str(path)!r} has {different} different sentence"
            f"{'' if different == 1 else 's'}; expected at least two, one a line."
        )
    return sentences


def train_test_split(sentences, held_out=0.05, seed=0):
    """Splits a corpus into training and held-out sentences, duplicates removed first.

    A sentence's side hangs on its text and the seed alone, through a hash: it is the same on
    every machine and in any order of the corpus, and with a share for `held_out` also when the
    corpus grows.

    Args:
        sentences: list of str.
        held_out: the share to hold out, a float between 0 and 1, or their number, an int.
        seed: int; another seed gives another split.

    Returns:
        Two lists without a common sentence, each in the order of the corpus.

    Raises:
        ValueError: if either side would be empty.

    Example:

    >>> from kerasattn.data import train_test_split
    >>> train, test = train_test_split([f"sentence {i % 50}" for i in range(100)], held_out=10)
    >>> len(train), len(test)
    (40, 10)
    """
    sentences = list(dict.fromkeys(sentences))
    keys = {sentence: _hash(sentence, seed) for sentence in sentences}
    if isinstance(held_out, float):
        if not 0 < held_out < 1:
            raise ValueError(f"held_out must be a share between 0 and 1 or a count: {held_out}.")
        limit = int(held_out * 2**64)
    else:
        if not 0 < held_out < len(sentences):
            raise ValueError(
                f"held_out must leave sentences on both sides of {len(sentences)} different "
                f"ones, got {held_out}."
            )
        limit = sorted(keys.values())[held_out]
    train = [sentence for sentence in sentences if keys[sentence] >= limit]
    test = [sentence for sentence in sentences if keys[sentence] < limit]
    if not (train and test):
        raise ValueError(
            f"Holding out {held_out} of {len(sentences)} different sentences leaves "
            f"{len(train)} to train on and {len(test)} held out; give a number for held_out."
        )
    return train, test


def _hash(sentence, seed):
    data = f"{seed}\n{sentence}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def package_file(package, name, install='pip install "kerasattn[examples]"'):
    """The bytes of a file inside of an installed package, which is not imported.

    Args:
        package: str, the name that it would be imported by.
        name: str, the file's path inside of it. With a star, a list of the bytes of all files that
            it stands for, in the order of their names.
        install: str, the command that installs it.

    Raises:
        ValueError: if the package is not installed, or has no such file.

    Example:
    >>> import pytest
    >>> _ = pytest.importorskip("chitchat_dataset")
    >>> from kerasattn.data.corpora import package_file
    >>> package_file("chitchat_dataset", "dataset.json")[:1]
    b'{'
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(
            f"This corpus is in the package {package.replace('_', '-')}, which is not installed: "
            f"{install}."
        )
    paths = sorted(Path(spec.submodule_search_locations[0]).glob(name))
    if not paths:
        raise ValueError(
            f"The installed {package} has no file {name}; this release has it: {install}."
        )
    contents = [path.read_bytes() for path in paths]
    return contents if "*" in name else contents[0]
