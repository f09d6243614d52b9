import numpy as np
import pytest

from kerasattn.ops import vmf
from kerasattn.ops.isotropy import isotropy_divergence


def spheres(rows, layers, dim, seed=0):
    return np.array(vmf.uniform((rows, layers), dim, seed=seed))


def test_is_the_divergence_of_two_gaussians():
    """By sampling: E_p[log p(x) - log q(x)], with scipy's densities."""
    from scipy import stats

    x = spheres(12, 2, 3) * [1.0, 1.0, 0.4]
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    expected, rng = 0.0, np.random.default_rng(0)
    for layer in range(2):
        moments = (x[:, layer].T @ x[:, layer] + np.eye(3) / 3) / 13
        p = stats.multivariate_normal(np.zeros(3), moments)
        q = stats.multivariate_normal(np.zeros(3), np.eye(3) / 3)
        draws = p.rvs(50_000, random_state=rng)
        expected += np.mean(p.logpdf(draws) - q.logpdf(draws))
    assert float(isotropy_divergence(x)) == pytest.approx(expected, abs=0.02)


def test_grows_with_directions_that_are_not_used_and_with_a_mean():
    uniform = spheres(2000, 2, 8)
    base = float(isotropy_divergence(uniform))
    assert base == pytest.approx(2 * 8 * 9 / (4 * 2000), abs=0.01)
    empty, narrow = uniform.copy(), uniform.copy()
    empty[:, 1, 0] = 0
    narrow[:, 0] += 0.3
    for latents in (empty, narrow):
        latents /= np.linalg.norm(latents, axis=-1, keepdims=True)
        assert float(isotropy_divergence(latents)) > base + 0.5


def test_rows_of_no_weight_do_not_count_and_none_are_isotropic():
    x = spheres(5, 3, 4)
    weights = np.array([1, 1, 0, 1, 0])
    assert float(isotropy_divergence(x, weights)) == pytest.approx(
        float(isotropy_divergence(x[weights == 1])), abs=1e-5
    )
    assert float(isotropy_divergence(x, np.zeros(5))) == pytest.approx(0, abs=1e-6)
