"""Stories and questions about them: the reader of bAbI's published files, and arrays of them.

What makes stories of the same kinds, without any file, is `data.generate_stories`.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class StoryQuestion(NamedTuple):
    """A question, and what was told before it.

    Args:
        sentences: tuple of tuples of words, in lower case, the oldest first.
        question: tuple of words.
        answer: str; several things are parted by commas.
        supporting: tuple of ints, which sentences the answer follows from.

    Example:
    >>> from kerasattn.data import StoryQuestion
    >>> StoryQuestion((("anna", "slept"),), ("who", "slept"), "anna", (0,)).answer
    'anna'
    """

    sentences: tuple
    question: tuple
    answer: str
    supporting: tuple = ()


def babi_file(path):
    """The questions of a file in bAbI's format, each with the sentences told before it.

    A line is a number, which starts again at 1 with each story, and a sentence; or a number, and,
    parted by tabs, a question, its answer, and the numbers of the sentences that it follows from.

    Args:
        path: of a file such as qa1_single-supporting-fact_train.txt.

    Returns:
        list of `StoryQuestion`.

    Raises:
        ValueError: naming the line that can't be read, for a file without questions or that is no
            text, or if there is none.

    Example:
    >>> import pathlib, tempfile
    >>> from kerasattn.data import babi_file
    >>> path = pathlib.Path(tempfile.mkdtemp(), "qa1_train.txt")
    >>> _ = path.write_text("1 Anna went to the attic.\\n2 Where is Anna? \\tattic\\t1\\n")
    >>> babi_file(path)[0].question, babi_file(path)[0].supporting
    (('where', 'is', 'anna'), (0,))

    Source: https://arxiv.org/abs/1502.05698 (Weston et al. 2015).
    """
    path = Path(path)
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8.") from None
    questions, sentences, places = [], [], {}
    for at, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        number, _, rest = line.strip().partition(" ")
        if not number.isdecimal() or not rest:
            raise ValueError(f"{path}, line {at}: expected a number and a sentence, got {line!r}.")
        if int(number) == 1:
            sentences, places = [], {}
        if "\t" not in rest:
            places[int(number)] = len(sentences)
            sentences.append(words_of(rest))
            continue
        question, answer, *more = (part.strip() for part in rest.split("\t"))
        told = more[0].split() if more else []
        if not answer or not all(n.isdecimal() and int(n) in places for n in told):
            raise ValueError(
                f"{path}, line {at}: expected a question, an answer and numbers of sentences "
                f"before it, parted by tabs, got {line!r}."
            )
        supporting = tuple(places[int(n)] for n in told)
        told = (tuple(sentences), words_of(question), answer.lower(), supporting)
        questions.append(StoryQuestion(*told))
    if not questions:
        raise ValueError(f"{path} has no question: a line with a tab before the answer.")
    return questions


def words_of(text):
    """The words of a text in lower case, without signs.

    Example:
    >>> from kerasattn.data.stories import words_of
    >>> words_of("Where is Anna?")
    ('where', 'is', 'anna')
    """
    return tuple(WORD.findall(text.lower()))


def story_vocabulary(questions):
    """All words of stories, questions and answers, sorted; the first, of id 0, is the padding "".

    Args:
        questions: list of `StoryQuestion`; of several lists, joined.

    Returns:
        list of str.

    Example:
    >>> from kerasattn.data import StoryQuestion, story_vocabulary
    >>> story_vocabulary([StoryQuestion((("anna", "slept"),), ("who", "slept"), "anna")])
    ['', 'anna', 'slept', 'who']
    """
    words = set()
    for question in questions:
        words.update(question.question, [question.answer], *question.sentences)
    return ["", *sorted(words)]


def story_arrays(questions, vocabulary, max_sentences=50, num_words=None):
    """Ids of stories and questions, for models.

    Args:
        questions: list of `StoryQuestion`, at least one.
        vocabulary: list of str, of `story_vocabulary`.
        max_sentences: int >= 1, the last so many of a story are kept.
        num_words: int or None, so many places for the words of a sentence and of a question; by
            default as many as the longest needs.

    Returns:
        dict of `story_ids` int32 (number, max_sentences, num_words) and `question_ids` int32
        (number, num_words), 0 where nothing is; and answers int32 (number,).

    Raises:
        ValueError: for no questions, words that the vocabulary has not, or has in the place of the
            padding, or more than num_words.

    Example:
    >>> from kerasattn.data import StoryQuestion, story_arrays
    >>> question = StoryQuestion((("anna", "slept"),), ("who", "slept"), "anna")
    >>> inputs, answers = story_arrays([question], ["", "anna", "slept", "who"], max_sentences=2)
    >>> inputs["story_ids"].tolist(), inputs["question_ids"].tolist(), answers.tolist()
    ([[[1, 2], [0, 0]]], [[3, 2]], [1])
    """
    if not questions:
        raise ValueError("story_arrays takes at least one question, got none.")
    if max_sentences < 1:
        raise ValueError(f"max_sentences must be at least 1, got {max_sentences}.")
    ids = {word: i for i, word in enumerate(vocabulary)}
    kept = [question.sentences[-max_sentences:] for question in questions]
    texts = [*(s for sentences in kept for s in sentences), *(q.question for q in questions)]
    longest = max(map(len, texts))
    words = {word for text in texts for word in text} | {q.answer for q in questions}
    unknown = words - ids.keys()
    if unknown:
        raise ValueError(f"The vocabulary does not have {sorted(unknown)[:5]}.")
    if vocabulary[0] in words:
        raise ValueError(f"The first of the vocabulary is the padding, got {vocabulary[0]!r}.")
    num_words = longest if num_words is None else num_words
    if longest > num_words:
        raise ValueError(f"A sentence has {longest} words, there is room for {num_words}.")
    story_ids = np.zeros((len(questions), max_sentences, num_words), "int32")
    question_ids = np.zeros((len(questions), num_words), "int32")
    for row, question in enumerate(questions):
        for place, sentence in enumerate(kept[row]):
            story_ids[row, place, : len(sentence)] = [ids[word] for word in sentence]
        question_ids[row, : len(question.question)] = [ids[word] for word in question.question]
    answers = np.array([ids[question.answer] for question in questions], "int32")
    return {"story_ids": story_ids, "question_ids": question_ids}, answers
