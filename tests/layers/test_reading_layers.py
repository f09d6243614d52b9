"""The layers of classic readers: what every layer passes, and masks."""

import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
CHEAP = {"save": "its model is saved by its own test", "saved_model": "its model's test has it"}


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def x(batch, length):
    return RANDOM.normal(size=(batch, length, 4)).astype("float32")


def test_attention_pooling():
    check_layer(
        layers.AttentionPooling,
        {"units": 3},
        x,
        padding=lambda real: {"padding_mask": real},
        call={"return_weights": True},
        errors=[
            (np.ones((2, 4), "float32"), r"\(..., length, dim\)"),
            ((x(2, 3), np.ones((2, 3), "int32")), "takes booleans"),
            ((x(2, 3), np.ones((2, 4), bool)), "of the shape"),
        ],
        config_errors=[({"units": 0}, "at least 1")],
        skip={"causal": "pools all", "save": CHEAP["save"]},
        lengths=(1, 3, 4),
    )


def test_attention_pooling_by_hand_and_without_anything():
    layer, vectors = layers.AttentionPooling(3), x(2, 3)
    mask = np.array([[True, True, False], [False] * 3])
    pooled, weights = map(array, layer(vectors, padding_mask=mask, return_weights=True))
    kernel, bias, vector = map(array, layer.get_weights()[1:] + layer.get_weights()[:1])
    scores = (np.tanh(vectors[0] @ kernel + bias) @ vector)[:2, 0]
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(weights, [[*expected, 0], [0] * 3], atol=1e-6)
    np.testing.assert_allclose(pooled[0], expected @ vectors[0, :2], atol=1e-6)
    assert not pooled[1].any()
    masked = keras.layers.Masking()(np.where(mask[..., None], vectors, 0))
    np.testing.assert_allclose(array(layer(masked)), pooled, atol=1e-6)
    documents = x(6, 3).reshape(2, 3, 3, 4)  # of sentences of words
    np.testing.assert_allclose(array(layer(documents))[1], array(layer(documents[1])), atol=1e-6)
    whole = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_allclose(array(layer(whole)), array(layer(whole * 1.0)), rtol=1e-5)


def masks_of_both(real):
    return {"document_mask": real, "query_mask": np.ones((len(real), 3), bool)}


def test_attention_over_attention():
    check_layer(
        layers.AttentionOverAttention,
        {},
        lambda batch, length: (x(batch, length), x(batch, 3)),
        padding=masks_of_both,
        errors=[
            ((x(2, 3), np.ones((2, 3, 5), "float32")), "one dim"),
            ((x(2, 3), x(2, 2), np.ones((2, 3))), "document_mask takes booleans"),
        ],
        skip={"causal": "reads all", **CHEAP},
        lengths=(1, 4),
    )


def test_bidirectional_attention_flow():
    check_layer(
        layers.BidirectionalAttentionFlow,
        {},
        lambda batch, length: (x(batch, length), x(batch, 3)),
        padding=lambda real: {"context_mask": real, "query_mask": np.ones((len(real), 3), bool)},
        errors=[((x(2, 3), np.ones((2, 3, 5), "float32")), "one dim")],
        skip={"causal": "reads all", **CHEAP},
        lengths=(1, 4),
    )


def test_highway():
    check_layer(
        layers.Highway,
        {"activation": "tanh", "gate_bias": 0.5},
        x,
        skip={"errors": "Keras' own", **CHEAP},
        lengths=(1, 4),
    )
    layer = layers.Highway("relu", gate_bias=-2.0)
    given = x(1, 2)
    found, (kernel, bias) = array(layer(given)), layer.get_weights()
    np.testing.assert_array_equal(bias, [0] * 4 + [-2] * 4)
    gate = 1 / (1 + np.exp(-(given @ kernel[:, 4:] - 2)))
    expected = gate * np.maximum(given @ kernel[:, :4], 0) + (1 - gate) * given
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sentence_wise():
    check_layer(
        layers.SentenceWise,
        lambda: {"layer": keras.layers.GRU(3, return_sequences=True)},
        lambda batch, length: x(batch * length, 2).reshape(batch, length, 2, 4),
        errors=[(x(2, 3), r"\(batch, sentences, words, dim\)")],
        skip={"precision": "the layer inside has its own policy", "causal": "by sentence", **CHEAP},
        lengths=(1, 3),
    )
    gru = keras.layers.GRU(3, return_sequences=True)
    layer, documents = layers.SentenceWise(gru), x(6, 3).reshape(2, 3, 3, 4)
    mask = np.arange(3) < np.array([[[3], [1], [0]], [[2], [2], [3]]])
    found = array(layer(documents, padding_mask=mask))
    np.testing.assert_allclose(
        found[0, 1, 0], array(gru(documents[0, 1][None, :1]))[0, 0], atol=1e-6
    )
    assert not found[0, 2].any()


def test_doubly_stochastic():
    layer = layers.DoublyStochastic(weight=0.5)
    weights = RANDOM.random((2, 3, 4)).astype("float32")
    real = np.arange(3) < [[3], [2]]
    np.testing.assert_array_equal(array(layer(weights, padding_mask=real)), weights)
    sums = [weights[0].sum(axis=0), weights[1, :2].sum(axis=0)]
    expected = 0.5 * np.mean([np.sum((1 - s) ** 2) for s in sums])
    np.testing.assert_allclose(float(layer.losses[0]), expected, rtol=1e-6)
    check_layer(
        layers.DoublyStochastic,
        {"weight": 0.5},
        x,
        config_errors=[({"weight": -1.0}, "not negative")],
        skip={"jit": "the model's test has it", **CHEAP},
        lengths=(1, 3),
    )


def test_reinforce_loss_keeps_a_moving_mean():
    layer = layers.ReinforceLoss(baseline_decay=0.5, reward_weight=2.0, entropy_weight=0.1)
    log_probs, entropies = -RANDOM.random((2, 2, 3))
    counts = np.array([[True, True, False], [True] * 3])
    for rewards, baseline in (([1.0, 3.0], 2.0), ([4.0, 8.0], 2.0), ([0.0, 1.0], (1 + 6) / 1.5)):
        rewards = np.array(rewards)
        layer(rewards, log_probs, entropies, counts, training=True)
        terms = 2 * (rewards - baseline)[:, None] * log_probs + 0.1 * entropies
        expected = -np.mean(np.sum(terms * counts, axis=1))
        np.testing.assert_allclose(float(layer.losses[-1]), expected, rtol=1e-5)
    before = layer.get_weights()
    layer(rewards, log_probs, entropies)
    assert not layer.losses and layer.get_weights() == before
    for bad in ({"baseline_decay": 1.0}, {"reward_weight": -1.0}, {"entropy_weight": np.inf}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            layers.ReinforceLoss(**bad)
