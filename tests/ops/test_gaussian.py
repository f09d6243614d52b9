import math

import keras
import numpy as np
import pytest
from keras import ops
from scipy import integrate, stats

from kerasattn.ops import gaussian


def test_kl_is_summed_over_dimensions_whatever_the_batch():
    # C51: the mean over dimensions would be 0.5.
    for batch in (1, 4, 64):
        kl = np.asarray(gaussian.kl(np.ones((batch, 16)), np.zeros((batch, 16))))
        np.testing.assert_allclose(kl, np.full(batch, 8.0), rtol=1e-6)
        mean = gaussian.free_bits_kl(np.ones((batch, 16)), np.zeros((batch, 16)))
        assert float(mean) == pytest.approx(8.0)


@pytest.mark.parametrize("mean, log_var", [(0.0, 0.0), (1.5, -2.0), (-0.3, 1.0)])
def test_kl_is_the_integral_of_the_log_ratio(mean, log_var):
    q, p = stats.norm(mean, math.exp(log_var / 2)), stats.norm()
    expected = integrate.quad(lambda x: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), -30, 30)[0]
    ours = gaussian.kl(np.array([[mean]], "float32"), np.array([[log_var]], "float32"))
    assert float(ours[0]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("log_var", [100.0, -100.0])
def test_extreme_log_variances_stay_finite(dtype, log_var):
    # C51
    mean = ops.ones((256, 16), dtype=dtype)
    log_var = ops.full((256, 16), log_var, dtype=dtype)
    z = gaussian.sample(mean, log_var, seed=0)
    assert keras.backend.standardize_dtype(z.dtype) == dtype
    assert np.all(np.isfinite(np.asarray(ops.cast(z, "float32"))))
    assert np.all(np.isfinite(np.asarray(gaussian.kl(mean, log_var))))


def test_draws_have_the_mean_and_variance():
    mean = np.tile(np.array([2.0, -1.0], "float32"), (100_000, 1))
    log_var = np.log(np.tile(np.array([4.0, 0.01], "float32"), (100_000, 1)))
    z = np.asarray(gaussian.sample(mean, log_var, seed=1), "float64")
    assert stats.kstest(z[:, 0], stats.norm(2, 2).cdf).pvalue > 1e-3
    assert stats.kstest(z[:, 1], stats.norm(-1, 0.1).cdf).pvalue > 1e-3


def test_free_bits_are_a_floor_for_each_dimension_of_the_batch_mean():
    mean = np.array([[0.0, 3.0], [2.0, 1.0]], "float32")  # terms: [[0, 4.5], [2, 0.5]]
    zeros = np.zeros_like(mean)
    assert float(gaussian.free_bits_kl(mean, zeros)) == pytest.approx(3.5)
    two_bits = 2 * math.log(2)  # 1.386: above the 1.0 of the first dimension
    assert float(gaussian.free_bits_kl(mean, zeros, 2.0)) == pytest.approx(two_bits + 2.5)


def test_all_axes_but_the_batch_are_summed():
    mean = np.random.default_rng(0).standard_normal((5, 3, 4)).astype("float32")
    flat = gaussian.free_bits_kl(mean.reshape(5, 12), np.zeros((5, 12)))
    assert float(gaussian.free_bits_kl(mean, np.zeros_like(mean))) == pytest.approx(float(flat))
    assert gaussian.kl(mean, np.zeros_like(mean)).shape == (5, 3)
