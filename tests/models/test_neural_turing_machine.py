import keras
import numpy as np
import pytest

from kerasattn.data import copy_task
from kerasattn.models import NeuralTuringMachine
from kerasattn.testing import check_model

RANDOM = np.random.default_rng(0)
TINY = dict(input_dim=3, output_dim=2, units=4, num_slots=4, slot_dim=3)


def test_model():
    check_model(
        NeuralTuringMachine,
        {**TINY, "controller": "dense", "seed": 0},
        lambda batch, length: {
            "sequences": RANDOM.normal(size=(batch, length, 3)).astype("float32")
        },
        causal=("hidden", "bit_logits"),
        pad_values={},
        targets=lambda batch, length: RANDOM.integers(0, 2, (batch, length, 2)),
        errors=[({"sequences": np.ones((2, 3), "float32")}, "sequences takes the shape")],
        config_errors=[
            ({"input_dim": 0}, "input_dim must be an int of at least 1"),
            ({"num_slots": 2}, "below half of the 2 slots"),
        ],
        skip={
            "decoding": "it writes nothing",
            "saved_model": "LatticeLSTM has it, as a cell of Keras' RNN",
        },
        lengths=(1, 3),
    )


def test_trace_is_what_the_model_does():
    model = NeuralTuringMachine(**TINY, num_read_heads=2, seed=0)
    x = RANDOM.normal(size=(2, 5, 3)).astype("float32")
    trace = model.trace(x)
    logits = keras.ops.convert_to_numpy(model(x)["bit_logits"])
    np.testing.assert_allclose(trace["bits"], 1 / (1 + np.exp(-logits)), atol=1e-5)
    assert trace["memory"].shape == (2, 5, 4, 3) and trace["adds"].shape == (2, 5, 1, 3)
    assert trace["read_weights"].shape == (2, 5, 2, 4)
    # What is read is the memory as it was before the step's writing.
    reads = np.einsum("blhn,blnd->blhd", trace["read_weights"][:, 1:], trace["memory"][:, :-1])
    np.testing.assert_allclose(trace["reads"][:, 1:], reads, atol=1e-5)
    with pytest.raises(ValueError, match=r"sequences take the shape \(batch, length, 3\)"):
        model.trace(x[..., :2])
    with pytest.raises(ValueError, match="at least one step"):
        model.trace(x[:, :0])


def test_loss_counts_the_steps_that_count():
    model = NeuralTuringMachine(**TINY)
    model.compile("sgd")
    model.run_eagerly = keras.backend.backend() == "tensorflow"  # once: no graph is worth it
    x, bits, counts = copy_task(3, (1, 3), num_bits=2, seed=0)
    logits = model.predict(x, verbose=0)["bit_logits"].astype("float64")
    losses = np.logaddexp(0, logits) - bits * logits
    expected = losses[counts > 0].mean()
    loss = model.evaluate(x, bits, sample_weight=counts, verbose=0)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert abs(expected - losses.mean()) > 1e-4
    told = {"bit_logits": logits.astype("float32")}
    rows = model.compute_loss(None, bits, told, np.array([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(float(rows), losses[[0, 2]].mean(), rtol=1e-5)


@pytest.mark.trains
def test_learns_to_copy():
    """Three bits, later: without a memory of them it could but guess, at a loss of log 2."""
    keras.utils.set_random_seed(0)
    model = NeuralTuringMachine(3, 2, units=16, num_slots=5, slot_dim=4, seed=0)
    model.compile(keras.optimizers.Adam(0.02, global_clipnorm=1.0))
    x, bits, counts = copy_task(2400, (1, 2), num_bits=2, seed=1)
    model.fit(x, bits, sample_weight=counts, batch_size=32, verbose=0)
    model.run_eagerly = True  # once: no graph is worth it
    x, bits, counts = copy_task(100, (2, 2), num_bits=2, seed=2)
    assert model.evaluate(x, bits, sample_weight=counts, verbose=0) < 0.2
