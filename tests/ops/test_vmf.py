"""The von Mises-Fisher distribution against mpmath, scipy and closed forms."""

import functools
import math

import keras
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops
from scipy import integrate, special, stats

from kerasattn.ops import vmf
from kerasattn.ops.compiled import compiled

DIMS = (2, 3, 16, 128, 1024)
KAPPAS = (0, 1e-3, 1, 32, 1000, 1e4)


@functools.cache
def exact(dim, kappa):
    """The mean resultant length, KL to uniform and entropy, with 40 digits."""
    with mpmath.workdps(40):
        half, kappa = mpmath.mpf(dim) / 2, mpmath.mpf(kappa)
        log_area = mpmath.log(2 * mpmath.pi**half / mpmath.gamma(half))
        if kappa == 0:
            return 0.0, 0.0, float(log_area)
        ratio = mpmath.besseli(half, kappa) / mpmath.besseli(half - 1, kappa)
        # C = kappa^(dim/2-1) / ((2 pi)^(dim/2) I_{dim/2-1}(kappa))
        log_c = (half - 1) * mpmath.log(kappa) - half * mpmath.log(2 * mpmath.pi)
        log_c -= mpmath.log(mpmath.besseli(half - 1, kappa))
        entropy = -log_c - kappa * ratio
        return float(ratio), float(log_area - entropy), float(entropy)


@functools.cache
def exact_cdf(dim, kappa):
    """The distribution function of the angle, by integration of its density in float64."""
    angle = np.linspace(0, np.pi, 100_001)
    log_density = kappa * (np.cos(angle) - 1) + special.xlogy(dim - 2, np.sin(angle))
    density = np.exp(log_density - log_density.max())
    total = integrate.cumulative_simpson(density, x=angle, initial=0)
    return lambda x: np.interp(x, angle, total / total[-1])


def angle_to_first_axis(z):
    z = np.asarray(z, "float64")
    return np.arctan2(np.linalg.norm(z[..., 1:], axis=-1), z[..., 0])


def first_axis(count, dim):
    return np.eye(1, dim, dtype="float32").repeat(count, axis=0)


# === The grid: every dimension and concentration ===


def check_angles(angle, dim, kappa):
    w, length = np.cos(angle), exact(dim, kappa)[0]
    error = w.std() / math.sqrt(len(w))
    assert abs(w.mean() - length) < max(0.01 * length, 3 * error), kappa
    if kappa <= 1000:
        assert stats.kstest(angle, exact_cdf(dim, kappa)).pvalue > 1e-3, kappa


@pytest.mark.parametrize("dim", DIMS)
def test_draws_follow_the_exact_distribution(dim):
    # 1e5 draws: some whole vectors where they are small, the angle of the same draw elsewhere.
    count = 100_000
    for seed, kappa in enumerate(KAPPAS):
        table = vmf.radial_quantiles(dim, kappa)
        if dim <= 16 and kappa in (1, 1e4):
            angle = angle_to_first_axis(vmf.sample(first_axis(count, dim), table, seed=seed))
        else:
            normal = keras.random.normal((count,), seed=seed)
            angle = np.asarray(vmf.angles(normal, table), "float64")
        check_angles(angle, dim, kappa)


