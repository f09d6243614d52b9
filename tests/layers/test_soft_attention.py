"""Attention of recurrent and convolutional models against its formulas, written with numpy."""

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
LESS = {"save": "SoftAttention has it", "saved_model": "likewise", "precision": "likewise"}


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def weights_of(layer):
    return {weight.name: array(weight) for weight in layer.weights}


def see_all(batch, length):
    return np.tril(np.ones((batch, length, length), bool))


def expected_scores(layer, query, key):
    """By the formulas of the papers, a query and a key at a time."""
    w, score = weights_of(layer), layer.score
    rows = np.zeros((*query.shape[:2], key.shape[1]))
    for b, i, j in np.ndindex(rows.shape):
        q, k = query[b, i], key[b, j]
        if score == "dot":
            rows[b, i, j] = q @ k
        elif score == "scaled_dot":
            rows[b, i, j] = q @ k / np.sqrt(len(q))
        elif score == "bilinear":
            rows[b, i, j] = q @ w["kernel"] @ k
        elif score == "location":
            rows[b, i, j] = (q @ w["kernel"])[j]
        else:
            both = np.concatenate([w["query_kernel"], w["key_kernel"]])  # W of [q; k]
            rows[b, i, j] = w["vector"][:, 0] @ np.tanh(np.concatenate([q, k]) @ both)
    return rows


@pytest.mark.parametrize(
    "config",
    [
        {"score": "dot"},
        {"score": "scaled_dot"},
        {"score": "bilinear"},
        {"score": "additive", "units": 5},
        {"score": "concat"},
        {"score": "location", "max_length": 9},
    ],
    ids=lambda config: config["score"],
)
def test_scores_keys_apart_from_values_and_keys_projected_once(config):
    same = "dot" in config["score"]
    query, key, value = normal(2, 3, 4), normal(2, 5, 4 if same else 6), normal(2, 5, 7)
    mask = RANDOM.random((2, 3, 5)) < 0.6
    mask[0, 1] = False  # nothing to attend to
    layer = layers.SoftAttention(**config)
    mixed, weights = map(array, layer(query, value, key, attention_mask=mask, return_weights=True))
    found = expected_scores(layer, query, key)
    expected = np.where(mask, softmax(np.where(mask, found, -1e30)), 0)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(mixed, expected @ value, atol=1e-5)
    assert not mixed[0, 1].any()
    cache = layer.project_key_value(value, key)
    again = [
        layer(query[:, i : i + 1], cache=cache, attention_mask=mask[:, i : i + 1]) for i in range(3)
    ]
    np.testing.assert_allclose(np.concatenate(list(map(array, again)), axis=1), mixed, atol=1e-6)


def test_soft_attention():
    check_layer(
        layers.SoftAttention,
        {"score": "additive", "units": 5},
        lambda batch, length: (normal(batch, length, 4), normal(batch, length, 6)),
        call={"return_weights": True},
        padding=lambda real: {"attention_mask": real[:, None, :]},
        causal=lambda batch, length: {"attention_mask": see_all(batch, length)},
        errors=[((normal(2, 4), normal(2, 3, 4)), "query must be")],
        config_errors=[
            ({"score": "cosine"}, "score must be one of"),
            ({"units": 0}, "units must be at least 1"),
            ({"use_bias": True}, "use_bias is for"),
            ({"max_length": 4}, "max_length"),
            ({"score": "location"}, "max_length"),
        ],
    )
    with pytest.raises(ValueError, match="as wide as keys"):
        layers.SoftAttention("dot")(normal(1, 2, 3), normal(1, 2, 4))
    with pytest.raises(ValueError, match="There are 3 keys"):
        layers.SoftAttention("location", max_length=2)(normal(1, 3, 4))
    with pytest.raises(ValueError, match="takes booleans"):
        layers.SoftAttention()(normal(1, 3, 4), attention_mask=np.ones((1, 3, 3)))


def test_masks_that_keras_carries_hide_keys():
    embedding = keras.layers.Embedding(5, 4, mask_zero=True)
    layer = layers.SoftAttention()
    short, long = (array(layer(embedding(np.array([ids])))) for ids in ([1, 2], [1, 2, 0, 0]))
    np.testing.assert_allclose(long[:, :2], short, atol=1e-6)


