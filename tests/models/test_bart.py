"""BART: the numbers of others, and its limits."""

import numpy as np
import pytest

from kerasattn.models import BART
from kerasattn.testing import check_model

SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)


def test_golden(agrees_with_others):
    agrees_with_others(BART, "models/bart_cond_gen", tolerance=2e-4)


@pytest.mark.slow
def test_model(draw_pairs, one_token_at_a_time):
    check_model(
        BART,
        dict(SIZES, scale_embedding=True, max_length=9, pad_id=0),
        inputs=draw_pairs,
        decoding=one_token_at_a_time,
        untrained={"*key/bias": "softmax does not see it"},
        skip={
            "causal": "what is read changes too",
            "jit": "T5 has it, of the same parts",
            "saved_model": "likewise",
            "save": "likewise",
        },
    )


def test_errors_say_what_to_do():
    model = BART(**SIZES, max_length=9)
    with pytest.raises(ValueError, match="needs decoder_token_ids"):
        model([[1, 2]])
    with pytest.raises(ValueError, match="at most 9 tokens"):
        model.generate(np.ones((1, 10), "int32"))
    with pytest.raises(ValueError, match="9 positions"):
        model.generate([[5, 6]], max_new_tokens=10)
