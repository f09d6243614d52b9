"""CASES C5: layers that leave the time axis alone keep an implicit Keras mask."""

import keras
import numpy as np
import pytest

from kerasattn import layers

KEEPING = [
    layers.FeedForward(7, activation="relu"),
    layers.FeedForward(7, gated=True),
    layers.SinusoidalPositionEncoding(),
    layers.SinusoidalPositionEncoding(mode="concatenate", encoding_dim=3),
    layers.LearnedPositionEmbedding(9),
    layers.LearnedPositionEmbedding(2, hierarchical=True),
    layers.LanguageModelHead(vocabulary_size=11, activation="gelu"),
]


@pytest.mark.parametrize("layer", KEEPING, ids=lambda layer: type(layer).__name__)
def test_pooling_after_the_layer_does_not_see_padding(layer):
    layer = type(layer).from_config(layer.get_config())
    token_ids = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(5, 6, mask_zero=True)(token_ids)
    steps = layer(embedded)
    pooled = keras.layers.GlobalAveragePooling1D()(steps)
    model = keras.Model(token_ids, [steps, pooled])
    padded, padded_mean = (np.asarray(y) for y in model(np.array([[1, 2, 0]])))
    alone, alone_mean = (np.asarray(y) for y in model(np.array([[1, 2]])))
    np.testing.assert_allclose(padded[:, :2], alone, atol=1e-6)
    np.testing.assert_allclose(padded_mean, alone_mean, atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [layers.RelativePositionBias(2), layers.RelativePositionEmbedding(4)],
    ids=lambda layer: type(layer).__name__,
)
def test_a_table_of_distances_takes_no_mask_along(layer):
    layer = type(layer).from_config(layer.get_config())
    token_ids = keras.Input((None,), dtype="int32")
    table = layer(keras.layers.Embedding(5, 6, mask_zero=True)(token_ids))
    assert getattr(table, "_keras_mask", None) is None
