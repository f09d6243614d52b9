import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
STATES = RANDOM.choice([-1.0, 1.0], (3, 8)).astype("float32")
NO_SEQUENCE = {
    "padding": "units are no sequence",
    "causal": "units have no order",
    "precision": "signs are float32 under every policy",
    "fit": "nothing is trained",
}


def signs(units):
    return lambda batch, length: RANDOM.choice([-1.0, 1.0], (batch, units)).astype("float32")


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def stored(cls, *patterns):
    """A function of the config that makes a layer with patterns stored in it."""

    def make(**config):
        layer = cls(**config)
        layer.store(*patterns)
        return layer

    return make


@pytest.mark.parametrize("update", ["asynchronous", "synchronous"])
def test_binary_hopfield(update):
    once = dict.fromkeys(["save", "saved_model"], "those of the model")
    check_layer(
        layers.BinaryHopfield,
        {"update": update, "num_sweeps": 3},
        signs(8),
        call={"return_energy": True},
        config_errors=[
            ({"update": "random"}, "update must be one of"),
            ({"num_sweeps": 0}, "num_sweeps must be at least 1, got 0"),
        ],
        errors=[(np.ones((2, 3, 4), "float32"), r"States must be \(batch, units\)")],
        skip={**NO_SEQUENCE, **once},
        lengths=(1,),
    )


def test_a_part_brings_back_the_whole():
    layer = layers.BinaryHopfield()
    patterns = RANDOM.choice([-1.0, 1.0], (4, 60)).astype("float32")
    layer.store(patterns[:2])
    layer.store(patterns[2:])  # beside the first two
    half = np.where(np.arange(60) < 30, patterns, 0)
    np.testing.assert_array_equal(array(layer(half)), patterns)
    with pytest.raises(ValueError, match=r"patterns take -1 and 1, got also 0\.5"):
        layer.store(np.full((1, 60), 0.5))
    with pytest.raises(ValueError, match=r"the shape \(number, 60\), got \(1, 59\)"):
        layer.store(np.ones((1, 59)))


def test_biases_count():
    layer = layers.BinaryHopfield()
    layer.store(np.ones((1, 4)))
    layer.bias.assign([-3.0, -3.0, -3.0, -3.0])
    assert array(layer(np.ones((1, 4)))).tolist() == [[-1.0] * 4]


def test_bidirectional_associative_memory():
    check_layer(
        layers.BidirectionalAssociativeMemory,
        {"num_rounds": 3},
        lambda batch, length: (signs(6)(batch, length), signs(4)(batch, length)),
        config_errors=[({"num_rounds": 0}, "num_rounds must be at least 1, got 0")],
        errors=[((np.ones((2, 3), "float32"), np.ones(2, "float32")), "others")],
        skip=NO_SEQUENCE,
        lengths=(1,),
    )


def test_each_side_brings_the_other_to_mind():
    patterns = RANDOM.choice([-1.0, 1.0], (3, 80)).astype("float32")
    others = RANDOM.choice([-1.0, 1.0], (3, 40)).astype("float32")
    memory = layers.BidirectionalAssociativeMemory()
    memory.store(patterns, others)
    noisy = patterns * np.where(RANDOM.random((3, 80)) < 0.1, -1, 1)
    found, there = memory(noisy, np.zeros((3, 40)))
    np.testing.assert_array_equal(array(found), patterns)
    np.testing.assert_array_equal(array(there), others)
    found, there = memory(np.zeros((3, 80)), others)
    np.testing.assert_array_equal(array(found), patterns)
    with pytest.raises(ValueError, match="as many patterns as others"):
        memory.store(patterns, others[:2])


def sequences(batch, length):
    return RANDOM.normal(size=(batch, length, 4)).astype("float32")


def test_modern_hopfield_of_given_patterns():
    check_layer(
        layers.ModernHopfield,
        {"beta": 2.0, "num_steps": 2},
        lambda batch, length: (sequences(batch, length), sequences(batch, length)),
        call={"return_weights": True},
        padding=lambda real: {"attention_mask": real[:, None, :]},
        causal=lambda batch, length: {
            "attention_mask": np.tril(np.ones((batch, length, length), bool))
        },
        config_errors=[
            ({"beta": 0.0}, "beta must be finite and above 0, got 0.0"),
            ({"num_steps": 0}, "num_steps must be at least 1, got 0"),
        ],
        errors=[
            (sequences(2, 3), "Patterns are either given"),
            ((sequences(2, 3), sequences(2, 3)[..., :2]), r"Patterns must be .* of one dim"),
        ],
        lengths=(1, 4),
    )


def test_modern_hopfield_of_learned_patterns():
    check_layer(
        layers.ModernHopfield,
        {"num_patterns": 3},
        sequences,
        config_errors=[({"num_patterns": 0}, "num_patterns must be at least 1, got 0")],
        errors=[((sequences(2, 3), sequences(2, 3)), "Patterns are either given")],
        skip={"save": "as that of given patterns", "saved_model": "as that of given patterns"},
        lengths=(1, 4),
    )


def test_many_more_patterns_than_dimensions_are_found():
    """At a large beta; the mean of all of them at a small one."""
    random = np.random.default_rng(2)
    patterns = random.choice([-1.0, 1.0], (1, 2000, 32)).astype("float32")
    noisy = patterns[:, :200] * np.where(random.random((1, 200, 32)) < 0.1, -1, 1)
    found = layers.ModernHopfield(beta=4.0)(noisy.astype("float32"), patterns)
    right = (np.sign(array(found)) == patterns[:, :200]).all(-1)[0]
    products = noisy[0] @ patterns[0].T
    own = np.diag(products).copy()
    products[np.arange(200), np.arange(200)] = -np.inf
    # Where another is as near, the mean of both is found.
    assert right.mean() > 0.8
    np.testing.assert_array_equal(right, own > products.max(axis=-1))
    mean = layers.ModernHopfield(beta=1e-4)(noisy.astype("float32"), patterns)
    np.testing.assert_allclose(array(mean)[0, 0], patterns[0].mean(0), atol=0.01)


def test_what_cannot_be_stored_leaves_no_trace():
    layer, memory = layers.BinaryHopfield(), layers.BidirectionalAssociativeMemory()
    for bad, message in (([1, -1], r"\(number, units\), got \(2,\)"), ([[0, 1, 1]], "take -1")):
        with pytest.raises(ValueError, match=message):
            layer.store(bad)
        with pytest.raises(ValueError, match=message):
            memory.store(bad, [[1, 1]])
    layer.store(np.ones((1, 4)))
    memory.store(np.ones((1, 4)), np.ones((1, 5)))
    assert layer.kernel.shape == (4, 4) and memory.kernel.shape == (4, 5)


def test_signs_may_be_integers():
    patterns = RANDOM.choice([-1, 1], (2, 3, 4))
    layer = layers.ModernHopfield(beta=1.0)
    np.testing.assert_allclose(
        array(layer(patterns, patterns)), array(layer(*[patterns * 1.0] * 2))
    )
    learned = layers.ModernHopfield(beta=1.0, num_patterns=5)
    np.testing.assert_allclose(array(learned(patterns)), array(learned(patterns * 1.0)))
