"""Attention against float64 numpy, and the rows of numbers on which others went wrong."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.ops import masks
from kerasattn.ops.attention import as_mask, dot_product_attention
from kerasattn.ops.compiled import compiled

RANDOM = np.random.default_rng(0)
DTYPES = ["float32", "float16", "bfloat16"]


def array(x):
    return np.asarray(ops.convert_to_numpy(ops.cast(x, "float32")))


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def by_formula(query, key, value, mask=None, bias=0.0, scale=None, previous=0.0):
    """softmax(q k^T scale + bias) v in float64; rows without a key are zero."""
    query, key, value = (x.astype("float64").transpose(0, 2, 1, 3) for x in (query, key, value))
    groups = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, groups, axis=1), np.repeat(value, groups, axis=1)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.swapaxes(-1, -2) * scale + bias + previous
    visible = np.broadcast_to(True if mask is None else mask, scores.shape)
    weights = np.where(visible, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
    weights = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    return (weights @ value).transpose(0, 2, 1, 3), weights, scores


@pytest.mark.parametrize("groups", [6, 3, 2, 1])
def test_equals_the_formula(groups):
    """Grouped heads, more keys than queries, wider values, mask, bias and scores from below."""
    query, key, value = normal(2, 4, 6, 5), normal(2, 7, groups, 5), normal(2, 7, groups, 3)
    mask = RANDOM.random((2, 6, 4, 7)) < 0.6
    bias, previous = normal(1, 6, 4, 7), normal(2, 6, 4, 7)
    found = dot_product_attention(
        query, key, value, attention_mask=mask, bias=bias, scale=0.7, previous_scores=previous
    )
    expected = by_formula(query, key, value, mask, bias, 0.7, previous)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(array(ours), theirs, atol=2e-6)
    for ours, theirs in zip(
        dot_product_attention(query, key, value), by_formula(query, key, value), strict=True
    ):
        np.testing.assert_allclose(array(ours), theirs, atol=2e-6)


def test_scores_are_scaled_before_the_softmax():
    """Scores 112 and 96 of heads 64 wide are 14 and 12: weights 0.88 and 0.12, not 1 and 0."""
    query, key, value = (np.zeros((1, n, 1, 64), "float32") for n in (1, 2, 2))
    query[..., 0] = 1
    key[0, :, 0, 0] = 112, 96
    _, weights, scores = dot_product_attention(query, key, value)
    np.testing.assert_allclose(array(scores).ravel(), [14, 12], atol=1e-5)
    np.testing.assert_allclose(array(weights).ravel(), [0.8808, 0.1192], atol=1e-4)
    _, unscaled, _ = dot_product_attention(query, key, value, scale=1.0)
    np.testing.assert_allclose(array(unscaled).ravel(), [1, 0], atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "mask, expected",
    [
        ([1, 1, 0], [0.26894, 0.73106, 0]),
        ([1, 1, 1], [0.0900, 0.2447, 0.6652]),
        ([0, 0, 0], [0] * 3),
    ],
)
def test_c3_masks_in_half_precision(dtype, mask, expected):
    query = ops.ones((1, 1, 1, 1), dtype)
    key = ops.cast(np.array([1, 2, 3]).reshape(1, 3, 1, 1), dtype)
    value = ops.cast(np.eye(3).reshape(1, 3, 1, 3), dtype)
    output, weights, scores = dot_product_attention(
        query, key, value, attention_mask=np.array([[mask]], "bool"), scale=1.0
    )
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"
    np.testing.assert_allclose(array(weights).ravel(), expected, atol=1e-4)
    np.testing.assert_allclose(
        array(output).ravel(), expected, atol=1e-3 if dtype != "bfloat16" else 4e-3
    )


@pytest.mark.parametrize("scale", [None, 1.0])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_does_not_overflow(dtype, scale):
    """Queries and keys whose product is past float16's 65,504, scaled (T5: not at all) or not."""
    x = ops.cast(np.full((1, 3, 1, 64), 40.0), dtype)  # 64 * 40 * 40 = 102,400; scaled 12,800
    output, weights, scores = dot_product_attention(
        x, x, x, attention_mask=masks.causal(np.ones((1, 3))), scale=scale
    )
    np.testing.assert_allclose(array(scores), 102_400 * (scale or 1 / 8))
    assert np.isfinite(array(output)).all()
    np.testing.assert_allclose(
        array(weights)[0, 0], np.tril(np.ones((3, 3))) / [[1], [2], [3]], atol=1e-5
    )


