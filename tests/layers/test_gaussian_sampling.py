import keras
import numpy as np
import pytest

import kerasattn.layers as layers
from kerasattn.training import callbacks


def autoencoder(**kwargs):
    inputs = keras.Input((6,))
    mean = keras.layers.Dense(3, name="mean")(inputs)
    log_var = keras.layers.Dense(3, name="log_var")(inputs)
    z = layers.GaussianSampling(name="sampling", **kwargs)(mean, log_var)
    return keras.Model(inputs, keras.layers.Dense(6, name="decoder")(z))


def data(rows=32):
    x = np.random.default_rng(0).standard_normal((rows, 6)).astype("float32")
    return x, x


@pytest.mark.parametrize("training", [True, False])
def test_adds_the_weighted_divergence(training):
    # C51: ones against a standard normal, 16 dimensions: 8 nats.
    layer = layers.GaussianSampling(kl_weight=0.25)
    z = layer(np.ones((4, 16)), np.zeros((4, 16)), training=training)
    assert float(layer.losses[0]) == pytest.approx(0.25 * 8.0)
    assert (np.abs(np.asarray(z) - 1).max() > 0.1) == training


@pytest.mark.parametrize("free_bits", [0.0, 0.5])
def test_rows_that_do_not_count_cost_nothing(free_bits):
    """The same as without them; and nothing where no row counts, but the free bits."""
    rng = np.random.default_rng(0)
    mean, log_var = rng.normal(size=(2, 4, 3)).astype("float32")
    rows = np.array([True, False, True, False])
    layer = layers.GaussianSampling(free_bits=free_bits)
    z = layer(mean, log_var, rows, training=True)
    found = float(layer.losses[0])
    layer(mean[rows], log_var[rows], training=True)
    assert found == pytest.approx(float(layer.losses[0]), rel=1e-5)
    assert tuple(z.shape) == (4, 3)
    layer(mean, log_var, np.zeros(4, bool), training=True)
    assert float(layer.losses[0]) == pytest.approx(3 * free_bits * np.log(2), abs=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("log_var", [0.0, 100.0, -100.0])
def test_mixed_precision_is_finite_and_the_loss_in_float32(policy, log_var):
    layer = layers.GaussianSampling(seed=0, dtype=policy)
    z = layer(np.ones((4, 16)), np.full((4, 16), log_var), training=True)
    assert keras.backend.standardize_dtype(z.dtype) == policy.removeprefix("mixed_")
    assert np.all(np.isfinite(np.asarray(keras.ops.cast(z, "float32"))))
    loss = layer.losses[0]
    assert keras.backend.standardize_dtype(loss.dtype) == "float32" and np.isfinite(float(loss))


def test_every_weight_trains_and_the_loss_has_the_divergence():
    model = autoencoder(seed=0, kl_weight=0.5)
    eager = keras.backend.backend() == "tensorflow"  # a graph takes longer than a step
    model.compile(keras.optimizers.Adam(1e-2), "mse", jit_compile=not eager, run_eagerly=eager)
    x, y = data()
    mean = model.get_layer("mean")(x)
    log_var = model.get_layer("log_var")(x)
    mean, log_var = np.asarray(mean, "float64"), np.asarray(log_var, "float64")
    kl = 0.5 * (mean**2 + np.exp(log_var) - 1 - log_var).sum(1).mean()
    error = np.mean((np.asarray(model(x)) - y) ** 2)
    assert model.evaluate(x, y, verbose=0) == pytest.approx(error + 0.5 * kl, rel=1e-4)
    before = [np.array(w) for w in model.trainable_weights]
    model.fit(x, y, epochs=1, verbose=0)
    assert all(np.abs(b - np.asarray(w)).max() > 0 for b, w in zip(before, model.trainable_weights))


def test_round_trip_keeps_config_and_weight(tmp_path):
    model = autoencoder(seed=4, free_bits=0.25, kl_weight=0.5)
    layer = model.get_layer("sampling")
    layer.kl_weight.assign(0.75)
    x, _ = data()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("sampling").get_config() == layer.get_config()
    assert float(loaded.get_layer("sampling").kl_weight) == 0.75
    expected = np.asarray(model(x, training=True))
    np.testing.assert_allclose(loaded(x, training=True), expected, atol=1e-6)


def test_the_annealed_weight_enters_the_compiled_loss():
    # A frozen model: the loss of a step is then error + weight * divergence.
    model = autoencoder(seed=0)
    model.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=True)
    x, y = data(8)

    class Record(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.seen = []

        def on_train_batch_end(self, batch, logs=None):
            self.seen.append(float(logs["loss"]))

    start = np.array(model.get_layer("sampling").seed_generator.state)
    record = Record()
    anneal = callbacks.AnnealWeight(steps=4)
    model.fit(x, y, epochs=6, shuffle=False, verbose=0, callbacks=[anneal, record])
    weight = np.array([0, 0.25, 0.5, 0.75, 1, 1])
    mean = np.asarray(model.get_layer("mean")(x), "float64")
    log_var = np.asarray(model.get_layer("log_var")(x), "float64")
    kl = 0.5 * (mean**2 + np.exp(log_var) - 1 - log_var).sum(1).mean()
    # The same rows with the same noise, without the divergence.
    layer = model.get_layer("sampling")
    layer.seed_generator.state.assign(start)
    layer.kl_weight.assign(0.0)
    plain = Record()
    model.fit(x, y, epochs=6, shuffle=False, verbose=0, callbacks=[plain])
    np.testing.assert_allclose(np.array(record.seen) - plain.seen, weight * kl, rtol=1e-3)


def test_bad_arguments():
    with pytest.raises(ValueError, match="free_bits must be finite and not negative"):
        layers.GaussianSampling(free_bits=-1.0)
    with pytest.raises(ValueError, match="kl_weight must be finite and not negative"):
        layers.GaussianSampling(kl_weight=float("nan"))
    with pytest.raises(ValueError, match="must have the same shape"):
        layers.GaussianSampling()(np.ones((2, 3)), np.ones((2, 4)))
