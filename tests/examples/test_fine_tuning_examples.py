"""The examples that fine-tune, at their small settings."""

import importlib.util
import json
from pathlib import Path

import keras
import numpy as np
import pytest

for package in ("chitchat_dataset", "tensorflow_text", "sklearn"):
    pytest.importorskip(package, reason="the extra [examples] installs it")

FOLDER = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("lora", [0, 2])
def test_text_classification(lora, tmp_path):
    example = load("text_classification")
    assert example.main(["--small", "--lora", str(lora), "--output", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["training_texts"] == 300 and report["held_out_texts"] == 100
    assert 0.6 < report["tf_idf_accuracy"] < 1
    assert 0 <= report["accuracy"] <= 1
    assert (tmp_path / ("adapters.safetensors" if lora else "model.keras")).is_file()


def test_texts_do_not_tell_their_label():
    texts, labels = load("text_classification").read_texts(400, seed=0)
    assert len(set(texts)) == len(texts) == 400 and labels.sum() == 200
    assert not any(set(text) & set(".!?") for text in texts)


@pytest.mark.slow
def test_conditional_generation(tmp_path):
    example = load("conditional_generation_unilm")
    assert example.main(["--small", "--output", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert len(report["written"]) == 16 and np.isfinite(report["held_out_loss"])
    assert isinstance(keras.models.load_model(tmp_path / "model.keras"), keras.Model)


def test_writing_is_what_the_whole_sequence_tells():
    """Greedy tokens, one at a time in a batch, against the likeliest of one forward pass each."""
    from kerasattn import decoding
    from kerasattn.models import BERT

    example = load("conditional_generation_unilm")
    model = BERT(20, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=16, max_length=48,
                 application="unilm", initializer_range=0.5)  # fmt: skip
    read = np.array([[2, 7, 8, 3, 0, 0], [2, 9, 3, 0, 0, 0]], "int32")
    written = decoding.generate(
        example.Writer(model), read, start_ids=[3, 3], max_new_tokens=4, jit=False
    )
    for row, length in ((0, 4), (1, 3)):
        token_ids = np.concatenate([read[row, :length], written[row]])[None]
        segment_ids = (np.arange(length + 4) >= length).astype("int32")[None]
        logits = model({"token_ids": token_ids, "segment_ids": segment_ids})["lm_logits"]
        likeliest = np.argmax(np.asarray(logits)[0, length - 1 : -1], axis=-1)
        np.testing.assert_array_equal(likeliest, written[row])
