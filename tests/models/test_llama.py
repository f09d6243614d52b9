"""Llama: the numbers of others, and the frequencies of its longer contexts."""

import numpy as np
import pytest

from kerasattn.models import Llama
from kerasattn.ops import positions
from kerasattn.testing import check_model
from kerasattn.weights.tables import llama as tables

SCALING = dict(
    factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64
)
SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=4, hidden_dim=8, intermediate_dim=12)


def test_golden(agrees_with_others):
    agrees_with_others(Llama, "models/llama_gqa")


def test_model(one_token_at_a_time):
    check_model(
        Llama,
        dict(SIZES, num_key_value_heads=2, head_dim=4, pad_id=0, tied_head=True)
        | dict(rotary_scaling=SCALING, attention_bias=True),
        causal=("hidden", "lm_logits"),
        decoding=one_token_at_a_time,
        skip={"jit": "GPT-2 has it, of the same parts", "saved_model": "likewise"},
    )


def test_slow_frequencies_are_divided_and_fast_ones_kept():
    turns = np.array([8.0, 4.0, 2.5, 1.0, 0.1])  # in the original length
    scaled = positions.llama3_frequencies(turns * 2 * np.pi / 64, **SCALING)
    expected = turns * [1, 1, (0.5 + 0.5 / 8), 1 / 8, 1 / 8]
    np.testing.assert_allclose(scaled, expected * 2 * np.pi / 64)


def test_rotary_of_old_and_new_configs():
    said = {"rope_type": "llama3", **SCALING}
    for config in (
        {"rope_theta": 5e5, "rope_scaling": said},
        {"rope_parameters": {"rope_theta": 5e5, **said}},
    ):
        assert tables.rotary(config) == {"rotary_base": 5e5, "rotary_scaling": SCALING}
    with pytest.raises(ValueError, match="'yarn' is not supported"):
        tables.rotary({"rope_scaling": {"type": "yarn", "factor": 4.0}})
    model = Llama(**SIZES, rotary_scaling=SCALING, rotary_base=5e5)
    written = tables.config(model.get_config())
    assert tables.rotary(written)["rotary_scaling"] == SCALING
