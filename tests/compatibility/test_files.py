"""Files that earlier versions saved load, and give what transformers gave for their weights."""

import json
from pathlib import Path

import numpy as np
import pytest
from keras import ops

from kerasattn.models import BERT, load_model

FILES = sorted(Path(__file__).parent.glob("*.keras"))


def test_there_are_files():
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_loads(path):
    assert path.stat().st_size < 100_000
    model = load_model(path)
    assert isinstance(model, BERT)
    numbers = json.loads(path.with_suffix(".json").read_text())
    token_ids, segment_ids = (np.array(numbers[n], "int32") for n in ("token_ids", "segment_ids"))
    outputs = model({"token_ids": token_ids, "segment_ids": segment_ids})
    real = token_ids != 0
    logits = np.asarray(ops.convert_to_numpy(outputs["mlm_logits"]))
    np.testing.assert_allclose(logits[real], np.array(numbers["mlm_logits"])[real], atol=1e-4)
    nsp = np.asarray(ops.convert_to_numpy(outputs["nsp_logits"]))
    np.testing.assert_allclose(nsp, numbers["nsp_logits"], atol=1e-4)
    labels = {"mlm_logits": np.where(real, token_ids, -100), "nsp_logits": np.array([0, 1])}
    inputs = {"token_ids": token_ids, "segment_ids": segment_ids}
    model.run_eagerly = True  # a graph takes longer than the step
    assert np.isfinite(model.train_on_batch(inputs, labels))  # compiled, with its optimizer
