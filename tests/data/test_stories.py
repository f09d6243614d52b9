import numpy as np
import pytest

from kerasattn.data import (
    StoryQuestion,
    babi_file,
    generate_stories,
    story_arrays,
    story_vocabulary,
)
from kerasattn.data.story_generator import ANIMALS, KINDS, ROOMS, TASKS

# In the format of the published files: numbers, tabs, a space before the answer's tab, supports.
PUBLISHED = """1 Mary moved to the bathroom.
2 Sandra journeyed to the bedroom.
3 Where is Mary? \tbathroom\t1
4 Mary got the football there.
5 John's dog-cart went back to the kitchen.
6 Where is the football? \tbathroom\t4 1
1 Lily is a swan.
2 What is Lily carrying? \tapple,milk\t1
"""


def test_published_format(tmp_path):
    path = tmp_path / "qa2_train.txt"
    path.write_text(PUBLISHED)
    first, second, third = babi_file(path)
    assert first.sentences == (
        ("mary", "moved", "to", "the", "bathroom"),
        ("sandra", "journeyed", "to", "the", "bedroom"),
    )
    assert first[1:] == (("where", "is", "mary"), "bathroom", (0,))
    # The third line is a question: the sentence of number 4 is the third.
    assert second.supporting == (2, 0) and len(second.sentences) == 4
    assert second.sentences[3][:2] == ("john's", "dog-cart")
    assert third == ((("lily", "is", "a", "swan"),), ("what", "is", "lily", "carrying"),
                     "apple,milk", (0,))  # fmt: skip


@pytest.mark.parametrize(
    "text, message",
    [
        ("Mary moved.\n", "line 1: expected a number and a sentence"),
        ("1 Mary moved.\n2 Where is Mary?\t\t1\n", "line 2: expected a question, an answer"),
        ("1 Mary moved.\n2 Where is Mary?\thall\t7\n", "line 2: .* numbers of sentences before"),
        ("1 Mary moved.\n", "has no question"),
        (b"\xff\xfe1", "no text in UTF-8"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    path = tmp_path / "qa1_test.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        babi_file(path)
    with pytest.raises(ValueError, match="can't be read"):
        babi_file(tmp_path / "nothing.txt")


def places_of(sentences):
    """Where everybody and everything is and was, told by another program than the generator."""
    rooms, things, holders = {}, {}, {}
    for words in sentences:
        person = words[0]
        if words[-1] in ROOMS:
            rooms[person] = words[-1]
            for thing in (t for t, holder in holders.items() if holder == person):
                things[thing].append(words[-1])
        elif words[-2] == "to":  # gave something to somebody
            holders[words[-3]] = words[-1]
        elif set(words[1:-1]) & {"dropped", "put", "left", "let"}:
            assert holders.pop(words[-1]) == person
        else:
            assert words[-1] not in holders
            holders[words[-1]] = person
            trail = things.setdefault(words[-1], [])
            assert not trail or trail[-1] == rooms[person], "it was somewhere else"
            trail.append(rooms[person])
    return rooms, {t: [r for r, q in zip(x, [None, *x]) if r != q] for t, x in things.items()}


@pytest.mark.parametrize("task", TASKS)
def test_answers_follow_from_the_stories(task):
    questions = generate_stories(task, 200, seed=0)
    assert len(questions) == 200 and generate_stories(task, 200, seed=0) == questions
    assert generate_stories(task, 200, seed=1) != questions
    for sentences, question, answer, supporting in questions:
        assert all(0 <= i < len(sentences) for i in supporting) and answer
        assert len(supporting) == {2: 2, 3: 3, 15: 2}.get(task, 1)
        if task == 15:
            kind = next(w[3] for w in sentences if w[0] == question[2] and w[1] == "is")
            plural = next(w[-1] for w in sentences if w[0] == KINDS[kind])
            assert KINDS[answer] == plural != KINDS[kind]
            assert question[2].capitalize() in ANIMALS
            continue
        rooms, things = places_of(sentences)
        # Who is where follows from one sentence alone.
        few = places_of([sentences[i] for i in supporting])[0] if task in (1, 6) else {}
        if task == 1:
            assert answer == rooms[question[-1]] == few[question[-1]]
        elif task == 2:
            assert answer == things[question[-1]][-1]
        elif task == 3:
            assert [answer, question[-1]] == things[question[3]][-2:]
        elif task == 6:
            there = rooms[question[1]] == question[-1] == few[question[1]]
            assert answer == ("yes" if there else "no")
        else:
            giver, _, _, thing, _, taker = sentences[supporting[0]]
            told = {"who": (giver, taker), "what": (thing,)}[question[0]]
            assert answer in told and not (set(question) & {answer})


def test_lengths_are_those_of_the_published_stories():
    longest = {1: 10, 2: 88, 3: 320, 5: 126, 6: 10, 15: 8}
    for task, most in longest.items():
        lengths = [len(q.sentences) for q in generate_stories(task, 500, seed=2)]
        assert max(lengths) <= most and max(lengths) >= most / 3
    assert {q.answer for q in generate_stories(6, 100, seed=0)} == {"yes", "no"}


def test_arrays():
    questions = [
        StoryQuestion((("a", "b"), ("c",), ("b", "c", "a")), ("b", "c"), "a"),
        StoryQuestion((("c", "b"),), ("a",), "d"),
    ]
    vocabulary = story_vocabulary(questions)
    assert vocabulary == ["", "a", "b", "c", "d"]
    inputs, answers = story_arrays(questions, vocabulary, max_sentences=2)
    assert inputs["story_ids"].tolist() == [[[3, 0, 0], [2, 3, 1]], [[3, 2, 0], [0, 0, 0]]]
    assert inputs["question_ids"].tolist() == [[2, 3, 0], [1, 0, 0]]
    assert answers.tolist() == [1, 4] and answers.dtype == np.int32
    for bad, message in (
        (([], vocabulary), "at least one question"),
        ((questions, vocabulary[:-1]), r"does not have \['d'\]"),
        ((questions, vocabulary[1:]), "first of the vocabulary is the padding, got .a"),
        ((questions, vocabulary, 2, 2), "has 3 words, there is room for 2"),
        ((questions, vocabulary, 0), "max_sentences must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            story_arrays(*bad)
    with pytest.raises(ValueError, match="task must be one of"):
        generate_stories(4, 1)
