import keras
import numpy as np
import pytest

import kerasattn.layers as layers
from kerasattn.training import callbacks


def autoencoder():
    inputs = keras.Input((6,))
    mean = keras.layers.Dense(3, name="mean")(inputs)
    log_var = keras.layers.Dense(3, name="log_var")(inputs)
    z = layers.GaussianSampling(name="sampling", seed=0)(mean, log_var)
    model = keras.Model(inputs, keras.layers.Dense(6)(z))
    model.compile("adam", "mse", run_eagerly=False, jit_compile=False)
    return model


X = np.random.default_rng(0).standard_normal((32, 6)).astype("float32")


class Record(keras.callbacks.Callback):
    """Keeps the weight at each step: first in line after AnnealWeight."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_begin(self, batch, logs=None):
        self.seen.append(float(self.model.get_layer("sampling").kl_weight))


def fit(model, callback, epochs, initial_epoch=0):
    record = Record()
    history = model.fit(
        X,
        X,
        batch_size=8,
        epochs=epochs,
        initial_epoch=initial_epoch,
        verbose=0,
        callbacks=[callback, record],
    )
    return record.seen, history.history


@pytest.mark.skipif(
    keras.backend.backend() == "jax",
    reason="on JAX variables can't be read between steps; test_gaussian_sampling sees the loss",
)
def test_warm_up_is_linear_and_goes_on_after_a_resume(tmp_path):
    model = autoencoder()
    layer = model.get_layer("sampling")
    anneal = callbacks.AnnealWeight(steps=10, start=0.1, end=0.6, layers=layer)
    seen, history = fit(model, anneal, epochs=2)
    np.testing.assert_allclose(seen, 0.1 + 0.05 * np.arange(8), rtol=1e-5)
    np.testing.assert_allclose(history["kl_weight"], [0.25, 0.45], rtol=1e-5)  # the last ones
    assert float(layer.kl_weight) == pytest.approx(0.45)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    again = callbacks.AnnealWeight(steps=10, start=0.1, end=0.6)
    seen, _ = fit(loaded, again, epochs=4, initial_epoch=2)
    np.testing.assert_allclose(seen, np.minimum(0.6, 0.1 + 0.05 * np.arange(8, 16)), rtol=1e-5)


def test_cycles():
    anneal = callbacks.AnnealWeight(steps=8, end=2.0, cycles=2, ramp=0.5)
    cycle = [0, 0.5, 1, 1.5, 2, 2, 2, 2]
    assert [anneal.value(step) for step in range(20)] == cycle + cycle + [2.0] * 4


def test_models_without_such_a_layer():
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(6, name="dense")])
    model.compile("sgd", "mse", jit_compile=False)
    with pytest.raises(ValueError, match=r"Expected layers with a variable `kl_weight`.*dense"):
        model.fit(X, X, verbose=0, callbacks=[callbacks.AnnealWeight(steps=4)])
    with pytest.raises(ValueError, match="Expected layers with a variable `codebook`"):
        model.fit(X, X, verbose=0, callbacks=[callbacks.CodeUsage()])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"steps": 0}, "steps and cycles must be at least 1"),
        ({"steps": 5, "cycles": 0}, "steps and cycles must be at least 1"),
        ({"steps": 5, "start": -1.0}, "start and end must not be negative"),
        ({"steps": 5, "ramp": 0.0}, "ramp must be above 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        callbacks.AnnealWeight(**arguments)
