"""Gated convolutions against sums over places, and one place at a time."""

import numpy as np
import pytest
from keras import ops

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


@pytest.mark.parametrize("causal", [False, True])
def test_equals_its_sums(causal):
    layer, x = layers.GatedConvolution(5, kernel_size=3, causal=causal), normal(2, 6, 4)
    real = np.arange(6) < np.array([[6], [4]])
    found = array(layer(x, padding_mask=real))
    layer.convolution.bias.assign(normal(10))
    found = array(layer(x, padding_mask=real))
    kernel, bias = array(layer.convolution.kernel), array(layer.convolution.bias)
    places = (-2, -1, 0) if causal else (-1, 0, 1)
    for b, t in np.ndindex(2, 6):
        z = bias.astype("float64")
        for tap, place in enumerate(places):
            if 0 <= t + place < 6 and real[b, t + place]:
                z = z + x[b, t + place] @ kernel[tap]
        expected = z[:5] / (1 + np.exp(-z[5:]))
        np.testing.assert_allclose(found[b, t], expected, atol=1e-5)
    if causal:  # one at a time, after the inputs before it
        padded = np.pad(x, ((0, 0), (2, 0), (0, 0)))
        steps = [layer(x[:, t : t + 1], before=padded[:, t : t + 2]) for t in range(6)]
        steps = np.concatenate(list(map(array, steps)), axis=1)
        np.testing.assert_allclose(steps, array(layer(x)), atol=1e-5)


def test_what_comes_out_varies_as_what_goes_in():
    layer, x = layers.GatedConvolution(256, kernel_size=3, causal=True), normal(4, 64, 256)
    assert 0.9 < array(layer(x))[:, 2:].std() / x.std() < 1.3  # the paper's appendix: about 1


def test_gated_convolution():
    check_layer(
        layers.GatedConvolution,
        {"filters": 5, "kernel_size": 3, "causal": True, "dropout": 0.1},
        lambda batch, length: normal(batch, length, 4),
        padding=lambda real: {"padding_mask": real},
        errors=[(normal(2, 4), "x must be")],
        config_errors=[
            ({"filters": 0}, "filters"),
            ({"dropout": 1.0}, "dropout"),
            ({"kernel_size": 2, "causal": False}, "must be odd"),
        ],
    )
    layer = layers.GatedConvolution(3)
    x, real = normal(1, 4, 2), np.array([[True, True, False, False]])
    short, long = array(layer(x[:, :2])), array(layer(x, padding_mask=real))
    np.testing.assert_allclose(long[:, :2], short, atol=1e-6)
