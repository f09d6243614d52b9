import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.ops import masks
from kerasattn.ops.attention import dot_product_attention
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


OTHERS = dict.fromkeys(
    ("config", "save", "precision", "jit", "saved_model"), "a unit of other options has it"
)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def x(batch, length):
    return RANDOM.normal(size=(batch, length, 6)).astype("float32")


def hidden(real):
    return {"attention_mask": real[:, None, None, :]}


def causal(batch, length):
    return {"attention_mask": np.tril(np.ones((batch, 1, length, length), bool))}


@pytest.mark.parametrize("normalization", ["softmax", "softmax_plus", "squared_relu"])
def test_layer(normalization):
    check_layer(
        layers.GatedAttentionUnit,
        lambda: {
            "intermediate_dim": 10,
            "key_dim": 4,
            "normalization": normalization,
            "rotary": layers.RotaryEmbedding(),
            "dropout": 0.1,
            "seed": 3,
        },
        x,
        padding=hidden,
        causal=causal,
        config_errors=[
            ({"key_dim": 0}, "must be at least 1"),
            ({"dropout": 1.0}, r"dropout must be in \[0, 1\)"),
            ({"normalization": "relu"}, "normalization must be one of"),
        ],
        errors=[((np.ones((2, 3, 6), "float32"),) * 2, "takes a query alone")],
        skip={"saved_model": "attention's parts, of which TransformerBlock has it"}
        if normalization == "softmax_plus"
        else OTHERS,
        lengths=(1, 3, 5),
    )


def test_cross_attention():
    check_layer(
        layers.GatedAttentionUnit,
        {"intermediate_dim": 10, "key_dim": 4, "self_attention": False, "use_bias": False},
        lambda batch, length: (x(batch, 3), x(batch, length), x(batch, length)),
        padding=hidden,
        errors=[(np.ones((2, 3, 6), "float32"), "takes a query and a key")],
        skip=OTHERS | {"causal": "the keys are another text"},
        lengths=(1, 3, 5),
    )


def test_weights_by_hand():
    scores = np.array([[1.0, -1.0, 2.0]])  # one query, three keys, the last hidden
    query, key = np.ones((1, 1, 1, 1)), scores.reshape(1, 3, 1, 1)
    seen = np.array([[True, True, False]])[None, None]
    call = lambda kind, mask: array(
        dot_product_attention(query, key, key, attention_mask=mask, scale=1.0, normalization=kind)[
            1
        ]
    )[0, 0, 0]
    np.testing.assert_allclose(call("squared_relu", seen), [0.5, 0, 0], atol=1e-6)
    np.testing.assert_allclose(call("squared_relu", None), [1 / 3, 0, 4 / 3], atol=1e-6)
    sharp = np.log(16) / np.log(512)
    expected = np.exp(sharp * scores[0]) / np.exp(sharp * scores[0]).sum()
    np.testing.assert_allclose(call("softmax_plus", None), expected, atol=1e-6)
    for kind in ("squared_relu", "softmax_plus"):
        assert not call(kind, np.zeros((1, 1, 1, 3), bool)).any()


def test_keras_masks_hide_keys():
    layer, inputs = layers.GatedAttentionUnit(10, 4), x(2, 5)
    real = np.array([[True] * 3 + [False] * 2, [True] * 5])
    expected = array(layer(inputs, attention_mask=masks.keys(real)))
    masked = keras.layers.Masking()(np.where(real[..., None], inputs, 0))
    output = layer(masked)
    np.testing.assert_allclose(array(output)[real], expected[real], atol=1e-6)
    np.testing.assert_array_equal(array(output._keras_mask), real)
