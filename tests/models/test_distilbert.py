"""DistilBERT: no segments; tests/models/test_golden.py has the numbers of others."""

import numpy as np
import pytest

from kerasattn.models import DistilBERT
from kerasattn.testing import check_model


def test_segments_are_for_writing_alone():
    sizes = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    ids = np.array([[5, 6, 7]])
    with pytest.raises(ValueError, match=r"got also \['segment_ids'\]"):
        DistilBERT(20, **sizes)({"token_ids": ids, "segment_ids": ids * 0})
    with pytest.raises(ValueError, match="needs segment_ids"):
        DistilBERT(20, **sizes, application="unilm")(ids)


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        DistilBERT,
        dict(
            vocabulary_size=11,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            max_length=8,
            heads=("class",),
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
            "config": "BERT, of the same parts, has it; tests/models/test_golden.py has its own",
        },
    )
