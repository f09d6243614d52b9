import numpy as np
import pytest

import kerasattn.layers as layers
from kerasattn.testing import check_layer


def unit(batch, length):
    x = np.random.default_rng().standard_normal((batch, length, 6)).astype("float32")
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_layer():
    check_layer(
        layers.PriorReplacement,
        {"prior_share": 0.5},
        unit,
        config_errors=[({"prior_share": 1.0}, "prior_share must be from 0 to below 1")],
        skip={"precision": "latents are float32 in every policy"},
    )


def test_replaces_some_latents_of_a_share_of_the_sentences():
    latents = np.zeros((20000, 4, 8), "float32")
    latents[..., 0] = 1
    z = np.asarray(layers.PriorReplacement(0.25, seed=0)(latents, training=True))
    np.testing.assert_allclose(np.linalg.norm(z, axis=-1), 1, atol=1e-5)
    replaced = np.any(z != latents, axis=-1)  # (sentences, layers)
    # Of a quarter of the sentences, each latent with even chance: 1 in 16 of them has none.
    assert replaced.any(axis=1).mean() == pytest.approx(0.25 * 15 / 16, abs=0.01)
    np.testing.assert_allclose(replaced.mean(axis=0), 0.125, atol=0.01)
    assert replaced.all(axis=1).mean() == pytest.approx(0.25 / 16, abs=0.004)
    draws = z[replaced]  # uniform: the mean is 0 and the covariance a multiple of the identity
    assert np.abs(draws.mean(axis=0)).max() < 0.02
    np.testing.assert_allclose(np.cov(draws.T), np.eye(8) / 8, atol=0.01)
