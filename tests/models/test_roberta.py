"""RoBERTa: its positions; tests/models/test_golden.py has the numbers of others."""

import numpy as np
import pytest
from keras import ops

from kerasattn.models import RoBERTa
from kerasattn.testing import check_model

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_positions_are_after_the_padding_id():
    model = RoBERTa(20, **SIZES, max_length=8, heads=())
    ids = np.array([[5, 6, 7]])
    expected = array(model({"token_ids": ids, "position_ids": np.array([[2, 3, 4]])})["hidden"])
    np.testing.assert_allclose(array(model(ids)["hidden"]), expected, atol=1e-6)
    with pytest.raises(ValueError, match="positions for 6 tokens, got 7"):
        model(np.full((1, 7), 5))


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        RoBERTa,
        dict(
            vocabulary_size=11,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            max_length=10,
            heads=("mlm",),
        ),
        inputs=lambda batch, length: {
            "token_ids": np.random.default_rng(1).integers(2, 11, (batch, length)).astype("int32")
        },
        pad_values={"token_ids": 1},
        targets=lambda batch, length: np.ones((batch, length), "int32"),
        untrained={"*self_attention/key/bias": "the softmax does not feel it"},
        skip={
            "causal": "reads both ways",
            "decoding": "has no step function",
            "jit": "BERT, of the same parts, is compiled",
            "save": "BERT, of the same parts, is saved",
            "precision": "BERT, of the same parts, has it",
            "errors": "BERT refuses what it refuses",
            "config": "BERT, of the same parts, has it; tests/models/test_golden.py has its own",
        },
    )
