import keras
import numpy as np
import pytest

from kerasattn.training import TextMetrics, metrics


def fit(callback, epochs=3):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    x = np.zeros((1, 1))
    return model.fit(x, x, epochs=epochs, verbose=0, callbacks=[callback]).history


def test_scores_stand_in_the_logs():
    texts = iter([["ab", "x"], ["ab", "c"], ["ab", "c"]])
    history = fit(TextMetrics(lambda model: next(texts), ["ab", "c"]))
    assert history["val_exact_match"] == [0.5, 1.0, 1.0]
    expected = metrics.chrf(["ab", "c"], ["ab", "x"])
    assert history["val_chrf"][0] == pytest.approx(expected) and history["val_chrf"][1] > 99


def test_every_so_many_epochs_and_errors():
    history = fit(TextMetrics(lambda model: ["a"], ["a"], {"same": metrics.exact_match}, every=2))
    assert history["same"] == [1.0]
    with pytest.raises(ValueError, match="every"):
        TextMetrics(list, [], every=0)
    with pytest.raises(ValueError, match="as many texts as there are originals, 1; got 2"):
        fit(TextMetrics(lambda model: ["a", "b"], ["a"]))
