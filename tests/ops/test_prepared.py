"""Weights made ready before a loop give what the layers give without them."""

import numpy as np
import pytest
from keras import ops

from kerasattn import layers
from kerasattn.ops.prepared import prepared, preparing
from kerasattn.testing.checks import shake

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 3, 8)).astype("float32")


def array(x):
    return ops.convert_to_numpy(x)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("groups", [4, 2])
def test_projections_joined(groups, use_bias):
    options = dict(num_key_value_heads=groups, use_bias=use_bias, value_dim=3)
    attention = layers.MultiHeadAttention(4, **options, rotary=layers.RotaryEmbedding())
    attention(X)
    shake(attention, size=0.5)
    cache = attention.empty_cache(2, 5)
    expected = attention(X, cache=cache, cache_index=1)
    with preparing([attention]):
        kernel, _ = prepared(attention)
        assert tuple(kernel.shape) == (8, 4 * 2 + groups * 2 + groups * 3)
        found = attention(X, cache=cache, cache_index=1)
        other = attention(X, value=2 * X)  # not of itself: each has its projection
    assert prepared(attention) is None
    for ours, theirs in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(array(ours), array(theirs), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(array(other), array(attention(X, value=2 * X)), rtol=1e-5, atol=1e-6)


def test_what_cannot_be_joined_is_left():
    crossing, quantized = layers.MultiHeadAttention(2), layers.MultiHeadAttention(2)
    crossing(X, value=X[..., :5])
    quantized(X)
    quantized.query.quantize("int8")
    unbuilt = layers.MultiHeadAttention(2)
    with preparing([crossing, quantized, unbuilt, layers.PaddingMask(0)]):
        assert prepared(crossing) is prepared(quantized) is prepared(unbuilt) is None
        assert tuple(quantized(X).shape) == X.shape


@pytest.mark.parametrize("rows", [1, 2])
def test_a_transposed_table(rows):
    table = layers.TokenEmbedding(7, 8)
    expected = array(table(X[:rows], reverse=True))
    with preparing([table]):
        np.testing.assert_allclose(array(table(X[:rows], reverse=True)), expected, atol=1e-6)
