import keras
import numpy as np
import pytest

import kerasattn.layers as layers
from kerasattn.ops import vmf


def unit(*shape, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_inference_is_the_mean_direction_itself():
    mean = unit(3, 5, 16)
    np.testing.assert_array_equal(layers.VonMisesFisherSampling(32.0)(mean), mean)


@pytest.mark.parametrize("shape", [(16,), (8, 16), (2, 3, 16), (2, 0, 4), (2, 1, 3, 2)])
def test_draws_of_any_rank_have_unit_norm(shape):
    z = layers.VonMisesFisherSampling(32.0, seed=1)(unit(*shape), training=True)
    assert tuple(z.shape) == shape
    np.testing.assert_allclose(np.linalg.norm(np.asarray(z), axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("kappa", [0.0, 32.0, 1e4])
def test_mixed_precision(policy, kappa):
    mean = unit(2000, 16)
    z = layers.VonMisesFisherSampling(kappa, seed=1, dtype=policy)(mean, training=True)
    assert keras.backend.standardize_dtype(z.dtype) == policy.removeprefix("mixed_")
    z = np.asarray(keras.ops.cast(z, "float32"))
    np.testing.assert_allclose(np.linalg.norm(z, axis=-1), 1, atol=1e-2)
    w = np.sum(z * mean, axis=-1)
    expected = vmf.mean_resultant_length(16, kappa)
    assert w.mean() == pytest.approx(expected, abs=0.01 + 4 * float(w.std()) / 2000**0.5)


def build_model():
    inputs = keras.Input((8,))
    return keras.Model(inputs, layers.VonMisesFisherSampling(5.0, seed=3)(inputs))


def test_seeds_repeat():
    mean, first, second = unit(4, 8), build_model(), build_model()
    draws = [np.asarray(first(mean, training=True)) for _ in range(2)]
    assert np.abs(draws[0] - draws[1]).max() > 0.05
    for draw in draws:
        np.testing.assert_array_equal(second(mean, training=True), draw)
    # The state is among the variables, so that a checkpoint can hold it and draws go on.
    third = build_model()
    for old, new in zip(first.variables, third.variables, strict=True):
        new.assign(old)
    np.testing.assert_array_equal(third(mean, training=True), first(mean, training=True))


def test_round_trip(tmp_path):
    model, mean = build_model(), unit(4, 8)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].get_config() == model.layers[-1].get_config()
    np.testing.assert_array_equal(loaded(mean), model(mean))
    np.testing.assert_array_equal(loaded(mean, training=True), model(mean, training=True))


def test_trains_the_layer_before_it():
    # Targets of the mean direction e1: the projection learns to point there.
    inputs = keras.Input((4,))
    x = keras.layers.Dense(8, name="projection")(inputs)
    x = keras.layers.UnitNormalization()(x)
    outputs = layers.VonMisesFisherSampling(32.0, seed=0)(x)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Adam(0.1), "mse", jit_compile=True)
    x, y = np.ones((64, 4), "float32"), np.eye(1, 8, dtype="float32").repeat(64, axis=0)
    before = model.layers[1].get_weights()[0]
    losses = model.fit(x, y, epochs=8, batch_size=16, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses))
    assert np.abs(model.layers[1].get_weights()[0] - before).max() > 0.1
    assert np.asarray(model(x))[0, 0] > 0.95


def test_the_table_is_small_and_not_a_weight():
    layer = layers.VonMisesFisherSampling(32.0)
    layer(unit(2, 16))
    assert layer.weights == [] and layer.radii.nbytes <= 40_000


def test_kl_is_a_constant_of_the_dimension():
    assert layers.VonMisesFisherSampling(0.0).kl(16) == 0
    assert layers.VonMisesFisherSampling(32.0).kl(16) == pytest.approx(
        43.75 / 4 * np.log(2), abs=1e-3
    )


@pytest.mark.parametrize("kappa", [-1.0, float("nan"), float("inf"), None, "32"])
def test_bad_kappa(kappa):
    with pytest.raises(ValueError, match="kappa must be a finite number"):
        layers.VonMisesFisherSampling(kappa)


def test_bad_dim():
    with pytest.raises(ValueError, match="at least 2"):
        layers.VonMisesFisherSampling(1.0)(np.ones((3, 1), "float32"))
    with pytest.raises(ValueError, match="at least 2"):
        layers.VonMisesFisherSampling(1.0)(keras.Input((None,)))
