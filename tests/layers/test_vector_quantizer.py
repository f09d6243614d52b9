import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

import kerasattn.layers as layers
from kerasattn.training import callbacks


def clusters(count=256, codes=8, dim=4, noise=0.01, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((codes, dim)) * 3
    which = np.concatenate([np.arange(codes), rng.integers(0, codes, count - codes)])
    x = centres[which] + noise * rng.standard_normal((count, dim))
    return x.astype("float32"), centres, which


def placed(codebook, **kwargs):
    """A quantizer whose codebook is given, as if it was trained."""
    layer = layers.VectorQuantizer(len(codebook), **kwargs)
    layer.build((None, codebook.shape[1]))
    layer.codebook.assign(codebook)
    layer.idle.assign(np.zeros(len(codebook)))
    return layer


def test_nearest_code_is_the_one_at_the_least_distance():
    rng = np.random.default_rng(0)
    codebook, x = rng.standard_normal((32, 6)), rng.standard_normal((5, 7, 6))
    layer = placed(codebook.astype("float32"))
    distance = np.linalg.norm(x[..., None, :] - codebook, axis=-1)
    codes = np.asarray(layer.codes(x.astype("float32")))
    assert codes.dtype == np.int32
    np.testing.assert_array_equal(codes, distance.argmin(-1))
    quantized = np.asarray(layer(x.astype("float32")))
    np.testing.assert_array_equal(quantized, codebook.astype("float32")[codes])
    np.testing.assert_array_equal(layer.lookup(codes), quantized)


def test_commitment_loss_is_the_mean_squared_distance():
    layer = placed(np.array([[0.0, 0.0], [10.0, 10.0]], "float32"), commitment=0.5)
    layer(np.array([[1.0, 2.0], [10.0, 7.0]], "float32"))
    assert float(layer.losses[0]) == pytest.approx(0.5 * (1 + 4 + 0 + 9) / 4)


def test_gradient_passes_straight_through():
    # d/dx of sum(a * quantized) is a; the commitment adds 2 * commitment * (x - code) / size.
    codebook = np.array([[0.0, 0.0], [10.0, 10.0]], "float32")
    layer, a = placed(codebook, commitment=0.5), np.array([[3.0, -2.0]], "float32")
    x = np.array([[1.0, 2.0]], "float32")

    def objective(x):
        return ops.sum(a * layer(x)) + layer.losses[0]

    if keras.backend.backend() == "jax":
        import jax

        gradient = np.asarray(jax.grad(objective)(x))
    else:
        import tensorflow as tf

        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = objective(x)
        gradient = tape.gradient(value, x).numpy()
    np.testing.assert_allclose(gradient, a + 2 * 0.5 * np.array([[1.0, 2.0]]) / 2, rtol=1e-6)


def test_one_step_moves_codes_by_the_exponential_moving_averages():
    codebook = np.array([[0.0, 0.0], [10.0, 10.0]], "float32")
    layer = placed(codebook, decay=0.9)
    layer.counts.assign([2.0, 4.0])
    layer.sums.assign(codebook * [[2.0], [4.0]])
    layer(np.array([[1.0, 1.0], [-1.0, 3.0], [9.0, 12.0]], "float32"), training=True)
    counts = np.array([0.9 * 2 + 0.1 * 2, 0.9 * 4 + 0.1 * 1])
    sums = np.array([[0.1 * 0, 0.1 * 4], [0.9 * 40 + 0.9, 0.9 * 40 + 1.2]])
    np.testing.assert_allclose(layer.counts, counts, rtol=1e-6)
    np.testing.assert_allclose(layer.codebook, sums / counts[:, None], rtol=1e-6)


def test_inference_changes_nothing():
    layer = layers.VectorQuantizer(4)
    layer(np.ones((3, 2), "float32"))
    before = [np.array(w) for w in layer.weights]
    layer(np.ones((3, 2), "float32"), training=False)
    for old, new in zip(before, layer.weights):
        np.testing.assert_array_equal(old, new)


def test_finds_clusters():
    x, centres, which = clusters()
    inputs = keras.Input((4,))
    quantizer = layers.VectorQuantizer(16, decay=0.5, revive_after=5, seed=0)
    model = keras.Model(inputs, quantizer(inputs))
    model.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=True)
    usage = callbacks.CodeUsage()
    history = model.fit(x, x, epochs=10, batch_size=64, verbose=0, callbacks=[usage]).history
    assert history["code_perplexity"][-1] > 4
    distance = np.linalg.norm(centres[:, None] - np.asarray(quantizer.codebook), axis=-1)
    assert distance.min(axis=1).max() < 0.1  # each centre has a code
    # Vectors of different clusters never share a code.
    codes = np.asarray(quantizer.codes(x))
    assert all(len(set(which[codes == code])) == 1 for code in set(codes.tolist()))


