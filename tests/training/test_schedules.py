"""The learning rate at each step, whichever way the steps are taken."""

import keras
import numpy as np
import pytest

from kerasattn.training.schedules import InverseSquareRoot, WarmupCosine

PEAK, STEPS, WARMUP = 0.5, 12, 4


def by_formula(step):
    """Linear to the peak, then a cosine to a hundredth of it; arXiv:1608.03983, equation 5."""
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    t = (step + 1 - WARMUP) / (STEPS - WARMUP)
    return PEAK * (0.01 + 0.99 * (1 + np.cos(np.pi * t)) / 2)


class Rates(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_begin(self, batch, logs=None):
        self.seen.append(float(self.model.optimizer.learning_rate))


def made(**options):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(9.0), "mse", jit_compile=False, **options)
    return model


def fit(model, steps, epochs=1, schedule=None):
    rates, x = Rates(), np.zeros((steps, 1))
    schedule = schedule or WarmupCosine(PEAK, STEPS, WARMUP)
    model.fit(x, x, 1, epochs, verbose=0, callbacks=[schedule, rates])
    return rates.seen


def test_the_rate_of_each_step():
    expected = [by_formula(step) for step in range(STEPS)]
    np.testing.assert_allclose(fit(made(), 6, epochs=2), expected, rtol=1e-5)


def test_goes_on_where_the_optimizer_is():
    """Another call of fit with another callback, as a resumed run has."""
    model = made()
    seen = fit(model, 5) + fit(model, 7)
    np.testing.assert_allclose(seen, [by_formula(step) for step in range(STEPS)], rtol=1e-5)


def test_an_epoch_may_begin_in_the_middle_of_a_step():
    """Gradients of two batches are one step, and an epoch has five batches."""
    model = made(run_eagerly=True)
    model.optimizer.gradient_accumulation_steps = 2
    seen = fit(model, 5, epochs=2)
    np.testing.assert_allclose(seen, [by_formula(batch // 2) for batch in range(10)], rtol=1e-5)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="takes one step an execution")
def test_several_steps_in_one_execution():
    """The rate is that of the first of them; none is left out or counted twice."""
    model = made(steps_per_execution=3)
    seen = fit(model, 6) + fit(model, 6)
    np.testing.assert_allclose(seen, [by_formula(step) for step in (0, 3, 6, 9)], rtol=1e-5)


def test_the_transformers_rate():
    """arXiv:1706.03762, equation 3, whose steps count from 1."""
    n = np.arange(1, 13)
    expected = 2 * 16**-0.5 * np.minimum(n**-0.5, n * 4**-1.5)
    seen = fit(made(), 6, epochs=2, schedule=InverseSquareRoot(16, warmup_steps=4, factor=2.0))
    np.testing.assert_allclose(seen, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="warmup_steps"):
        InverseSquareRoot(16, warmup_steps=0)
