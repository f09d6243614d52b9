"""Heads: what they compute, and what every layer passes."""

import keras
import numpy as np
import pytest

from kerasattn import heads
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def dense(layer, x):
    """In float64, from the layer's weights."""
    kernel, bias = (array(weight).astype("float64") for weight in (layer.kernel, layer.bias))
    return x @ kernel + bias


def test_pooler():
    x, pooler = normal(2, 5, 8), heads.Pooler()
    found = array(pooler(x))
    np.testing.assert_allclose(found, np.tanh(dense(pooler.dense, x[:, 0])), atol=1e-6)


def test_classification():
    x = normal(2, 5, 8)
    each = heads.Classification(3)
    found = array(each(x))
    np.testing.assert_allclose(found, dense(each.output_dense, x), atol=1e-6)
    first = heads.Classification(3, activation="relu", first=True)
    found = array(first(x))
    inner = np.maximum(dense(first.inner_dense, x[:, 0]), 0)
    np.testing.assert_allclose(found, dense(first.output_dense, inner), atol=1e-6)
    with pytest.raises(ValueError, match="num_classes must be at least 1, got 0"):
        heads.Classification(0)


def test_dropout_comes_before_both_dense_layers():
    head = heads.Classification(3, activation="linear", dropout=0.5, seed=1)
    x = np.ones((1, 400), "float32")
    head(x)
    head.inner_dense.kernel.assign(np.eye(400))
    head.output_dense.kernel.assign(np.ones((400, 3)) / 400)
    kept = array(head(x, training=True))[0, 0] / 4  # each dropout doubles what it keeps
    assert 0.15 < kept < 0.35
    assert array(head(x))[0, 0] == pytest.approx(1)


def test_span_and_detection():
    x, span, detection = normal(2, 5, 8), heads.Span(), heads.TokenDetection(activation="gelu")
    start, end = span(x)
    both = dense(span.output_dense, x)
    np.testing.assert_allclose(array(start), both[..., 0], atol=1e-6)
    np.testing.assert_allclose(array(end), both[..., 1], atol=1e-6)
    assert array(detection(x)).shape == (2, 5)


@pytest.mark.parametrize(
    "make, config, skip",
    [
        (
            heads.Pooler,
            dict(activation="relu"),
            {"padding": "reads the first token", "causal": "gives one vector"},
        ),
        (
            heads.Classification,
            dict(num_classes=3, activation="tanh", first=True, dropout=0.1, seed=1),
            {"padding": "reads the first token", "causal": "gives one vector"},
        ),
        (
            heads.Classification,
            dict(num_classes=3, activation="gelu", dropout=0.1, seed=1),
            dict.fromkeys(("config", "precision"), "that of the first token has it"),
        ),
        (heads.Span, dict(dropout=0.1, seed=1), {"precision": "Classification has it"}),
        (
            heads.TokenDetection,
            dict(activation="tanh", dropout=0.1, seed=1),
            {"precision": "Classification has it"},
        ),
    ],
)
def test_layers(make, config, skip):
    check_layer(
        make,
        config,
        lambda batch, length: normal(batch, length, 8),
        lengths=(1, 4),
        skip={
            **skip,
            "errors": "it takes any vectors",
            "jit": "two dense layers",
            "saved_model": "two dense layers",
            "save": "two dense layers",
        },
    )
