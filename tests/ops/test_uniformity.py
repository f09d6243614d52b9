import numpy as np
import pytest
from scipy import integrate, special

from kerasattn.ops.uniformity import uniformity


def spheres(rows, layers, dim, seed=0):
    x = np.random.default_rng(seed).standard_normal((rows, layers, dim))
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype("float32")


@pytest.mark.parametrize("dim", [2, 3, 16])
def test_is_the_mean_over_pairs_less_that_of_uniform_draws(dim):
    x = spheres(6, 2, dim)
    cosines = np.einsum("ild,jld->ij", x, x)[~np.eye(6, dtype=bool)]
    # E exp(4 cos) from the density of the angle, by scipy.
    weight = lambda angle: np.sin(angle) ** (dim - 2)
    above = integrate.quad(lambda a: np.exp(4 * np.cos(a)) * weight(a), 0, np.pi)[0]
    mean = above / integrate.quad(weight, 0, np.pi)[0]
    expected = special.logsumexp(4 * cosines) - np.log(30) - 2 * np.log(mean)
    assert float(uniformity(x)) == pytest.approx(expected, abs=1e-5)


def test_is_zero_for_the_prior_and_grows_with_what_it_is_to_see():
    uniform = spheres(2000, 2, 8)
    base = float(uniformity(uniform))
    assert abs(base) < 0.02
    narrow, twins = uniform.copy(), uniform.copy()
    narrow[:, 0] = spheres(2000, 1, 8, seed=1)[:, 0] + 0.5  # one layer leans to one side
    narrow /= np.linalg.norm(narrow, axis=-1, keepdims=True)
    twins[:, 1] = twins[:, 0]  # each layer uniform, and one tells all of the other
    for latents in (narrow, twins):
        assert float(uniformity(latents)) > base + 0.2


def test_rows_of_no_weight_do_not_count():
    x = spheres(5, 3, 4)
    weights = np.array([1, 1, 0, 1, 0])
    assert float(uniformity(x, weights=weights)) == pytest.approx(
        float(uniformity(x[weights == 1])), abs=1e-5
    )
    assert float(uniformity(x[:1])) == 0.0
