"""The examples that fine-tune, at their small settings."""

import importlib.util
import json
from pathlib import Path

import keras
import numpy as np
import pytest

for package in ("chitchat_dataset", "tensorflow_text", "sklearn", "sacrebleu"):
    pytest.importorskip(package, reason="the extra [examples] installs it")

FOLDER = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_text_classification(tmp_path):
    example = load("text_classification")
    assert example.main(["--small", "--lora", "2", "--output", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["training_texts"] == 300 and report["held_out_texts"] == 100
    assert 0.6 < report["tf_idf_accuracy"] < 1
    assert 0 <= report["accuracy"] <= 1
    assert (tmp_path / "adapters.safetensors").is_file()


def test_texts_do_not_tell_their_label():
    texts, labels = load("text_classification").read_texts(400, seed=0)
    assert len(set(texts)) == len(texts) == 400 and labels.sum() == 200
    assert not any(set(text) & set(".!?") for text in texts)


@pytest.mark.slow
def test_conditional_generation(tmp_path):
    example = load("conditional_generation_unilm")
    assert example.main(["--small", "--output", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    losses = [report["held_out_loss"], report["held_out_loss_behind_other_turns"]]
    assert len(report["written"]) == 16 and np.all(np.isfinite(losses)) and losses[0] != losses[1]
    asked, similar = ({row[i] for row in report["written"]} for i in (1, 3))
    assert 0 <= report["chrf"] <= 100 and 0 < report["tf_idf_chrf"] < 100
    assert len(similar) > 4 and all(text.endswith("?") for text in asked | similar)
    assert isinstance(keras.models.load_model(tmp_path / "model.keras"), keras.Model)


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
