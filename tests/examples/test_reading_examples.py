"""The parts of the examples of readers and captioners that are no models: baselines and scores."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    pytest.importorskip("matplotlib", reason="the extra [plotting] installs it")
    spec = importlib.util.spec_from_file_location(f"{name}_example", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reading_baseline_and_scores():
    reading = load("reading")
    text = "In 1843 Ada Brunt built a mill . Near York , Bo sold an old clock ."
    context, query = text.split(" "), ["What", "did", "Bo", "sell", "near", "York", "?"]
    assert reading.longest_new_run(context, query) == (12, 15)
    found, wanted = np.array([[2, 3], [4, 7], [0, 0]]), np.array([[2, 3], [6, 9], [5, 5]])
    exact, f1 = reading.scores(found, wanted)
    assert exact == 1 / 3 and f1 == pytest.approx((1 + 0.5 + 0) / 3)
    query = [str(i) for i in range(50)]
    query[45] = reading.GAP
    kept = reading.around_gap(query)
    assert len(kept) == reading.QUERY_WORDS and reading.GAP in kept


def test_captions_baseline_and_gradients():
    captions = load("captions")
    pictures = np.eye(4, dtype="float32").reshape(4, 2, 2, 1)
    wanted = np.arange(8).reshape(4, 2)
    found = captions.nearest(pictures[[2, 0]] * 0.9, pictures, wanted)
    np.testing.assert_array_equal(found, wanted[[2, 0]])
    found, wanted = np.array([[[5, 6, 0], [5, 7, 2]], [[5, 6, 0], [5, 8, 2]]])
    exact, words = captions.scores(found, wanted)
    assert (exact, words) == (0.5, 0.8)
    reinforce, *gumbel = captions.gradients(20_000, seed=0)
    assert reinforce[3] < 18.47  # chi-square at p = 0.001
    assert all(row[3] > 100 for row in gumbel[:1])
