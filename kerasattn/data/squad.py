"""Questions whose answers are spans of a text, in the format of SQuAD."""

import json
import typing
from pathlib import Path


class SpanQuestion(typing.NamedTuple):
    """A question about a text.

    Attributes:
        id: str.
        context: str, the text.
        question: str.
        answers: list of (str, int): the words, and the character of the text where they begin;
            several people may have answered. Empty for a question that the text does not answer.

    Example:
    >>> from kerasattn.data import SpanQuestion
    >>> SpanQuestion("1", "It rains.", "What does it do?", [("rains", 3)]).answers[0][1]
    3
    """

    id: str
    context: str
    question: str
    answers: list


def squad_file(path):
    """The questions of a file in SQuAD's format, version 1 or 2.

    Args:
        path: of a JSON file: {"data": [{"paragraphs": [{"context": ..., "qas": [{"id": ...,
            "question": ..., "answers": [{"text": ..., "answer_start": ...}]}]}]}]}.

    Returns:
        list of `SpanQuestion`.

    Raises:
        ValueError: if the file is missing or damaged, has another form, or has an answer that does
            not stand where it says, naming the question.

    Example:
    >>> import json, pathlib, tempfile
    >>> from kerasattn.data import squad_file
    >>> answers = [{"text": "Ada", "answer_start": 0}]
    >>> asked = [{"id": "a", "question": "Who sings?", "answers": answers}]
    >>> content = {"data": [{"paragraphs": [{"context": "Ada sings.", "qas": asked}]}]}
    >>> path = pathlib.Path(tempfile.mkdtemp(), "questions.json")
    >>> _ = path.write_text(json.dumps(content))
    >>> squad_file(path)[0].answers
    [('Ada', 0)]

    Source: https://rajpurkar.github.io/SQuAD-explorer
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"The file {str(path)!r} can't be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The file {str(path)!r} is no JSON in UTF-8: {error}.") from None
    return read_squad(content, str(path))


def read_squad(content, name="content"):
    """As `squad_file`, of what its JSON holds.

    Args:
        content: dict.
        name: str, what errors call it.

    Example:
    >>> from kerasattn.data import read_squad
    >>> read_squad({"data": [{"paragraphs": [{"context": "", "qas": []}]}]})
    []
    """
    questions = []
    for article in _get(content, "data", list, name):
        for paragraph in _get(article, "paragraphs", list, f"an article of {name}"):
            where = f"a paragraph of {name}"
            context = _get(paragraph, "context", str, where)
            for asked in _get(paragraph, "qas", list, where):
                key = _get(asked, "id", str, f"a question of {name}")
                questions.append(_question(asked, key, context, f"question {key!r} of {name}"))
    return questions


def _question(asked, key, context, where):
    answers = []
    for answer in _get(asked, "answers", list, where):
        text = _get(answer, "text", str, where)
        start = _get(answer, "answer_start", int, where)
        there = context[start : start + len(text)] if start >= 0 else None
        if not text or there != text:
            raise ValueError(
                f"{where} has the answer {text!r} at {start}, where the text has {there!r}."
            )
        answers.append((text, start))
    if not answers and not asked.get("is_impossible", False):
        raise ValueError(f"{where} has no answer, and does not say that it is_impossible.")
    return SpanQuestion(key, context, _get(asked, "question", str, where), answers)


def _get(of, key, kind, where):
    """The value of a key, of a kind."""
    found = of.get(key) if isinstance(of, dict) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise ValueError(
            f"{where} must be an object with {key!r}, a {kind.__name__}; got {str(found)[:40]!r}."
        )
    return found


def token_span(offsets, start, end):
    """The tokens that characters stand in: the first and the last, or None if none does.

    Args:
        offsets: list of (start, end), of the characters of each token: `data.split_words`, or
            `tokenizer.offsets`.
        start, end: ints, the characters [start, end).

    Example:
    >>> from kerasattn.data import split_words, token_span
    >>> _, offsets = split_words("In 1843, Ada Brunt came.")
    >>> token_span(offsets, 9, 18), token_span(offsets, 2, 3)
    ((3, 4), None)
    """
    inside = [i for i, (begin, stop) in enumerate(offsets) if begin < end and start < stop]
    return (inside[0], inside[-1]) if inside else None
