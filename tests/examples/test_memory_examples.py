import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_memory_network_small(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra [examples] installs it")
    example = load("memory_network")
    arguments = ["--small", "--output", str(tmp_path), "--tasks", "2", "--hops", "2"]
    assert example.main(arguments) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert list(report) == ["2"] and list(report["2"]["errors"]) == ["LSTM", "2 hops"]
    assert all(0 <= share <= 1 for share in report["2"]["errors"].values())
    assert (tmp_path / "hops-of-task-2.png").read_bytes().startswith(b"\x89PNG")


def test_memory_network_takes_published_files(tmp_path):
    example = load("memory_network")
    for split in ("train", "test"):
        path = tmp_path / f"qa1_single-supporting-fact_{split}.txt"
        path.write_text("1 Anna went to the attic.\n2 Where is Anna?\tattic\t1\n")
    settings = example.parse_arguments(["--data", str(tmp_path)])
    training, test = example.read(1, settings)
    assert training == test and training[0].answer == "attic"
    with pytest.raises(ValueError, match="has no file qa2_"):
        example.read(2, settings)


@pytest.mark.slow
def test_ntm_small(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra [examples] installs it")
    example = load("ntm")
    arguments = ["--small", "--output", str(tmp_path), "--initial-memory", "constant"]
    assert example.main(arguments) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert list(report["models"]) == ["NTM", "LSTM"]
    for row in report["models"].values():
        assert list(row["wrong bits"]) == ["1 to 10", "20", "40"]
        assert 0 < row["wrong bits"]["20"] <= 40
    assert np.isclose(*(row["parameters"] for row in report["models"].values()), rtol=0.1)
    for picture in ("curves.png", "trace-10.png", "trace-20.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_ntm_wrong_bits_are_of_what_counts():
    example = load("ntm")

    class Says:
        """Every bit is 1, of any sequence."""

        def predict_on_batch(self, x):
            return {"bit_logits": np.ones((*x.shape[:2], 8))}

    settings = example.parse_arguments([])
    wrong = example.wrong_bits(Says(), example.copy_task, (5, 5), settings, 2000)
    assert abs(wrong - 20) < 0.5  # half of 5 vectors of 8 bits
