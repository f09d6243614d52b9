"""Extended optimizers against their formulas, in float64 numpy."""

import keras
import numpy as np
import pytest

from kerasattn.compat.bert4keras import optimizers
from kerasattn.compat.bert4keras.optimizers import (
    AdaFactor,
    Adam,
    extend_with_exponential_moving_average,
    extend_with_gradient_accumulation,
    extend_with_layer_adaptation,
    extend_with_lazy_optimization,
    extend_with_lookahead,
    extend_with_parameter_wise_lr,
    extend_with_piecewise_linear_lr,
    extend_with_weight_decay,
)

START, GRADIENT = {"dense": 2.0, "Norm": -1.0}, 0.3


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def run(optimizer, steps, jit_compile=False):
    """Weights at paths dense/kernel and Norm/kernel after steps of the gradient GRADIENT."""
    inputs = keras.Input((1,))
    constant = lambda name: keras.layers.Dense(
        1, kernel_initializer=keras.initializers.Constant(START[name]), use_bias=False, name=name
    )
    model = keras.Model(inputs, constant("dense")(inputs) + constant("Norm")(inputs))
    # The loss is GRADIENT times the sum of both weights.
    loss = lambda y_true, y_pred: GRADIENT * y_pred
    model.compile(optimizer, loss=loss, jit_compile=jit_compile)
    ones = np.ones((steps, 1), "float32")
    model.fit(ones, ones, batch_size=1, verbose=0)
    return model, [float(array(w).item()) for w in model.trainable_weights]


@pytest.mark.parametrize("bias_correction", [True, False])
def test_adam(bias_correction):
    _, weights = run(Adam(0.1, epsilon=0.01, bias_correction=bias_correction), 4)
    m = v = moved = 0.0
    for step in range(1, 5):
        m, v = 0.9 * m + 0.1 * GRADIENT, 0.999 * v + 0.001 * GRADIENT**2
        corrections = (1 - 0.9**step, 1 - 0.999**step) if bias_correction else (1, 1)
        moved += 0.1 * (m / corrections[0]) / (np.sqrt(v / corrections[1]) + 0.01)
    np.testing.assert_allclose(weights, [2.0 - moved, -1.0 - moved], rtol=1e-5)


def test_weight_decay_and_piecewise_rate():
    base = extend_with_weight_decay(keras.optimizers.SGD)
    optimizer = extend_with_piecewise_linear_lr(base, "SGDWLR")(
        0.1,
        weight_decay_rate=0.5,
        exclude_from_weight_decay=["Norm"],
        lr_schedule={2: 1, 4: 0.5},
    )
    _, weights = run(optimizer, 6)
    expected = [2.0, -1.0]
    for factor in (0, 0.5, 1, 0.75, 0.5, 0.5):
        rate = 0.1 * factor
        expected[0] = expected[0] * (1 - 0.5 * rate) - rate * GRADIENT
        expected[1] -= rate * GRADIENT
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_rates_of_weights():
    optimizer = extend_with_parameter_wise_lr(keras.optimizers.SGD)(
        0.1, paramwise_lr_schedule={"dense": 0.5, "kernel": 0.2}
    )
    _, weights = run(optimizer, 1)
    np.testing.assert_allclose(weights, [2 - 0.01 * GRADIENT, -1 - 0.02 * GRADIENT], rtol=1e-6)


def test_what_is_extended_later_changes_what_is_below():
    decayed = extend_with_weight_decay(keras.optimizers.SGD)
    options = dict(weight_decay_rate=0.5, paramwise_lr_schedule={"dense": 0.2})
    _, weights = run(extend_with_parameter_wise_lr(decayed)(0.1, **options), 1)
    steps = [0.1 * (GRADIENT + 0.5 * weight) for weight in START.values()]
    np.testing.assert_allclose(weights, [2 - 0.2 * steps[0], -1 - steps[1]], rtol=1e-6)
    scaled = extend_with_parameter_wise_lr(keras.optimizers.SGD)
    _, weights = run(extend_with_weight_decay(scaled)(0.1, **options), 1)
    expected = 2 - 0.2 * 0.1 * GRADIENT - 0.1 * 0.5 * 2
    np.testing.assert_allclose(weights, [expected, -1 - steps[1]], rtol=1e-6)


def test_steps_as_long_as_weights():
    base = extend_with_weight_decay(keras.optimizers.SGD)
    optimizer = extend_with_layer_adaptation(base)(
        0.1, weight_decay_rate=0.5, exclude_from_layer_adaptation=["Norm"]
    )
    _, weights = run(optimizer, 1)
    step = 0.1 * (GRADIENT - 0.5)  # of Norm, as it is
    np.testing.assert_allclose(weights, [2 - 0.1 * 2, -1 - step], rtol=1e-6)


