import keras
import numpy as np
import pytest

import kerasattn.layers as layers
from kerasattn.ops.isotropy import isotropy_divergence
from kerasattn.testing import check_layer
from kerasattn.training.callbacks import AnnealWeight


def unit(batch, length):
    x = np.random.default_rng().standard_normal((batch, length, 6)).astype("float32")
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_layer():
    check_layer(
        layers.IsotropyRegularization,
        {"isotropy_weight": 0.5},
        unit,
        config_errors=[
            ({"isotropy_weight": -1.0}, "isotropy_weight must be finite"),
        ],
        skip={"precision": "latents are float32 in every policy"},
    )


@pytest.mark.parametrize("training", [True, False])
def test_the_loss_counts_in_training_and_evaluation(training):
    """As those of the other latents do."""
    layer = layers.IsotropyRegularization(0.5)
    z, rows = unit(5, 3), np.array([True, True, False, True, True])
    layer(z, rows, training=training)
    cost = 0.5 * float(isotropy_divergence(z[rows]))
    assert float(layer.losses[0]) == pytest.approx(cost, abs=1e-5)


def test_spreads_what_stands_close_together():
    start = np.random.default_rng(0).standard_normal((64, 12)).astype("float32") + 3.0
    z = keras.layers.UnitNormalization()(keras.layers.Reshape((2, 6))(x := keras.Input((12,))))
    z = layers.IsotropyRegularization(1.0)(z)
    shift = keras.layers.Dense(12, kernel_initializer="identity")
    inputs = keras.Input((12,))
    model = keras.Model(inputs, keras.Model(x, z)(shift(inputs)))
    model.compile(keras.optimizers.Adam(0.05), jit_compile=False)
    model.compute_loss = lambda x, y, y_pred, sample_weight=None, training=True: sum(model.losses)
    before = float(isotropy_divergence(np.asarray(model(start))))
    guide = AnnealWeight(10, attribute="isotropy_weight")
    logs = model.fit(start, batch_size=64, epochs=60, verbose=0, callbacks=[guide]).history
    assert before > 3 and float(isotropy_divergence(np.asarray(model(start)))) < 0.3
    assert logs["isotropy_weight"][::5][:3] == [0.0, 0.5, 1.0]
