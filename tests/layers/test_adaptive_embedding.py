"""Clusters of tokens: vectors of falling widths, and log-probabilities of the same clusters."""

import numpy as np
import pytest
from keras import ops

from kerasattn.layers import AdaptiveEmbedding, AdaptiveSoftmax
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
SIZES = dict(vocabulary_size=11, hidden_dim=6, embedding_dim=8, cutoffs=[3, 7], divisor=2)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def weights_of(layer):
    return {w.path.split("/")[-1]: array(w.value) for w in layer.weights}


def log_softmax(x):
    return x - np.log(np.exp(x).sum())


def test_rare_tokens_have_narrow_vectors():
    layer = AdaptiveEmbedding(**SIZES)
    found = array(layer(np.array([[2, 3, 10]])))[0]
    weights = weights_of(layer)
    assert [weights[f"embeddings_{i}"].shape for i in range(3)] == [(3, 8), (4, 4), (4, 2)]
    for vector, (cluster, row) in zip(found, [(0, 2), (1, 0), (2, 3)], strict=True):
        expected = weights[f"embeddings_{cluster}"][row] @ weights[f"projection_{cluster}"]
        np.testing.assert_allclose(vector, expected * 6**0.5, rtol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_log_probabilities_of_clusters(tied):
    embedding = AdaptiveEmbedding(**SIZES)
    layer = AdaptiveSoftmax(embedding, tied)
    hidden = RANDOM.normal(size=(1, 1, 6)).astype("float32")
    layer(hidden)
    for weight in layer.weights:
        weight.assign(RANDOM.normal(size=weight.shape))
    weights = weights_of(embedding)
    others = {id(weight) for weight in embedding.weights}
    own = [weight for weight in layer.weights if id(weight) not in others]
    assert any("embeddings_0" in weight.path for weight in own) == (not tied)
    weights |= {weight.path.split("/")[-1]: array(weight.value) for weight in own}
    logits = [
        hidden[0, 0] @ weights[f"projection_{i}"].T @ weights[f"embeddings_{i}"].T
        + weights[f"bias_{i}"]
        for i in range(3)
    ]
    clusters = hidden[0, 0] @ weights["projection_0"].T @ weights["cluster_embeddings"].T
    first = log_softmax(np.concatenate([logits[0], clusters + weights["cluster_bias"]]))
    expected = [first[:3], *(first[2 + i] + log_softmax(logits[i]) for i in (1, 2))]
    np.testing.assert_allclose(array(layer(hidden))[0, 0], np.concatenate(expected), atol=1e-5)


def test_one_table_without_clusters():
    embedding = AdaptiveEmbedding(11, 6)
    found = array(AdaptiveSoftmax(embedding)(np.ones((1, 2, 6), "float32")))
    expected = log_softmax(weights_of(embedding)["embeddings_0"].sum(axis=1))
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-5)


@pytest.mark.slow
def test_layer():
    check_layer(
        AdaptiveEmbedding,
        SIZES,
        lambda batch, length: RANDOM.integers(0, 11, (batch, length)).astype("int32"),
        config_errors=[({"cutoffs": [7, 3]}, "must rise"), ({"divisor": 5}, "at least 1")],
        skip={"saved_model": "TokenEmbedding has it"},
        lengths=(1, 4),
    )


def test_projections_are_as_many_as_clusters():
    with pytest.raises(ValueError, match="must be 3 bools"):
        AdaptiveSoftmax(AdaptiveEmbedding(**SIZES), tied_projections=[True])
