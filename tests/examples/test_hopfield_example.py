import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "hopfield.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("hopfield_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_small(example, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra [examples] installs it")
    assert example.main(["--small", "--output", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    shares = [row["recalled"] for row in report["curve"]]
    assert len(shares) == len(example.LOADS) and shares[0] == 1.0 > shares[-1]
    # What the shapes share draws them together, but the nearest is found.
    assert np.mean(report["overlaps"]["from noise"]) > 0.9
    assert report["largest rises"]["asynchronous"] <= 1e-4
    assert report["modern"][-1]["beta 4"] > 0.9 > report["modern"][-1]["beta 0.1"]
    for picture in ("pictures.png", "capacity.png", "energies.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_flip_changes_the_share(example):
    changed = example.flip(np.ones((3, 20)), 0.1, np.random.default_rng(0))
    assert ((changed == -1).sum(axis=1) == 2).all() and len(np.unique(changed, axis=0)) == 3
