import numpy as np
import pytest

from kerasattn.models import HopfieldNetwork
from kerasattn.testing import check_model

RANDOM = np.random.default_rng(0)


def signs(*shape):
    return RANDOM.choice([-1.0, 1.0], shape).astype("float32")


def test_model():
    check_model(
        HopfieldNetwork,
        {"num_units": 6, "update": "asynchronous", "num_sweeps": 4},
        lambda batch, length: {"states": signs(batch, 6)},
        errors=[({"states": np.ones((2, 3, 6), "float32")}, "states takes the shape")],
        config_errors=[
            ({"num_units": 0}, "num_units must be an int of at least 1"),
            ({"update": "sudden"}, "update must be one of"),
        ],
        skip={
            "config": "its mixed policies reach no layer: signs are float32",
            "padding": "units are no sequence",
            "causal": "units have no order",
            "decoding": "it writes nothing",
            "precision": "signs are float32 under every policy",
            "fit": "nothing is trained",
        },
        lengths=(1,),
    )
    config = HopfieldNetwork(6, "synchronous", 4).get_config()
    assert HopfieldNetwork.from_config(config).get_config() == config


def recalled(load, num_units=200, trials=2):
    """The share of patterns of which the recalled overlap is above 0.95, from 10% noise."""
    overlaps, network = [], HopfieldNetwork(num_units, num_sweeps=50)
    for seed in range(trials):
        patterns = signs(round(load * num_units), num_units)
        noisy = patterns.copy()
        for row in noisy:
            row[RANDOM.choice(num_units, num_units // 10, replace=False)] *= -1
        network.forget()
        network.store(patterns)
        found = network.recall(noisy, order="random", seed=seed)
        overlaps.extend((found * patterns).mean(1))
    return np.mean(np.array(overlaps) > 0.95)


def test_capacity():
    """On either side of the 0.138 N patterns that theory allows."""
    assert recalled(0.11) >= 0.9
    assert recalled(0.17) <= 0.5


def test_recall():
    network = HopfieldNetwork(100, num_sweeps=30)
    patterns = signs(8, 100)
    network.store(patterns)
    half = np.where(np.arange(100) < 50, patterns, 0)
    found, energies = network.recall(half, "random", seed=1, return_energies=True)
    np.testing.assert_array_equal(found, patterns)
    assert (np.diff(energies, axis=0) <= 1e-4).all()
    np.testing.assert_allclose(network.predict(half, verbose=0)["energy"], energies[-1], rtol=1e-5)
    _, same = network.recall(half, "random", seed=1, return_energies=True)
    np.testing.assert_array_equal(energies, same)
    with pytest.raises(ValueError, match="order must be one of"):
        network.recall(half, "any")


def test_all_at_once_may_never_come_to_rest():
    network = HopfieldNetwork(2, "synchronous", num_sweeps=9)
    network.store(np.ones((1, 2)))
    found, energies = network.recall([[1.0, -1.0]], return_energies=True)
    assert len(energies) == 10 and (energies == energies[0]).all()
    assert found.tolist() == [[-1.0, 1.0]]
