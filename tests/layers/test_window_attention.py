"""Attention in blocks against the same with a mask of the whole square."""

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.ops import masks
from kerasattn.ops.attention import dot_product_attention
from kerasattn.ops.window import window_attention
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("before, after", [(2, 2), (3, 0), (0, 1), (0, 0), (9, 4)])
def test_blocks_equal_the_whole_square(before, after):
    query, key, value = RANDOM.normal(size=(3, 2, 7, 2, 3)).astype("float32")
    real = np.array([[True] * 7, [False, True, True, False, True, True, False]])
    mask = masks.window(real, before, after) & masks.keys(real)
    expected, _, _ = dot_product_attention(query, key, value, attention_mask=mask)
    found = window_attention(query, key, value, before, after, real)
    as_numpy = keras.ops.convert_to_numpy
    np.testing.assert_allclose(as_numpy(found), as_numpy(expected), atol=1e-6)


def test_layer():
    check_layer(
        layers.WindowAttention,
        {"num_heads": 2, "before": 2, "after": 0},
        lambda batch, length: RANDOM.normal(size=(batch, length, 4)).astype("float32"),
        padding=lambda real: {"padding_mask": real},
        causal=lambda batch, length: {},
        errors=[(np.ones((2, 3, 5), "float32"), "a multiple of 2 heads")],
        config_errors=[({"before": -1}, "at least 0"), ({"num_heads": 0}, "at least 1")],
        skip={"save": "as other layers of attention"},
        lengths=(1, 3, 5),
    )
