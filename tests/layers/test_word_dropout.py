import keras
import numpy as np
import pytest

import kerasattn.layers as layers
from kerasattn.training.callbacks import AnnealWeight

IDS = np.random.default_rng(0).integers(4, 100, (200, 50)).astype("int32")
IDS[:, 0], IDS[:, 40], IDS[:, 41:] = 2, 3, 0


def test_hides_the_share_of_words_that_it_says():
    hide = layers.WordDropout(0.3, replacement_id=1, kept_ids=(0, 2, 3), seed=0)
    shown = np.asarray(hide(IDS, training=True))
    words = IDS > 3
    assert shown.dtype == IDS.dtype
    np.testing.assert_array_equal(shown[~words], IDS[~words])
    hidden = shown != IDS
    assert np.all(shown[hidden] == 1)
    assert hidden[words].mean() == pytest.approx(0.3, abs=0.02)
    assert np.any(np.asarray(hide(IDS, training=True)) != shown)  # other words each time
    np.testing.assert_array_equal(np.asarray(hide(IDS)), IDS)


def test_a_seed_repeats():
    first, second = (layers.WordDropout(0.5, 1, seed=3)(IDS, training=True) for _ in range(2))
    np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


def test_saved_equals_loaded(tmp_path):
    token_ids = keras.Input((None,), dtype="int32")
    shown = layers.WordDropout(0.5, 1, kept_ids=(0,), seed=3)(token_ids)
    model = keras.Model(token_ids, shown)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    same = (np.asarray(m(IDS, training=True)) for m in (model, loaded))
    np.testing.assert_array_equal(*same)
    assert loaded.layers[-1].get_config() == model.layers[-1].get_config()


def test_the_rate_follows_a_callback():
    token_ids = keras.Input((4,), dtype="int32")
    shown = layers.WordDropout(0.9, 1, seed=0)(token_ids)
    model = keras.Model(token_ids, keras.layers.Embedding(100, 1)(shown))
    model.compile("sgd", "mse")
    guide = AnnealWeight(2, start=0.9, end=0.0, attribute="word_dropout")
    model.fit(IDS[:6, :4], np.zeros((6, 4, 1)), batch_size=2, verbose=0, callbacks=[guide])
    assert float(model.layers[1].word_dropout) == 0
    np.testing.assert_array_equal(np.asarray(model.layers[1](IDS, training=True)), IDS)


@pytest.mark.parametrize(
    "arguments, message",
    [((1.0, 1), "word_dropout must be from 0"), ((0.5, -1), "replacement_id must not be negative")],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        layers.WordDropout(*arguments)
