import keras
import numpy as np
import pytest
from scipy import special

from kerasattn.layers import LanguageModelHead, TokenEmbedding
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def hidden(batch, length):
    return RANDOM.normal(size=(batch, length, 6)).astype("float32")


def tied(dtype=None, activation="gelu", embedding_dim=None, **kwargs):
    embedding = TokenEmbedding(11, 6, embedding_dim=embedding_dim, dtype=dtype, name="tokens")
    return LanguageModelHead(embedding, activation=activation, dtype=dtype, **kwargs)


def test_layer_with_its_own_kernel():
    check_layer(
        LanguageModelHead,
        {"vocabulary_size": 11, "activation": "gelu"},
        hidden,
        config_errors=[({"vocabulary_size": None}, "Give either embedding")],
        skip=dict.fromkeys(("save", "precision", "saved_model"), "the tied head has it"),
        lengths=(1, 4),
    )


def test_tied_layer():
    check_layer(
        LanguageModelHead,
        lambda: {"embedding": TokenEmbedding(11, 6, name="tokens"), "activation": "gelu"},
        hidden,
        config_errors=[({"vocabulary_size": 11}, "Give either embedding")],
        skip=dict.fromkeys(("save", "jit", "saved_model"), "BERT, with it inside, has it"),
        lengths=(1, 4),
    )


def test_formula():
    head = tied(layer_norm_epsilon=1e-3, name="head")
    inputs = hidden(2, 3)
    head.build(inputs.shape)
    head.set_weights([RANDOM.normal(size=w.shape) for w in head.weights])
    w = {v.path: keras.ops.convert_to_numpy(v).astype("float64") for v in head.weights}
    assert set(w) == {
        "tokens/embeddings",
        "head/transform/kernel",
        "head/transform/bias",
        "head/norm/gamma",
        "head/norm/beta",
        "head/bias",
    }
    x = inputs @ w["head/transform/kernel"] + w["head/transform/bias"]
    x = x * special.ndtr(x)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    x = x * w["head/norm/gamma"] + w["head/norm/beta"]
    expected = x @ w["tokens/embeddings"].T + w["head/bias"]
    np.testing.assert_allclose(head(inputs), expected, atol=1e-4)


def test_transform_is_as_wide_as_a_factorized_table():
    head = tied(embedding_dim=2)
    assert tuple(head(hidden(2, 3)).shape) == (2, 3, 11)
    assert tuple(head.transform.kernel.shape) == (6, 2)
    with pytest.raises(
        ValueError, match="table is 2 wide, the input 6: give the head an activation"
    ):
        tied(embedding_dim=2, activation=None)(hidden(2, 3))


def test_one_position():
    head = tied()
    x = hidden(2, 3)
    np.testing.assert_allclose(head(x[:, 1]), head(x)[:, 1], atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("activation", ["gelu", None])
def test_logits_and_bias_are_float32(policy, activation):
    head = tied(policy, activation)
    x = keras.ops.cast(hidden(2, 3), head.compute_dtype)
    head.build(x.shape)
    head.bias.assign(np.full(11, 1 + 2.0**-20))  # lost in half precision
    head.embedding.embeddings.assign(np.zeros((11, 6)))
    logits = head(x)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    np.testing.assert_array_equal(logits, np.full((2, 3, 11), 1 + 2.0**-20, "float32"))


def test_needs_one_table():
    with pytest.raises(ValueError, match="Give either embedding"):
        LanguageModelHead()
    with pytest.raises(ValueError, match="Give either embedding"):
        LanguageModelHead(TokenEmbedding(11, 6), vocabulary_size=11)
