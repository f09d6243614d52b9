"""Pretrained word vectors."""

from pathlib import Path

import numpy as np

from kerasattn.data.corpora import package_file


def word2vec_file(path):
    """The words and vectors of a file in word2vec's binary format.

    Args:
        path: of a file whose first line has the number of words and of a vector's numbers; then
            every word, a space, and its vector in float32.

    Returns:
        list of str, and float32 (words, dim). What is no UTF-8 in a word becomes U+FFFD.

    Raises:
        ValueError: if the file is missing, is none of this kind, or ends too early.

    Example:
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from kerasattn.data import word2vec_file
    >>> path = pathlib.Path(tempfile.mkdtemp(), "words.vector")
    >>> _ = path.write_bytes(b"1 2\\nword " + np.array([1, 2], "<f4").tobytes())
    >>> words, vectors = word2vec_file(path)
    >>> words, vectors.tolist()
    (['word'], [[1.0, 2.0]])

    Source: https://code.google.com/archive/p/word2vec/
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"The file {str(path)!r} can't be read: {error.strerror}.") from None
    return _word2vec(content, str(path))


def glove_file(path, words=None):
    """The words and vectors of a file in GloVe's text format.

    Args:
        path: of a file of lines in UTF-8: a word, which may have spaces, and its numbers.
        words: the words to read, or None for all: files have millions.

    Returns:
        list of str, and float32 (words, dim), in the order of the file.

    Raises:
        ValueError: if the file is missing, or a line is not a word and as many numbers as those of
            the first.

    Example:
    >>> import pathlib, tempfile
    >>> from kerasattn.data import glove_file
    >>> path = pathlib.Path(tempfile.mkdtemp(), "glove.txt")
    >>> _ = path.write_text("the 0.5 1\\n. . 2 3\\n")
    >>> words, vectors = glove_file(path)
    >>> words, vectors.tolist()
    (['the', '. .'], [[0.5, 1.0], [2.0, 3.0]])

    Source: https://nlp.stanford.edu/projects/glove/
    """
    wanted, found, rows, dim = None if words is None else set(words), [], [], None
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                dim = _numbers_at_end(line) if dim is None else dim
                word, *numbers = line.rstrip("\r\n").rsplit(" ", dim)
                if not 0 < len(numbers) == dim:
                    raise ValueError(f"{path}: line {number} is not a word and its numbers.")
                if wanted is None or word in wanted:
                    found.append(word)
                    rows.append(_numbers(numbers, f"{path}: line {number}"))
    except OSError as error:
        raise ValueError(f"The file {str(path)!r} can't be read: {error.strerror}.") from None
    return found, np.array(rows, "float32").reshape(len(rows), dim or 0)


def _numbers(texts, name):
    try:
        return np.array(texts, "float32")
    except ValueError as error:
        raise ValueError(f"{name} is not a word and its numbers ({error}).") from None


def _numbers_at_end(line):
    """How many numbers stand at the end of a line, behind a word."""
    count = 0
    for part in reversed(line.split(" ")[1:]):
        try:
            float(part)
        except ValueError:
            break
        count += 1
    return count


def chinese_word_vectors():
    """125,796 Chinese words and their vectors of 100 numbers: those of the package `synonyms`.

    License: MIT, copyright (c) 2017 Hai Liang Wang and Hu Ying Xi.

    Returns:
        list of str, and float32 (125796, 100).

    Raises:
        ValueError: if the package is not installed.

    Example:
    >>> from kerasattn.data import chinese_word_vectors
    >>> try:
    ...     words, vectors = chinese_word_vectors()
    ... except ValueError as error:
    ...     assert "pip install --no-deps synonyms" in str(error)
    ... else:
    ...     assert vectors.shape == (len(words), 100) == (125796, 100)

    Source: https://github.com/chatopera/Synonyms
    """
    # The package asks for a scipy of 2017, which reading its file does not need.
    install = "pip install --no-deps synonyms==3.9.0"
    content = package_file("synonyms", "data/words.vector", install)
    return _word2vec(content, "synonyms/data/words.vector")


def _word2vec(content, name):
    header, newline, _ = content[:100].partition(b"\n")
    sizes = header.split()
    if not (newline and len(sizes) == 2 and all(size.isdigit() for size in sizes)):
        raise ValueError(f"{name} does not begin with the number of words and of dimensions.")
    count, dim = map(int, sizes)
    if not 0 < 4 * dim * count <= len(content):
        raise ValueError(f"{name} is too short for {count} vectors of {dim} numbers.")
    words, vectors, place = [], np.zeros((count, dim), "float32"), len(header) + 1
    for i in range(count):
        end = content.find(b" ", place)
        if end < 0 or end + 1 + 4 * dim > len(content):
            raise ValueError(f"{name} ends after {i} of {count} words.")
        words.append(content[place:end].decode("utf8", "replace").lstrip("\n"))
        vectors[i] = np.frombuffer(content, "<f4", dim, end + 1)
        place = end + 1 + 4 * dim
    return words, vectors