def test_dead_codes_move_onto_different_vectors_of_the_batch():
    codebook = np.array([[0.0, 0.0], [50.0, 50.0], [60.0, 60.0], [70.0, 70.0]], "float32")
    layer = placed(codebook, revive_after=3, seed=0)
    x = np.random.default_rng(0).standard_normal((6, 2)).astype("float32")
    for _ in range(2):
        layer(x, training=True)
    np.testing.assert_array_equal(np.asarray(layer.codebook)[1:], codebook[1:])
    layer(x, training=True)
    revived = np.asarray(layer.codebook)[1:]
    rows = [np.abs(x - code).sum(-1).argmin() for code in revived]
    np.testing.assert_array_equal(revived, x[rows])
    assert len(set(rows)) == 3


def test_without_revival_unused_codes_stay():
    codebook = np.array([[0.0, 0.0], [50.0, 50.0]], "float32")
    layer = placed(codebook, revive_after=None)
    for _ in range(6):
        layer(np.ones((4, 2), "float32"), training=True)
    np.testing.assert_array_equal(np.asarray(layer.codebook)[1], codebook[1])


def test_more_codes_than_vectors_are_placed_over_several_batches():
    layer = layers.VectorQuantizer(6, seed=0)
    x = np.random.default_rng(0).standard_normal((4, 2)).astype("float32")
    for _ in range(2):
        layer(x, training=True)
    distance = np.linalg.norm(np.asarray(layer.codebook)[:, None] - x, axis=-1)
    assert distance.min(axis=1).max() < 1e-5


def test_padding_neither_moves_the_codebook_nor_counts_in_the_loss():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5, 4)).astype("float32")
    mask = np.arange(5) < np.array([[5], [2], [0]])

    def run(x, mask):
        layer = layers.VectorQuantizer(3, seed=0, decay=0.5)
        for _ in range(4):
            z = layer(x, mask=mask, training=True)
        return np.asarray(z), [np.asarray(w) for w in layer.weights], float(layer.losses[0])

    other = np.where(mask[..., None], x, 100.0).astype("float32")
    (z, weights, loss), (z2, weights2, loss2) = run(x, mask), run(other, mask)
    np.testing.assert_array_equal(z[mask], z2[mask])
    assert loss == loss2
    for a, b in zip(weights, weights2):
        np.testing.assert_array_equal(a, b)
    assert np.abs(weights[0]).max() < 50
    # and nothing real at all is no reason for NaN
    _, weights, loss = run(x, np.zeros_like(mask))
    assert loss == 0 and all(np.all(np.isfinite(w)) for w in weights)


def test_prior_is_the_empirical_distribution_of_the_codes():
    codebook = np.array([[0.0], [10.0], [20.0]], "float32")
    layer = placed(codebook, decay=0.0, revive_after=None, seed=0)
    np.testing.assert_allclose(layer.prior(), np.full(3, 1 / 3), rtol=1e-6)
    layer(np.array([[0.0], [0.1], [9.0], [0.2]], "float32"), training=True)
    np.testing.assert_allclose(layer.prior(), [0.75, 0.25, 0], atol=1e-6)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert float(layer.perplexity()) == pytest.approx(np.exp(entropy), rel=1e-4)
    codes = np.asarray(layer.sample_codes((100, 40), seed=1))
    assert codes.shape == (100, 40) and codes.max() == 1
    assert (codes == 0).mean() == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / 4000) ** 0.5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_keeps_the_codebook_in_float32(policy):
    x, _, _ = clusters()
    layer = layers.VectorQuantizer(16, seed=0, dtype=policy)
    for _ in range(3):
        z = layer(x, training=True)
    assert keras.backend.standardize_dtype(z.dtype) == policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(layer.codebook.dtype) == "float32"
    assert keras.backend.standardize_dtype(layer.losses[0].dtype) == "float32"
    assert all(np.all(np.isfinite(np.asarray(w))) for w in layer.weights)


def test_round_trip_goes_on_as_if_not_saved(tmp_path):
    x, _, _ = clusters()
    inputs = keras.Input((4,))
    quantizer = layers.VectorQuantizer(
        12, commitment=0.1, decay=0.9, revive_after=2, seed=3, name="quantizer"
    )
    model = keras.Model(inputs, quantizer(inputs))
    for _ in range(3):
        model(x, training=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("quantizer").get_config() == quantizer.get_config()
    for _ in range(4):
        model(x, training=True), loaded(x, training=True)
    for a, b in zip(model.weights, loaded.weights):
        np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(model(x), loaded(x), atol=1e-6)


@settings(max_examples=6, deadline=None)
@given(shape=st.lists(st.integers(1, 4), max_size=3).map(tuple), dim=st.integers(1, 5))
def test_any_rank(shape, dim):
    layer = layers.VectorQuantizer(3, seed=0)
    x = np.random.default_rng(0).standard_normal((*shape, dim)).astype("float32")
    assert layer(x, training=True).shape == (*shape, dim)
    codes = layer.codes(x)
    assert tuple(codes.shape) == shape
    assert tuple(layer.lookup(codes).shape) == (*shape, dim)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"codebook_size": 0}, "codebook_size must be at least 1"),
        ({"codebook_size": 2, "commitment": -1}, "commitment must not be negative"),
        ({"codebook_size": 2, "decay": 1.0}, "decay must be at least 0 and less than 1"),
        ({"codebook_size": 2, "revive_after": 0}, "revive_after must be at least 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        layers.VectorQuantizer(**arguments)
