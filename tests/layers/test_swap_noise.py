import keras
import numpy as np
from keras import ops

import kerasattn.layers as layers
from kerasattn.testing import check_layer


def latents(batch, length):
    return np.random.default_rng().standard_normal((batch, length, 6)).astype("float32")


def numbered(batch, count=4):
    """Each latent tells its sentence and its layer: (batch, count, 2)."""
    return np.stack(np.indices((batch, count)), axis=-1).astype("float32")


def test_layer():
    check_layer(
        layers.SwapNoise,
        {"rate": 0.5},
        latents,
        config_errors=[({"rate": 1.0}, "rate must be from 0 to below 1")],
        skip={"precision": "latents are float32 in every policy"},
    )


def test_swaps_each_latent_by_itself_for_that_of_another_sentence():
    x = numbered(20000)
    z = np.asarray(layers.SwapNoise(0.25, seed=0)(x, training=True))
    assert (z[..., 1] == x[..., 1]).all()  # of its own layer
    swapped = z[..., 0] != x[..., 0]
    np.testing.assert_allclose(swapped.mean(axis=0), 0.25, atol=0.01)
    np.testing.assert_allclose(np.cov(swapped.T), 0.1875 * np.eye(4), atol=0.01)
    both = z[swapped.all(axis=1), :, 0]  # of four different sentences
    assert len(both) > 20 and all(len(set(row)) == 4 for row in both)


def test_padding_is_not_swapped_in():
    rows = np.arange(64) < 40
    z = np.asarray(layers.SwapNoise(0.9, seed=0)(numbered(64), rows, training=True))
    assert z[..., 0][rows].max() < 40


def test_no_sentence_learns_from_what_others_make_of_it():
    swap, x = layers.SwapNoise(0.5, seed=3), numbered(8)
    mine = np.asarray(swap(x, training=True))[..., 0] == x[..., 0]
    assert 0.1 < mine.mean() < 0.9
    gradient = gradient_of_first_sentence(layers.SwapNoise(0.5, seed=3), x)
    assert not gradient[1:].any()
    np.testing.assert_array_equal(gradient[0, :, 0], mine[0])


def gradient_of_first_sentence(layer, x):
    """The gradient of the sum of what the first sentence gets with respect to all latents."""
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(lambda x: ops.sum(layer(x, training=True)[0]))(x))
    import tensorflow as tf

    with tf.GradientTape() as tape:
        x = tf.Variable(x)
        loss = ops.sum(layer(x, training=True)[0])
    return np.asarray(tape.gradient(loss, x))
