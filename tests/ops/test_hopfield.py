import numpy as np
import pytest
from keras import ops

from kerasattn.ops import hopfield
from kerasattn.ops.compiled import compiled

RANDOM = np.random.default_rng(0)


def signs(*shape):
    return RANDOM.choice([-1.0, 1.0], shape).astype("float32")


def energy(states, weights, biases):
    return -0.5 * np.einsum("bi,ij,bj->b", states, weights, states) - states @ biases


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_hebbian_is_the_mean_of_products():
    patterns, others = signs(3, 4), signs(3, 2)
    expected = sum(np.outer(p, p) for p in patterns) / 4
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(array(hopfield.hebbian(patterns)), expected, atol=1e-6)
    expected = sum(np.outer(p, q) for p, q in zip(patterns, others)) / 4
    np.testing.assert_allclose(array(hopfield.hebbian(patterns, others)), expected, atol=1e-6)


def test_one_unit_at_a_time_never_raises_the_energy():
    """Whatever the symmetric weights without a diagonal, the biases, the states and the order."""
    one_turn = compiled(hopfield.asynchronous)
    for trial in range(4):
        weights = RANDOM.normal(size=(9, 9))
        weights = ((weights + weights.T) * (1 - np.eye(9))).astype("float32")
        biases = RANDOM.normal(size=9).astype("float32") * (trial % 2)
        states = signs(6, 9)
        before = energy(states, weights, biases)
        np.testing.assert_allclose(
            array(hopfield.energy(states, weights, biases)), before, atol=1e-4
        )
        fell = False
        for unit in RANDOM.integers(0, 9, 40):
            states = array(one_turn(states, weights, np.array([unit], "int32"), biases))
            now = energy(states, weights, biases)
            assert (now <= before + 1e-4).all()
            fell, before = fell or (now < before - 1e-4).any(), now
        assert fell and set(states.ravel()) == {-1.0, 1.0}


def test_asynchronous_goes_unit_by_unit():
    weights, states, biases = RANDOM.normal(size=(5, 5)), signs(3, 5), RANDOM.normal(size=5)
    order = np.array([4, 0, 3, 0, 1, 2])
    expected = states.copy()
    for unit in order:
        expected[:, unit] = np.sign(expected @ weights[unit] + biases[unit])
    found = hopfield.asynchronous(states, weights, order, biases)
    np.testing.assert_array_equal(array(found), expected)


def test_synchronous_goes_round_where_asynchronous_comes_to_rest():
    weights = np.array([[0, 1], [1, 0]], "float32")
    first = np.array([[1, -1]], "float32")
    second = array(hopfield.synchronous(first, weights))
    assert second.tolist() == [[-1, 1]]
    assert array(hopfield.synchronous(second, weights)).tolist() == [[1, -1]]
    orders = np.tile(np.arange(2), (50, 1))
    settled, sweeps = hopfield.settle(first, weights, orders)
    assert array(settled).tolist() == [[-1, -1]] and int(sweeps) == 2


def test_asymmetric_weights_go_round_unit_by_unit_too():
    """One wants to be like the other, which wants to be unlike it."""
    weights = np.array([[0, 1], [-1, 0]], "float32")
    orders = np.tile(np.arange(2), (7, 1))
    assert int(hopfield.settle(np.array([[1, 1]]), weights, orders)[1]) == 7
    seen, states = [], np.array([[1, 1]])
    for _ in range(4):
        states = array(hopfield.asynchronous(states, weights, np.arange(2)))
        seen.append(states[0].tolist())
    assert seen == [[1, -1], [-1, 1]] * 2


def test_a_unit_without_a_field_stays():
    weights = np.array([[0, 0.3, -0.3], [0, 0, 0], [0, 0, 0]], "float32")
    states = np.array([[1, 1, 1], [-1, 1, 1]], "float32")
    np.testing.assert_array_equal(array(hopfield.synchronous(states, weights)), states)


def test_retrieve_is_attention_with_keys_as_values():
    queries, patterns = RANDOM.normal(size=(2, 3, 4)), RANDOM.normal(size=(2, 5, 4))
    states = queries
    for _ in range(2):
        scores = 1.5 * np.einsum("bqd,bpd->bqp", states, patterns)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        states = weights @ patterns
    found, last = hopfield.retrieve(queries.astype("float32"), patterns.astype("float32"), 1.5, 2)
    np.testing.assert_allclose(array(found), states, atol=1e-5)
    np.testing.assert_allclose(array(last), weights, atol=1e-5)


@pytest.mark.parametrize("beta", [0.3, 3.0])
def test_continuous_energy_falls_to_rest(beta):
    patterns = RANDOM.normal(size=(1, 6, 4)).astype("float32")
    states = RANDOM.normal(size=(1, 50, 4)).astype("float32")
    energies = []
    for _ in range(30):
        scores = beta * np.einsum("bqd,bpd->bqp", states, patterns)
        largest = (patterns**2).sum(-1).max()
        expected = -np.log(np.exp(scores).sum(-1)) / beta + 0.5 * (states**2).sum(-1)
        expected += np.log(6) / beta + largest / 2
        energies.append(array(hopfield.continuous_energy(states, patterns, beta)))
        np.testing.assert_allclose(energies[-1], expected, atol=1e-4)
        states = array(hopfield.retrieve(states, patterns, beta)[0])
    energies = np.stack(energies)
    assert (np.diff(energies, axis=0) <= 1e-5).all() and (energies[0] > energies[-1] + 0.1).any()
    assert energies.min() >= 0
