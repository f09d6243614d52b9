"""NEZHA: its distances; tests/models/test_golden.py has the numbers of others."""

import numpy as np
import pytest
from keras import ops

from kerasattn.models import NEZHA
from kerasattn.testing import check_model

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_distances_are_all_that_it_knows_of_places():
    model = NEZHA(20, **SIZES, max_distance=3, heads=())
    alone = array(model(np.array([[5, 6, 7]]))["hidden"])
    for ids in ([[0, 0, 5, 6, 7]], [[5, 6, 7, 0]]):
        found = array(model(np.array(ids))["hidden"])[np.array(ids) != 0]
        np.testing.assert_allclose(found, alone[0], atol=1e-5)
    other = array(model(np.array([[7, 6, 5]]))["hidden"])
    assert np.abs(other[:, ::-1] - alone).max() > 1e-3
    given = {"token_ids": np.array([[7, 6, 5]]), "position_ids": np.array([[2, 1, 0]])}
    np.testing.assert_allclose(array(model(given)["hidden"])[:, ::-1], alone, atol=1e-5)


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        NEZHA,
        dict(
            vocabulary_size=11,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            max_distance=3,
        ),
        targets=lambda batch, length: np.ones((batch, length), "int32"),
        untrained={"*self_attention/key/bias": "the softmax does not feel it"},
        skip={
            "causal": "reads both ways",
            "decoding": "has no step function",
            "jit": "BERT, of the same parts, is compiled",
            "save": "BERT, of the same parts, is saved",
            "errors": "BERT refuses what it refuses",
        },
    )
