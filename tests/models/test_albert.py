"""ALBERT: its groups; tests/models/test_golden.py has the numbers of others."""

import keras
import numpy as np
import pytest

import kerasattn
from kerasattn.models import ALBERT
from kerasattn.testing import check_model

SIZES = dict(num_heads=2, hidden_dim=16, intermediate_dim=32)


def test_layers_share_their_blocks():
    model = ALBERT(20, num_layers=6, num_groups=2, group_blocks=2, embedding_dim=8, **SIZES)
    blocks = [layer.name for layer in model.layers if layer.name.startswith("group")]
    assert sorted(blocks) == [f"group_{i}_block_{j}" for i in (0, 1) for j in (0, 1)]
    assert len(model.hidden_states([[5, 6, 7]])) == 7
    with pytest.raises(ValueError, match="num_groups must be from 1 to num_layers = 2"):
        ALBERT(20, num_layers=2, num_groups=3, **SIZES)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the files are TensorFlow's")
def test_the_files_of_bert4keras(golden):
    folder = golden("bert4keras/models/albert_mlm_pool")
    model = kerasattn.from_pretrained(folder)
    assert type(model) is ALBERT and model.get_config()["heads"] == ["pooled", "mlm"]


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        ALBERT,
        dict(
            vocabulary_size=11,
            num_layers=2,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            embedding_dim=4,
            max_length=8,
            heads=("sop",),
        ),
        targets=lambda batch, length: np.ones((batch,), "int32"),
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
