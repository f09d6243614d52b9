"""Questions, documents and captions: what is read, made and refused."""

import json

import numpy as np
import pytest

from kerasattn import data
from kerasattn.data.documents import GAP


def write(tmp_path, content):
    path = tmp_path / "questions.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf8")
    return path


def question(**changes):
    asked = {
        "id": "q",
        "question": "Who came?",
        "answers": [{"text": "Zoë", "answer_start": 8}, {"text": "Zoë Ark", "answer_start": 8}],
    }
    asked |= changes
    return {"data": [{"paragraphs": [{"context": "In 1843 Zoë Ark, 30, came.", "qas": [asked]}]}]}


def test_squad_file(tmp_path):
    [found] = data.squad_file(write(tmp_path, question()))
    assert found.answers == [("Zoë", 8), ("Zoë Ark", 8)]
    words, offsets = data.split_words(found.context)
    spans = [data.token_span(offsets, at, at + len(text)) for text, at in found.answers]
    assert [words[first : last + 1] for first, last in spans] == [["Zoë"], ["Zoë", "Ark"]]
    assert data.token_span(offsets, 9, 10) == (2, 2)  # part of a word is that word
    [nothing] = data.squad_file(write(tmp_path, question(answers=[], is_impossible=True)))
    assert nothing.answers == []


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "no JSON"),
        ([], "must be an object with 'data'"),
        ({"data": [{}]}, "an article of .* must be an object with 'paragraphs'"),
        (
            question(answers=[{"text": "Ark", "answer_start": 8}]),
            "question 'q' .* the text has 'Zo",
        ),
        (question(answers=[{"text": "Zoë", "answer_start": "8"}]), "'answer_start', a int"),
        (question(answers=[{"text": "", "answer_start": 8}]), "has the answer ''"),
        (question(answers=[]), "does not say that it is_impossible"),
        (question(question=None), "'question', a str"),
    ],
)
def test_squad_errors(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        data.squad_file(write(tmp_path, content))


def test_squad_file_that_is_not_there():
    with pytest.raises(ValueError, match="can't be read"):
        data.squad_file("no such file.json")


def test_span_stories_ask_for_one_deed():
    made = data.span_stories(30, sentences=4, questions=3, seed=1)
    assert made == data.span_stories(30, sentences=4, questions=3, seed=1)
    asked = data.read_squad(made)  # which refuses answers that do not stand in the text
    assert len(asked) == 90 and len({one.id for one in asked}) == 90
    for one in asked:
        text, start = one.answers[0]
        _, offsets = data.split_words(one.context)
        first, last = data.token_span(offsets, start, start + len(text))
        assert (offsets[first][0], offsets[last][1]) == (start, start + len(text))
        assert one.context.count(".") == 4
        assert text not in one.question
    with pytest.raises(ValueError, match="sentences at least 1, got 3, 4 and 0"):
        data.span_stories(3, sentences=0)


def test_vocabulary():
    vocabulary = data.Vocabulary.build([["a", "b"], ["a", "c"]], size=4)
    assert vocabulary.words[:3] == ["[PAD]", "[UNK]", "a"] and len(vocabulary) == 4
    found = vocabulary.encode_documents([[["a"], ["z", "a", "a"]], []], sentences=1, words=2)
    assert found.tolist() == [[[2, 0]], [[0, 0]]]
    assert vocabulary.encode([]).shape == (0, 1)
    with pytest.raises(ValueError, match="are there twice"):
        data.Vocabulary(["a", "a"])


def test_cloze_questions():
    pytest.importorskip("chitchat_dataset", reason="the extra [examples] installs it")
    sides = data.cloze_questions(40, document_words=30, conversations=150, min_count=5, seed=3)
    assert [len(side) for side in sides] == [40, 10]
    for document, query, answer in [*sides[0], *sides[1]]:
        assert answer in document and query.count(GAP) == 1 and 10 <= len(document) <= 30


def test_digit_captions():
    images = np.zeros((10, 28, 28, 1), "float32")
    images += np.linspace(0.5, 1, 10)[:, None, None, None]  # its brightness tells the digit
    digits = images.astype("float32"), np.arange(10)
    (pictures, captions), (others, told) = data.digit_captions(200, 0.3, digits=digits)
    assert pictures.shape == (200, 32, 32, 1) and others.shape == (50, 32, 32, 1)
    numbers = data.captions.NUMBERS
    words = [{w for caption in side for w in caption if w in numbers} for side in (captions, told)]
    assert not words[0] & words[1]  # held-out digits
    for picture, caption in zip(pictures[..., 0], captions):
        shades = [digits[0][numbers.index(w), 0, 0, 0] for w in caption if w in numbers]
        if len(set(shades)) < len(shades):  # the same digit twice
            continue
        rows, columns = zip(*(np.argwhere(np.isclose(picture, shade)).T for shade in shades))
        tops, lefts = ([x.min() for x in each] for each in (rows, columns))
        if "left" in caption:
            assert lefts[0] < lefts[1] and caption[2:4] == ["left", "of"]
        if "above" in caption:
            assert tops[0] < tops[1]
        assert len(shades) == (2 if len(caption) > 2 else 1)
    for held_out in (0.0, 1.0):
        with pytest.raises(ValueError, match="held_out must be between 0 and 1"):
            data.digit_captions(8, held_out, digits=digits)
