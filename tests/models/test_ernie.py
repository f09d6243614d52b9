"""ERNIE: its tasks; tests/models/test_golden.py has the numbers of others."""

import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

from kerasattn.models import ERNIE
from kerasattn.testing import check_model

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_tasks(tmp_path):
    ids = np.array([[5, 6, 7]])
    with pytest.raises(ValueError, match=r"got also \['task_ids'\]"):
        ERNIE(20, **SIZES)({"token_ids": ids, "task_ids": ids})
    model = ERNIE(20, **SIZES, use_tasks=True, num_tasks=2, heads=("mlm", "nsp"))
    with pytest.raises(ValueError, match="task_ids takes ids from 0 to 1, got 7"):
        model({"token_ids": ids, "task_ids": ids})
    none, first, second = (
        array(model({"token_ids": ids, **task})["hidden"])
        for task in ({}, {"task_ids": ids * 0}, {"task_ids": ids * 0 + 1})
    )
    np.testing.assert_array_equal(none, first)
    assert np.abs(second - first).max() > 1e-3

    model.save_pretrained(tmp_path)
    # Their config names the dropout of the attention, which ours leaves to `dropout`.
    expected = {**model.get_config(), "attention_dropout": 0.1}
    assert ERNIE.from_pretrained(tmp_path).get_config() == expected
    names = load_file(tmp_path / "model.safetensors")
    assert "ernie.embeddings.task_type_embeddings.weight" in names


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        ERNIE,
        dict(
            vocabulary_size=11,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            max_length=8,
            use_tasks=True,
        ),
        targets=lambda batch, length: np.ones((batch, length), "int32"),
        untrained={"*self_attention/key/bias": "the softmax does not feel it"},
        skip={
            "causal": "reads both ways",
            "decoding": "has no step function",
            "jit": "BERT, of the same parts, is compiled",
            "save": "BERT, of the same parts, is saved",
            "precision": "BERT, of the same parts, has it",
            "errors": "BERT refuses what it refuses",
        },
    )