@pytest.mark.parametrize("alignment", ["monotonic", "predictive"])
def test_local_attention_by_luongs_equations(alignment):
    layer = layers.LocalAttention("bilinear", alignment=alignment, window=2)
    query, value = normal(2, 4, 4), normal(2, 9, 6)
    real = np.arange(9) < np.array([[9], [6]])
    mask = {"attention_mask": real[:, None]}
    mixed, weights = map(array, layer(query, value, **mask, return_weights=True))
    found, w = expected_scores(layer, query, value), weights_of(layer)
    for b, t in np.ndindex(2, 4):
        length = real[b].sum()
        place = t
        if alignment == "predictive":
            hidden = np.tanh(query[b, t] @ w["place_kernel"]) @ w["place_vector"]
            place = length * sigmoid(hidden[0])
        near = [s for s in range(length) if abs(s - place) <= 2]
        expected = np.zeros(9)
        expected[near] = softmax(found[b, t, near])
        if alignment == "predictive":
            expected *= np.exp(-((np.arange(9) - place) ** 2) / (2 * 1.0**2))  # sigma = D / 2
        np.testing.assert_allclose(weights[b, t], expected, atol=1e-5)
        np.testing.assert_allclose(mixed[b, t], expected @ value[b], atol=1e-4)

    # Padding in front, and another row of mask for each query, count the same places.
    front = np.concatenate([normal(2, 3, 6), value], axis=1)
    more = {"attention_mask": np.repeat(np.pad(real, ((0, 0), (3, 0)))[:, None], 4, axis=1)}
    np.testing.assert_allclose(array(layer(query, front, **more)), mixed, atol=1e-5)
    # One query at a time, at its place.
    cache = layer.project_key_value(value)
    one = layer(query[:, 2:3], cache=cache, query_positions=np.array([[2]]), **mask)
    np.testing.assert_allclose(array(one), mixed[:, 2:3], atol=1e-5)


def test_local_attention():
    check_layer(
        layers.LocalAttention,
        {"score": "bilinear", "alignment": "predictive", "window": 3},
        lambda batch, length: (normal(batch, length, 4), normal(batch, length, 6)),
        padding=lambda real: {"attention_mask": real[:, None, :]},
        skip={**LESS, "causal": "the length that a place is a share of is that of all keys"},
        errors=[((normal(2, 4), normal(2, 3, 4)), "query must be")],
        config_errors=[
            ({"alignment": "global"}, "alignment must be one of"),
            ({"window": 0}, "window must be at least 1"),
        ],
    )
    # Behind the last key there is nothing to look at.
    layer = layers.LocalAttention("dot", alignment="monotonic", window=1)
    mixed = array(layer(normal(1, 5, 4), normal(1, 2, 4)))
    assert mixed[0, :3].all() and not mixed[0, 3:].any()


def test_multi_step_attention():
    hidden, target = normal(2, 3, 4), normal(2, 3, 6)
    value, source = normal(2, 5, 6), normal(2, 5, 6)
    real = np.arange(5) < np.array([[5], [2]])
    layer = layers.MultiStepAttention()
    layer.build(hidden.shape, target.shape)
    for weight in layer.weights:
        weight.assign(normal(*weight.shape))
    query, bias, output, output_bias = map(array, layer.weights)
    mixed = array(layer(hidden, target, value, source, attention_mask=real[:, None]))
    for b, i in np.ndindex(2, 3):
        length = real[b].sum()
        d = hidden[b, i] @ query + bias + target[b, i]
        weights = softmax(value[b, :length] @ d)
        c = weights @ (value + source)[b, :length]
        c = length * np.sqrt(1 / length) * c
        np.testing.assert_allclose(mixed[b, i], c @ output + output_bias, atol=2e-5)

    draw = lambda batch, length: tuple(normal(batch, length, d) for d in (4, 6, 6, 6))
    check_layer(
        layers.MultiStepAttention,
        {},
        draw,
        call={"return_weights": True},
        padding=lambda real: {"attention_mask": real[:, None, :]},
        causal=lambda batch, length: {"attention_mask": see_all(batch, length)},
        skip={"save": "SoftAttention has it", "saved_model": "likewise"},
        errors=[
            (tuple(normal(1, 2, d) for d in (4, 6, 5, 6)), "as wide as target"),
            ((normal(1, 4), *(normal(1, 2, 6) for _ in range(3))), "query must be"),
        ],
    )
