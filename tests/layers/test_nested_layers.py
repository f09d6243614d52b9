"""CASES C31: layers that a model keeps in nested lists and dicts are saved with it."""

import keras
import numpy as np
from keras import ops

from kerasattn import heads, layers


@keras.saving.register_keras_serializable(package="tests")
class Nested(keras.Model):
    """Blocks as pairs of parts, under a private name too."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._embeddings = {"token": [layers.TokenEmbedding(10, 8)]}
        self._embeddings["position"] = layers.LearnedPositionEmbedding(12)
        self.blocks = [
            [layers.MultiHeadAttention(2), {"inner": layers.FeedForward(6)}] for _ in range(2)
        ]
        self._last = {"block": (layers.TransformerBlock(2, 6), heads.Pooler())}

    def call(self, token_ids):
        # Keras builds a loaded model on floats.
        x = self._embeddings["token"][0](ops.cast(token_ids, "int32"))
        x = self._embeddings["position"](x)  # (batch, length, 8)
        for attention, feed_forward in self.blocks:
            x = x + feed_forward["inner"](x + attention(x))
        block, pooler = self._last["block"]
        return pooler(block(x))


def test_nested_layers_are_saved(tmp_path):
    random, token_ids = np.random.default_rng(0), np.array([[1, 2, 3]])
    model = Nested()
    model(token_ids)
    for variable in model.weights:
        variable.assign(random.normal(size=variable.shape))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert len(again.weights) == len(model.weights) == 44
    expected, found = (ops.convert_to_numpy(x(token_ids)) for x in (model, again))
    np.testing.assert_array_equal(found, expected)