def test_scores_of_any_size_stay_finite():
    x = np.array([1e9, -1e9, 0.0], "float32").reshape(1, 3, 1, 1) * np.ones(4, "float32")
    mask = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1]], "bool")
    output, weights, _ = dot_product_attention(x, x, np.ones_like(x), attention_mask=mask)
    assert np.isfinite(array(output)).all()
    np.testing.assert_allclose(array(weights).sum(-1), [[[1, 0, 1]]], atol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_compiled_equals_eager(jit):
    query, key = normal(2, 4, 4, 6), normal(2, 4, 2, 6)
    mask = array(masks.causal(query[..., 0, 0])).astype(bool)
    call = compiled(lambda q, k, m: dot_product_attention(q, k, k, attention_mask=m), jit=jit)
    for ours, eager in zip(
        call(query, key, mask),
        dot_product_attention(query, key, key, attention_mask=mask),
        strict=True,
    ):
        np.testing.assert_allclose(array(ours), array(eager), atol=1e-6)


def test_dropout_is_of_the_weights_and_keeps_their_mean():
    query, value = normal(1, 2, 1, 4), np.ones((1, 50, 1, 1), "float32")
    key = np.zeros((1, 50, 1, 4), "float32")
    seeds = keras.random.SeedGenerator(3)
    outputs = [
        dot_product_attention(query, key, value, dropout=0.4, seed=seeds)[:2] for _ in range(60)
    ]
    mixed = np.array([array(output).ravel() for output, _ in outputs])
    # Each sums 50 weights of 1/50, kept with p = 0.6 and divided by it: variance 0.4 / 0.6 / 50.
    assert abs(mixed.mean() - 1) < 4 * np.sqrt(0.4 / 0.6 / 50 / mixed.size)
    assert abs(mixed.std() - np.sqrt(0.4 / 0.6 / 50)) < 0.03
    np.testing.assert_allclose(array(outputs[0][1]), 0.02, atol=1e-6)  # returned before dropout


# === Masks as they are given ===


def test_a_mask_may_be_of_rank_2_3_or_4():
    scores = (2, 3, 4, 5)
    square = RANDOM.random((4, 5)) < 0.5
    for given in (square, square[None], square[None, None], np.stack([square] * 2)):
        mask = array(as_mask(given, scores)).astype(bool)
        np.testing.assert_array_equal(
            np.broadcast_to(mask, scores), np.broadcast_to(square, scores)
        )
    rows = RANDOM.random((2, 4, 5)) < 0.5
    np.testing.assert_array_equal(array(as_mask(rows, scores)).astype(bool), rows[:, None])


@pytest.mark.parametrize(
    "mask, message",
    [
        (np.ones((4, 5), "int32"), r"takes booleans.*got the dtype int32\. Compare first"),
        (np.ones((4, 5), "float32"), "got the dtype float32"),
        (np.ones((5,), "bool"), r"\(query, key\).*got the shape \(5,\)"),
        (np.ones((2, 1, 1, 4, 5), "bool"), r"got the shape \(2, 1, 1, 4, 5\)"),
        (np.ones((4, 6), "bool"), r"= \(2, 3, 4, 5\); got the shape \(4, 6\)"),
        (np.ones((2, 5), "bool"), r"got the shape \(2, 5\)"),  # a padding mask
        (np.ones((2, 2, 4, 5), "bool"), r"got the shape \(2, 2, 4, 5\)"),
    ],
)
def test_masks_that_cannot_be_read(mask, message):
    query, key = normal(2, 4, 3, 6), normal(2, 5, 3, 6)
    with pytest.raises(ValueError, match=message):
        dot_product_attention(query, key, key, attention_mask=mask)


@pytest.mark.parametrize("batched", [False, True])
def test_relative_keys_and_values(batched):
    """Equations 3 and 4 of arXiv:1803.02155, term by term in float64."""
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=(2, n, 3, 4)) for n in (5, 6, 6))
    shape = (2, 5, 6, 4) if batched else (5, 6, 4)
    relative_keys, relative_values = rng.normal(size=shape), rng.normal(size=shape)
    mask = rng.random((2, 1, 5, 6)) < 0.7
    output, weights, _ = dot_product_attention(
        *(x.astype("float32") for x in (query, key, value)),
        attention_mask=mask,
        relative_keys=relative_keys.astype("float32"),
        relative_values=relative_values.astype("float32"),
    )
    output, weights = (np.asarray(ops.convert_to_numpy(x)) for x in (output, weights))
    every_key, every_value = (
        np.broadcast_to(x, (2, 5, 6, 4)) for x in (relative_keys, relative_values)
    )
    for b, h, i in np.ndindex(2, 3, 5):
        seen = mask[b, 0, i]
        if not seen.any():
            np.testing.assert_array_equal(output[b, i, h], 0)
            continue
        scores = np.array([query[b, i, h] @ (key[b, j, h] + every_key[b, i, j]) for j in range(6)])
        expected = np.where(seen, np.exp(scores / 2), 0)
        expected /= expected.sum()
        np.testing.assert_allclose(weights[b, h, i], expected, atol=1e-5)
        mixed = sum(expected[j] * (value[b, j, h] + every_value[b, i, j]) for j in range(6))
        np.testing.assert_allclose(output[b, i, h], mixed, atol=1e-5)
