"""The examples that fine-tune: their data, settings and complaints."""

import importlib.util
from pathlib import Path

import pytest

for package in ("chitchat_dataset", "tensorflow_text", "sklearn", "sacrebleu"):
    pytest.importorskip(package, reason="the extra [examples] installs it")

FOLDER = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_texts_do_not_tell_their_label():
    texts, labels = load("text_classification").read_texts(400, seed=0)
    assert len(set(texts)) == len(texts) == 400 and labels.sum() == 200
    assert not any(set(text) & set(".!?") for text in texts)


def test_what_is_given_counts_more_than_small():
    for name, option in (
        ("text_classification", "texts"),
        ("conditional_generation_unilm", "pairs"),
    ):
        example = load(name)
        options = vars(example.parse_arguments(["--small", f"--{option}", "99"]))
        assert options[option] == 99 and options["epochs"] == 1 and options["batch_size"] == 32


def test_complaints(capsys, tmp_path):
    example = load("text_classification")
    for option, complaint in (
        (["--epochs", "0"], "--epochs must be at least 1, got 0"),
        (["--learning-rate", "0"], "--learning-rate must be above 0"),
        (["--texts", "many"], "invalid int value"),
    ):
        with pytest.raises(SystemExit):
            example.main(["--output", str(tmp_path), *option])
        assert complaint in capsys.readouterr().err
