"""Numbers that no model can be built of are refused, by every family and before the work."""

import inspect

import keras
import pytest

from kerasattn.models import ELMo
from kerasattn.models.registry import MODELS

# ELMo reads characters, and has sizes of its own: its test has them.
FAMILIES = set(MODELS.values()) - {ELMo}
SIZES = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8)
WRONG = [
    *[(name, value) for name in SIZES for value in (0, -1, 2.0, "2", None, True)],
    *[("embedding_dim", value) for value in (0, -1, 2.5)],
    *[("max_length", value) for value in (0, 4.5, "6", None)],
    *[("layer_norm_epsilon", value) for value in (0, -1.0, float("nan"), "1e-5")],
    *[("initializer_range", value) for value in (0, -1.0, float("nan"), float("inf"))],
    *[("dropout", value) for value in (1.0, -0.1, float("nan"), "0.1")],
    *[("attention_dropout", value) for value in (1.0, -0.1)],
    *[("swap_noise", value) for value in (1.0, -0.1)],
    *[("seed", value) for value in (1.5, "x")],
    *[("codebook_size", value) for value in (0, 2.5)],
    *[("latent_dim", value) for value in (2.5, "4")],
    *[("num_latent_layers", value) for value in (1.5, "1")],
]


@pytest.mark.parametrize("name, value", WRONG, ids=repr)
def test_what_no_model_can_be_built_of(name, value):
    for family in FAMILIES:
        if name in inspect.signature(family.__init__).parameters:
            with pytest.raises(ValueError, match=rf"{name} must be .*got {value!r}"):
                family(30, **{**SIZES, name: value})


def test_every_family_is_saved_under_its_name():
    for family in set(MODELS.values()):
        assert keras.saving.get_registered_name(family) == f"kerasattn>{family.__name__}"


@pytest.mark.parametrize("size", [0, 2.5, "9", None])
def test_no_vocabulary(size):
    for family in FAMILIES:
        with pytest.raises(ValueError, match="vocabulary_size"):
            family(size, **SIZES)
