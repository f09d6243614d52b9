import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.layers import MultiHeadAttention, RotaryEmbedding
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def heads(batch, length):
    return RANDOM.normal(size=(batch, length, 3, 8)).astype("float32")


@pytest.mark.parametrize("interleaved", [True, False])
def test_layer(interleaved):
    others = dict.fromkeys(
        ("config", "save", "precision", "jit", "saved_model"), "the interleaved one has it"
    )
    check_layer(
        RotaryEmbedding,
        {"interleaved": interleaved, "base": 500.0},
        heads,
        errors=[
            # CASES C18
            (np.ones((1, 2, 3, 3), "float32"), "head size must be even, got head_dim=3"),
            (np.ones((1, 2, 8), "float32"), "takes \\(batch, length, heads, head_dim\\)"),
        ],
        config_errors=[({"base": 0.0}, "base must be positive, got 0.0")],
        skip={"fit": "no weights"} if interleaved else {"fit": "no weights", **others},
        lengths=(1, 4),
    )


def test_positions_of_each_row():
    layer, x = RotaryEmbedding(), heads(2, 4)
    ids = np.array([[0, 1, 2, 3], [5, 6, 7, 8]])
    got = np.asarray(layer(x, ids))
    np.testing.assert_allclose(got[0], np.asarray(layer(x))[0], atol=1e-6)
    later = np.concatenate([np.zeros((1, 5, 3, 8), "float32"), x[1:]], axis=1)
    np.testing.assert_allclose(got[1], np.asarray(layer(later))[0, 5:], atol=1e-5)
    one = np.asarray(layer(x[:, 2:3], np.array([[2]])))  # a decoding step
    np.testing.assert_allclose(one, np.asarray(layer(x))[:, 2:3], atol=1e-6)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "bfloat16"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_leaves_in_the_dtype_it_came_in(policy, dtype):
    layer = RotaryEmbedding(dtype=policy)
    x = keras.ops.cast(heads(1, 3), dtype)
    assert layer(x, np.arange(1000, 1003)[None]).dtype == x.dtype
    symbolic = keras.KerasTensor((None, None, 3, 8), dtype)
    assert layer(symbolic).dtype == dtype


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16", "bfloat16"])
def test_angles_are_float32_in_every_policy(policy):
    x, ids = heads(1, 3), np.array([[3000, 3001, 3002]])
    got = RotaryEmbedding(dtype=policy)(x, ids)
    pairs = x.reshape(1, 3, 3, 4, 2) @ [[1], [1j]]
    turned = pairs[..., 0] * np.exp(1j * ids[..., None, None] * 10000.0 ** (-np.arange(4) / 4))
    expected = np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_odd_head_size_in_a_graph():
    with pytest.raises(ValueError, match="head_dim=3"):
        RotaryEmbedding()(keras.Input((None, 2, 3)))


def test_values_turn_as_keys_do():
    rotary = RotaryEmbedding()
    layer = MultiHeadAttention(2, rotary=rotary, rotary_value=True)
    x = np.random.default_rng(0).normal(size=(2, 1, 8)).astype("float32")
    places = np.array([[3], [7]])
    found = layer(x, query_positions=places, key_positions=places)
    values = ops.reshape(layer.value(x), (2, 1, 2, 4))  # of one key, which takes all the weight
    expected = layer.output_dense(ops.reshape(rotary(values, places), (2, 1, 8)))
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=1e-6)
    assert MultiHeadAttention.from_config(layer.get_config()).rotary_value
