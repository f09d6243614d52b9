import numpy as np

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def features(batch, length):
    return RANDOM.integers(0, 5, (batch, length, 8)).astype("int32")


def test_scores_are_sums_of_rows():
    layer = layers.FeatureScores(4, 2)
    ids = features(2, 3)
    layer.build(ids.shape)
    table = RANDOM.normal(size=(5, 2)).astype("float32")
    layer.set_weights([table])
    table[0] = 0
    np.testing.assert_allclose(np.asarray(layer(ids)), table[ids].sum(axis=2), atol=1e-6)


def test_layer():
    check_layer(
        layers.FeatureScores,
        {"num_features": 4, "num_tags": 2},
        features,
        errors=[(np.ones((2, 3), "int32"), "features of a step")],
        config_errors=[({"num_tags": 0}, "at least 1")],
        skip={
            "config": "an initializer's config says more than its name",
            "saved_model": "as other layers of ids",
            "save": "one of a kind is saved elsewhere",
        },
        lengths=(1, 3),
    )