def test_rows_without_a_gradient_stay():
    inputs = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(4, 2, name="table")(inputs)
    model = keras.Model(inputs, keras.ops.sum(embedded, axis=(1, 2)))
    lazy = extend_with_lazy_optimization(extend_with_weight_decay(Adam))
    model.compile(lazy(0.1, include_in_lazy_optimization=["^table"]), "mse", jit_compile=False)
    before = array(model.trainable_weights[0])
    for ids in ([0, 1], [1, 2]):
        model.fit(np.array([ids]), np.ones(1), verbose=0)
    moved = (array(model.trainable_weights[0]) != before).any(axis=1)
    assert moved.tolist() == [True, True, True, False]


def test_slow_weights():
    optimizer = extend_with_lookahead(keras.optimizers.SGD)(
        1.0, steps_per_slow_update=2, slow_step_size=0.5
    )
    _, weights = run(optimizer, 5)  # two steps ahead and one back, twice, and one ahead
    expected = [start - 3 * GRADIENT for start in START.values()]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_adafactor():
    _, weights = run(AdaFactor(0.01, epsilon2=1e-4), 1)
    # A step of one number is its sign: it is as large as the root of its mean square.
    np.testing.assert_allclose(weights, [2 - 0.01 * 2, -1 - 0.01], rtol=1e-5)
    again = AdaFactor.from_config(AdaFactor(None, clipping_threshold=2.0).get_config())
    assert (again.clip_threshold, again.relative_step) == (2.0, True)
    with pytest.raises(ValueError, match="beta1=0"):
        AdaFactor(beta1=0.9)


def test_accumulation():
    optimizer = extend_with_gradient_accumulation(keras.optimizers.SGD)(0.1, grad_accum_steps=3)
    assert run(optimizer, 2)[1] == [2.0, -1.0]
    optimizer = extend_with_gradient_accumulation(keras.optimizers.SGD)(0.1, grad_accum_steps=3)
    np.testing.assert_allclose(run(optimizer, 3)[1], [2 - 0.03, -1 - 0.03], rtol=1e-6)


def test_moving_average():
    optimizer = extend_with_exponential_moving_average(keras.optimizers.SGD)(1.0, ema_momentum=0.5)
    model, weights = run(optimizer, 3)
    np.testing.assert_allclose(weights[0], 2 - 3 * GRADIENT, rtol=1e-6)
    optimizer.apply_ema_weights()
    values = [2 - GRADIENT * n for n in (1, 2, 3)]
    average = 0.25 * values[0] + 0.25 * values[1] + 0.5 * values[2]
    np.testing.assert_allclose(array(model.trainable_weights[0]).item(), average, rtol=1e-6)
    optimizer.reset_old_weights()
    np.testing.assert_allclose(array(model.trainable_weights[0]).item(), weights[0], rtol=1e-6)


def test_all_of_them_saved_and_loaded(tmp_path):
    cls = Adam
    for extend in (
        extend_with_weight_decay,
        extend_with_layer_adaptation,
        extend_with_lazy_optimization,
        extend_with_lookahead,
        extend_with_parameter_wise_lr,
        extend_with_gradient_accumulation,
        extend_with_exponential_moving_average,
    ):
        cls = extend(cls)
    cls = extend_with_piecewise_linear_lr(cls, "AdamAll")
    optimizer = cls(
        learning_rate=0.01,
        weight_decay_rate=0.1,
        exclude_from_weight_decay=["Norm"],
        lr_schedule={2: 1, 4: 0.5},
        paramwise_lr_schedule={"dense": 0.5},
        exclude_from_layer_adaptation=["Norm"],
        include_in_lazy_optimization=["dense"],
        steps_per_slow_update=3,
        slow_step_size=0.7,
        grad_accum_steps=2,
        ema_momentum=0.9,
    )
    model, _ = run(optimizer, 4, jit_compile=True)
    model.compile(model.optimizer, loss="mse", jit_compile=False)  # a loss that can be saved
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer).__name__ == "AdamAll"
    assert loaded.optimizer.get_config() == optimizer.get_config()
    ones = np.ones((2, 1), "float32")
    for one in (model, loaded):
        one.fit(ones, ones, batch_size=1, verbose=0)
    for ours, theirs in zip(model.trainable_weights, loaded.trainable_weights):
        np.testing.assert_allclose(array(ours), array(theirs), rtol=1e-6)
    assert optimizers.Adam(0.5, bias_correction=False).get_config()["bias_correction"] is False
