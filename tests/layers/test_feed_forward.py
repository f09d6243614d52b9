import keras
import numpy as np
import pytest
from scipy import special

from kerasattn.layers import FeedForward
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def x(batch, length, dim=6):
    return RANDOM.normal(size=(batch, length, dim)).astype("float32")


@pytest.mark.parametrize("gated", [False, True])
def test_layer(gated):
    check_layer(
        FeedForward,
        {
            "intermediate_dim": 10,
            "output_dim": 4,
            "gated": gated,
            "activation": "gelu_tanh",
            "dropout": 0.3,
        },
        x,
        config_errors=[
            ({"intermediate_dim": 0}, "at least 1, got intermediate_dim=0"),
            ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
            ({"activation": "gellu"}, "Unknown activation 'gellu'"),
        ],
        skip=dict.fromkeys(
            ("save", "jit", "saved_model"), "TransformerBlock, with it inside, has it"
        )
        | ({} if gated else dict.fromkeys(("config", "precision"), "the gated form has it")),
        lengths=(1, 4),
    )


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
def test_equals_two_convolutions_of_width_1(activation):
    inputs = x(2, 7)
    layer = FeedForward(10, 4, activation=activation)
    layer.build(inputs.shape)
    convolutions = keras.Sequential(
        [
            keras.layers.Conv1D(10, 1, activation=layer.activation),
            keras.layers.Conv1D(4, 1),
        ]
    )
    convolutions.build(inputs.shape)
    weights = [RANDOM.normal(size=w.shape) for w in layer.weights]
    layer.set_weights(weights)
    convolutions.set_weights([w[None] if w.ndim == 2 else w for w in weights])
    np.testing.assert_allclose(layer(inputs), convolutions(inputs), atol=1e-5)


def test_gated_formula():
    inputs = x(2, 3)
    layer = FeedForward(5, activation="gelu", gated=True)
    layer.build(inputs.shape)
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.weights])
    w = {v.path.split("/", 1)[1]: keras.ops.convert_to_numpy(v) for v in layer.weights}
    assert sorted(w) == [
        f"{part}/{name}"
        for part in ("gate", "intermediate", "output")
        for name in ("bias", "kernel")
    ]
    gate = inputs @ w["gate/kernel"] + w["gate/bias"]
    inner = gate * special.ndtr(gate) * (inputs @ w["intermediate/kernel"] + w["intermediate/bias"])
    expected = inner @ w["output/kernel"] + w["output/bias"]
    np.testing.assert_allclose(layer(inputs), expected, atol=1e-4)


def test_kernels_of_one_shape_differ():
    layer = FeedForward(5, gated=True, kernel_initializer=keras.initializers.TruncatedNormal())
    layer.build((None, 3, 6))
    assert np.abs(layer.gate.get_weights()[0] - layer.intermediate.get_weights()[0]).max() > 0.01


def test_dropout_only_in_training():
    layer = FeedForward(50, dropout=0.5)
    inputs = x(1, 2)
    np.testing.assert_array_equal(layer(inputs), layer(inputs))
    assert np.abs(np.asarray(layer(inputs, training=True) - layer(inputs))).max() > 1e-3


def test_callable_activation_and_no_bias():
    layer = FeedForward(5, activation=keras.ops.square, use_bias=False)
    inputs = x(1, 2)
    outputs = np.asarray(layer(inputs))
    first, second = layer.get_weights()
    np.testing.assert_allclose(outputs, np.square(inputs @ first) @ second, atol=1e-5)