@pytest.mark.parametrize("dim", DIMS)
def test_compiled_draws_follow_the_exact_distribution(dim):
    generator = keras.random.SeedGenerator(3)
    mean = np.asarray(vmf.uniform((min(20_000, 2**18 // dim),), dim, seed=4))
    draw = compiled(
        lambda mean, table: vmf.sample(mean, table, seed=generator), variables=[generator.state]
    )
    for seed, kappa in enumerate(KAPPAS):
        generator.state.assign([seed, 0])
        z = np.asarray(draw(mean, vmf.radial_quantiles(dim, kappa)), "float64")
        assert np.all(np.isfinite(z))
        assert np.abs(np.linalg.norm(z, axis=-1) - 1).max() < 1e-5
        # The angle from the chord: w itself rounds to 1.
        chord = np.linalg.norm(z - mean, axis=-1)
        check_angles(2 * np.arcsin(np.minimum(chord / 2, 1)), dim, kappa)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kappa", KAPPAS)
def test_the_table_is_the_quantile_function(dim, kappa):
    # The quantiles' own distribution function: the table must return them to Φ(x), in both tails.
    table = vmf.radial_quantiles(dim, kappa)
    assert table.dtype == np.float32 and np.all(np.diff(table) >= 0)
    normal = np.linspace(-6, 6, len(table))
    inner = np.abs(normal) < 4
    x = table[inner].astype("float64")
    if kappa <= 1000:
        probability = exact_cdf(dim, kappa)(x)
        np.testing.assert_allclose(probability, stats.norm.cdf(normal[inner]), atol=2e-5)
    # The mean cosine, with the weights of the normal density.
    weights = stats.norm.pdf(normal)
    mean = np.sum(np.cos(table.astype("float64")) * weights) / weights.sum()
    assert mean == pytest.approx(exact(dim, kappa)[0], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kappa", KAPPAS)
def test_closed_forms_agree_with_mpmath(dim, kappa):
    length, divergence, entropy = exact(dim, kappa)
    assert vmf.mean_resultant_length(dim, kappa) == pytest.approx(length, rel=1e-6)
    assert vmf.kl_to_uniform(dim, kappa) == pytest.approx(divergence, rel=1e-6, abs=0)
    assert vmf.entropy(dim, kappa) == pytest.approx(entropy, rel=1e-6)


def test_large_and_small_extremes_stay_finite():
    for dim, kappa in ((2, 1e6), (4096, 1e-6), (4096, 1e6)):
        length, divergence, _ = exact(dim, kappa)
        assert vmf.mean_resultant_length(dim, kappa) == pytest.approx(length, rel=1e-6)
        assert vmf.kl_to_uniform(dim, kappa) == pytest.approx(divergence, rel=1e-6)
        assert np.all(np.isfinite(vmf.radial_quantiles(dim, kappa)))


def test_the_rate_of_four_latents_of_sixteen_dimensions():
    assert 4 * vmf.kl_to_uniform(16, 32) / math.log(2) == pytest.approx(43.75, abs=5e-3)
    assert vmf.mean_resultant_length(16, 32) == pytest.approx(0.78990, abs=5e-6)


@pytest.mark.parametrize("dim, kappa", [(2, 3.0), (3, 1000.0), (16, 128.0), (128, 1e4)])
def test_kl_to_the_uniform_distribution_is_the_integral(dim, kappa):
    # The integral over the angle, of densities that mpmath normalizes.
    with mpmath.workdps(30):
        sphere = lambda a: mpmath.sin(a) ** (dim - 2)
        peak = mpmath.acos(2 * kappa / (dim - 2 + mpmath.hypot(dim - 2, 2 * kappa)))
        near = [peak + k / mpmath.sqrt(kappa) for k in range(-12, 13, 2)]
        ends = sorted({e for e in (0, *near, mpmath.pi / 2, mpmath.pi) if 0 <= e <= mpmath.pi})
        area = mpmath.quad(sphere, ends)
        mass = mpmath.quad(lambda a: mpmath.exp(kappa * (mpmath.cos(a) - 1)) * sphere(a), ends)

        def term(a):
            ratio = mpmath.exp(kappa * (mpmath.cos(a) - 1)) * area / mass
            return sphere(a) / area * ratio * mpmath.log(ratio)

        expected = float(mpmath.quad(term, ends))
    assert vmf.kl_to_uniform(dim, kappa) == pytest.approx(expected, rel=1e-5)


# === scipy, where it is defined ===


@pytest.mark.parametrize("dim, kappa", [(2, 1.0), (3, 32.0), (16, 32.0), (16, 1000.0), (128, 1e4)])
def test_densities_and_entropy_agree_with_scipy(dim, kappa):
    rng = np.random.default_rng(0)
    mean = rng.standard_normal(dim)
    mean /= np.linalg.norm(mean)
    peer = stats.vonmises_fisher(mean, kappa, seed=0)
    x = peer.rvs(50)
    ours = np.asarray(vmf.log_density(x.astype("float32"), mean.astype("float32"), kappa))
    np.testing.assert_allclose(ours, peer.logpdf(x), rtol=1e-5, atol=1e-4 + 1e-6 * kappa)
    assert vmf.entropy(dim, kappa) == pytest.approx(peer.entropy(), rel=1e-6)


@pytest.mark.parametrize("dim, kappa", [(2, 1.0), (3, 32.0), (16, 32.0), (128, 1000.0)])
def test_draws_are_distributed_as_those_of_scipy(dim, kappa):
    mean = first_axis(1, dim)[0]
    theirs = stats.vonmises_fisher(mean, kappa, seed=1).rvs(20_000)
    table = vmf.radial_quantiles(dim, kappa)
    ours = np.asarray(vmf.sample(first_axis(20_000, dim), table, seed=1), "float64")
    assert stats.ks_2samp(angle_to_first_axis(ours), angle_to_first_axis(theirs)).pvalue > 1e-3
    # and the part orthogonal to the mean: one coordinate of it
    assert stats.ks_2samp(ours[:, 1], theirs[:, 1]).pvalue > 1e-3


def test_density_integrates_to_one():
    # On the circle, by the trapezoid rule, which is exact to rounding there.
    angle = np.linspace(0, 2 * np.pi, 4096, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1).astype("float32")
    for kappa in (0, 1, 32, 1000):
        density = np.exp(np.asarray(vmf.log_density(circle, circle[7], kappa), "float64"))
        assert density.mean() * 2 * np.pi == pytest.approx(1, abs=1e-4)


# === Geometry ===


@pytest.mark.parametrize("sign", [1, -1])
def test_mean_direction_along_an_axis(sign):
    # C47: the reflection that others use is 0/0 there.
    mean = sign * first_axis(10_000, 3)
    z = np.asarray(vmf.sample(mean, vmf.radial_quantiles(3, 1.0), seed=0))
    assert np.all(np.isfinite(z))
    assert np.abs(np.linalg.norm(z, axis=-1) - 1).max() < 1e-5
    assert np.sum(z * mean, axis=-1).mean() == pytest.approx(0.313035, abs=0.02)


def test_draws_are_symmetric_around_a_mean_direction_that_is_no_axis():
    dim, kappa, count = 5, 3.0, 200_000
    mean = np.random.default_rng(3).standard_normal(dim)
    mean = (mean / np.linalg.norm(mean)).astype("float32")
    table = vmf.radial_quantiles(dim, kappa)
    z = np.asarray(vmf.sample(np.tile(mean, (count, 1)), table, seed=5), "float64")
    length = exact(dim, kappa)[0]
    np.testing.assert_allclose(z.mean(0), length * mean, atol=5 / math.sqrt(count))
    # E[z zᵀ] = (A/kappa) I + (1 - dim A/kappa) mu muᵀ
    second = length / kappa * np.eye(dim) + (1 - dim * length / kappa) * np.outer(mean, mean)
    np.testing.assert_allclose(z.T @ z / count, second, atol=5 / math.sqrt(count))


def test_noise_parallel_to_the_mean_direction_still_gives_unit_vectors():
    rng = np.random.default_rng(0)
    for dim in (2, 3, 16):
        mean = rng.standard_normal((200, dim)).astype("float32")
        mean /= np.linalg.norm(mean, axis=-1, keepdims=True)
        mean[:4] = [first_axis(1, dim)[0] * s for s in (1, -1, 1, -1)]
        near = mean + 1e-6 * rng.standard_normal(mean.shape).astype("float32")
        for noise in (mean, -3 * mean, near, 1e-20 * near, np.zeros_like(mean)):
            z = np.asarray(vmf.combine(mean, np.full((200, 1), 0.25, "float32"), noise))
            np.testing.assert_allclose(np.linalg.norm(z, axis=-1), 1, atol=1e-6)
            np.testing.assert_allclose(np.sum(z * mean, -1), 0.25, atol=1e-6)


def test_combine_keeps_small_angles_given_the_complement_of_w():
    mean, noise = first_axis(1, 2), np.array([[0.3, 1.0]], "float32")
    tiny = np.array([[1e-10]], "float32")
    z = vmf.combine(mean, 1 - tiny, noise, w_complement=tiny)
    assert angle_to_first_axis(z)[0] == pytest.approx(math.acos(1 - 1e-10), rel=1e-5)


def test_combine_reproduces_the_published_reference(golden):
    arrays = np.load(golden("univae_reference") / "golden.npz")
    z = vmf.combine(arrays["vmf_mu"], arrays["vmf_w"], arrays["vmf_eps"])
    np.testing.assert_allclose(np.asarray(z), arrays["vmf_z"], atol=1e-5)


def test_uniform_on_the_sphere():
    z = np.asarray(vmf.uniform((4, 25_000), dim=3, seed=0), "float64")
    assert z.shape == (4, 25_000, 3)
    assert np.abs(np.linalg.norm(z, axis=-1) - 1).max() < 1e-6
    # Archimedes: each coordinate is uniform on [-1, 1].
    for axis in range(3):
        assert stats.kstest(z[..., axis].ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
    assert keras.backend.standardize_dtype(vmf.uniform((2,), 4, dtype="float16").dtype) == "float16"


# === Gradients ===


def gradient(function, x):
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(function)(ops.convert_to_tensor(x)))
    import tensorflow as tf

    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x).numpy()


@pytest.mark.parametrize("dim, kappa", [(2, 1.0), (3, 1.0), (5, 2.0), (16, 32.0), (64, 1000.0)])
def test_gradient_of_an_expectation_reaches_the_mean_direction(dim, kappa):
    # C49, for the mean direction: E[a·z] = A (a·mu/|mu|), so its gradient is A (I - mu muᵀ) a at
    # unit mu. kappa itself is declared to have none.
    rng = np.random.default_rng(1)
    mean, a = rng.standard_normal((2, dim)).astype("float32")
    mean /= np.linalg.norm(mean)
    table = vmf.radial_quantiles(dim, kappa)
    count = 20_000

    def expectation(mu):
        z = vmf.sample(ops.broadcast_to(mu, (count, dim)), table, seed=3)
        return ops.mean(ops.matmul(z, a))

    expected = exact(dim, kappa)[0] * (a - mean * np.dot(mean, a))
    tolerance = 5 * np.linalg.norm(a) / math.sqrt(count)
    np.testing.assert_allclose(gradient(expectation, mean), expected, atol=tolerance)
    # A nonlinear function: E[(a·z)²], through the second moments above.
    length = exact(dim, kappa)[0]

    def square(mu):
        z = vmf.sample(ops.broadcast_to(mu, (count, dim)), table, seed=3)
        return ops.mean(ops.square(ops.matmul(z, a)))

    along = np.dot(mean, a)
    expected = 2 * (1 - dim * length / kappa) * along * (a - mean * along)
    tolerance = 10 * np.linalg.norm(a) ** 2 / math.sqrt(count)
    np.testing.assert_allclose(gradient(square, mean), expected, atol=tolerance)


def test_gradient_is_bounded_and_orthogonal_to_the_mean_direction():
    # Pathwise through the projection of the noise it would have infinite variance at dim 3.
    rng = np.random.default_rng(2)
    for dim in (2, 3, 64):
        mean = rng.standard_normal((20_000, dim)).astype("float32")
        mean /= np.linalg.norm(mean, axis=-1, keepdims=True)
        a = np.eye(1, dim, 1, dtype="float32")[0]
        table = vmf.radial_quantiles(dim, 10.0)
        slope = gradient(lambda mu, t=table, a=a: ops.sum(vmf.sample(mu, t, seed=1) * a), mean)
        assert np.all(np.isfinite(slope))
        assert np.linalg.norm(slope, axis=-1).max() <= 1 + 1e-4
        assert np.abs(np.sum(slope * mean, axis=-1)).max() < 1e-5


# === Ranks, dtypes, seeds, errors ===


@settings(max_examples=8, deadline=None)
@given(
    shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
    dim=st.integers(2, 9),
    dtype=st.sampled_from(["float32", "float16", "bfloat16"]),
    seed=st.integers(0, 2**31 - 1),
)
def test_any_rank_and_dtype(shape, dim, dtype, seed):
    mean = ops.cast(vmf.uniform(shape, dim, seed=seed), dtype)
    z = vmf.sample(mean, vmf.radial_quantiles(dim, 5.0, size=64), seed=seed)
    assert tuple(z.shape) == (*shape, dim)
    assert keras.backend.standardize_dtype(z.dtype) == dtype
    norm = np.linalg.norm(np.asarray(ops.cast(z, "float32")), axis=-1)
    np.testing.assert_allclose(norm, 1, atol=1e-5 if dtype == "float32" else 1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_low_precision_draws_keep_the_distribution(dtype):
    mean = ops.cast(first_axis(20_000, 16), dtype)
    z = ops.cast(vmf.sample(mean, vmf.radial_quantiles(16, 1e4), seed=0), "float32")
    w = np.asarray(z)[:, 0]
    assert w.mean() == pytest.approx(exact(16, 1e4)[0], rel=4e-3)
    # 1e4 overflows nothing: the angle is drawn in float32
    assert np.all(np.isfinite(np.asarray(z)))


def test_seeds():
    mean, table = first_axis(8, 4), vmf.radial_quantiles(4, 2.0)

    def two(generator):
        return [np.asarray(vmf.sample(mean, table, seed=generator)) for _ in range(2)]

    first, again = two(keras.random.SeedGenerator(3)), two(keras.random.SeedGenerator(3))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first[0] - first[1]).max() > 0.1
    assert np.abs(first[0][0] - first[0][1]).max() > 0.1  # rows differ
    fixed = [np.asarray(vmf.sample(mean, table, seed=5)) for _ in range(2)]
    np.testing.assert_array_equal(*fixed)


def test_the_angle_does_not_depend_on_the_direction_under_an_int_seed():
    dim, count = 3, 50_000
    z = np.asarray(vmf.sample(first_axis(count, dim), vmf.radial_quantiles(dim, 1.0), seed=11))
    turn = np.arctan2(z[:, 2], z[:, 1])
    # four standard errors of a correlation of independent variables
    for wave in (np.cos(turn), np.sin(turn), np.cos(2 * turn)):
        assert abs(np.corrcoef(z[:, 0], wave)[0, 1]) < 4 / math.sqrt(count)


@pytest.mark.parametrize("kappa", [-1.0, math.nan, math.inf])
def test_bad_kappa(kappa):
    functions = (vmf.radial_quantiles, vmf.mean_resultant_length, vmf.entropy, vmf.kl_to_uniform)
    for function in functions:
        with pytest.raises(ValueError, match="kappa must be finite and not negative"):
            function(3, kappa)


@pytest.mark.parametrize("dim", [1, 0, 2.5, None])
def test_bad_dim(dim):
    for function in (vmf.radial_quantiles, vmf.entropy):
        with pytest.raises(ValueError, match="dim must be a whole number of at least 2"):
            function(dim, 1.0)
