import importlib.util

import pytest

from kerasattn.data import (
    cantonese_sentences,
    chitchat_questions,
    text_file,
    train_test_split,
)


def needs(package):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package}, of the extra examples, is missing")


@needs("pycantonese")
def test_cantonese_sentences():
    sentences = cantonese_sentences()
    assert len(sentences) == 121_138
    assert not any(" " in sentence or not sentence for sentence in sentences)
    assert "周身刀冇張利" in sentences


@needs("chitchat_dataset")
def test_chitchat_questions():
    questions = chitchat_questions()
    assert len(questions) == 38_412
    assert questions[0] == "How are you doing today?"
    assert all(q.endswith("?") and q == " ".join(q.split()) for q in questions)


@pytest.mark.parametrize("corpus", [cantonese_sentences, chitchat_questions])
def test_missing_package_names_the_extra(monkeypatch, corpus):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"kerasattn\[examples\]"):
        corpus()


def test_text_file(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes("\ufeff一二三\r\n\r\n  four five \n六\u2028七\n一二三".encode())
    assert text_file(path) == ["一二三", "four five", "六\u2028七", "一二三"]
    assert text_file(str(path)) == text_file(path)


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "There is no corpus file"),
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"one\0two\n", "zero byte at 3"),
        (b"\x89PNG\r\n\x1a\n", "byte 0 can't be decoded"),
        (b"only one\n", "1 different sentence; expected at least two"),
        (b"only one\nonly one\n", "1 different sentence;"),
    ],
)
def test_bad_text_file(tmp_path, content, message):
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        text_file(path)
    assert "\n" not in str(error.value)


def test_folder_is_no_text_file(tmp_path):
    with pytest.raises(ValueError, match="it is a folder"):
        text_file(tmp_path)


def test_split_has_no_common_sentence():
    sentences = [f"sentence {i % 700}" for i in range(1000)]
    train, test = train_test_split(sentences, held_out=100)
    assert (len(train), len(test)) == (600, 100)
    assert not set(train) & set(test)
    assert train_test_split(sentences, held_out=100) == (train, test)
    assert train_test_split(sentences, held_out=100, seed=1)[1] != test


def test_split_hangs_on_the_sentence_alone():
    sentences = [f"sentence {i}" for i in range(2000)]
    train, test = train_test_split(sentences, held_out=0.1)
    assert 150 < len(test) < 250
    more_train, more_test = train_test_split(sentences[::-1] + ["new"] * 3, held_out=0.1)
    assert set(test) <= set(more_test) and set(train) <= set(more_train)


@pytest.mark.parametrize("held_out", [0, 5, -1, 0.0, 1.0, 1e-9])
def test_bad_held_out(held_out):
    with pytest.raises(ValueError, match="held_out"):
        train_test_split(["a", "b", "c", "d", "e"], held_out=held_out)
