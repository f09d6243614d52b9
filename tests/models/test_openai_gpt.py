"""The first GPT: the numbers of others."""

import pytest

from kerasattn.models import OpenAIGPT
from kerasattn.testing import check_model

SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, hidden_dim=8, pad_id=0)


def test_golden(agrees_with_others):
    agrees_with_others(OpenAIGPT, "models/openai_gpt_lm", cases=("beam4",))


def test_model(one_token_at_a_time):
    check_model(
        OpenAIGPT,
        dict(SIZES, intermediate_dim=32),
        causal=("hidden", "lm_logits"),
        decoding=one_token_at_a_time,
        skip=dict.fromkeys(
            ["jit", "save", "saved_model", "precision", "fit"], "GPT-2 has it, of the same code"
        ),
    )


def test_what_its_config_cannot_say_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="4 \\* hidden_dim"):
        OpenAIGPT(**SIZES, intermediate_dim=12).save_pretrained(tmp_path)
