import json

import keras
import numpy as np
import pytest

from kerasattn.layers import RelativePositionBias
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def x(batch, length):
    return RANDOM.normal(size=(batch, length, 6)).astype("float32")


def filled(**kwargs):
    layer = RelativePositionBias(4, **kwargs)
    layer.build((None, None, 6))
    layer.set_weights([RANDOM.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def placed(batch, length):
    ids = RANDOM.integers(0, 40, size=(2, batch, length)).astype("int32")
    return {"query": x(batch, length), "query_positions": ids[0], "key_positions": ids[1]}


@pytest.mark.parametrize("bidirectional", [True, False])
def test_layer(bidirectional):
    check_layer(
        RelativePositionBias,
        {"num_heads": 3, "num_buckets": 8, "max_distance": 20, "bidirectional": bidirectional},
        placed,
        config_errors=[
            ({"num_heads": 0}, "num_heads must be at least 1"),
            ({"num_buckets": 1}, "num_buckets must be at least"),
            ({"max_distance": 2}, "max_distance more than"),
        ],
        skip=dict.fromkeys(("save", "saved_model"), "T5, with it inside, has it")
        if bidirectional
        else dict.fromkeys(
            ("config", "save", "precision", "jit", "saved_model"), "the bidirectional one has it"
        ),
        lengths=(1, 4),
    )


@pytest.mark.parametrize("name", ["t5_relative_bidirectional", "t5_relative_causal"])
def test_bert4keras(golden, name):
    folder = golden(f"bert4keras/layers/{name}")
    case = json.loads((folder / "case.json").read_text())["constructor"]
    data = np.load(folder / "golden.npz")
    layer = RelativePositionBias(4, bidirectional=case.get("bidirectional", True))
    query, key = data["in_0"], data["in_1"]
    layer.build(query.shape)
    layer.set_weights([data["w/embeddings"]])
    got = np.asarray(layer(query, key))
    np.testing.assert_allclose(got[0].transpose(1, 2, 0), data["out_0"], atol=1e-6)


# CASES C22: a decoder's keys that stand later share bucket 0, and each query sees distances.
def test_distances_of_buckets():
    layer, query = filled(bidirectional=False), x(1, 1)
    table = layer.get_weights()[0]
    ids = 200 + np.array([[-128, -20, -8, -1, 0, 1, 8, 20, 128]])
    got = np.asarray(layer(query, query_positions=np.array([[200]]), key_positions=ids))
    buckets = [31, 17, 8, 1, 0, 0, 0, 0, 0]
    np.testing.assert_array_equal(got[0, :, 0].T, table[buckets])


@pytest.mark.parametrize("bidirectional", [True, False])
def test_cached_decoding_sees_the_same_bias(bidirectional):
    layer, cache = filled(bidirectional=bidirectional), x(2, 40)
    whole = np.asarray(layer(cache))
    assert whole.shape == (1, 4, 40, 40)
    for index in (0, 17, 39):
        step = layer(cache[:, :1], cache, query_positions=np.array([index]))
        np.testing.assert_array_equal(step, whole[:, :, index : index + 1])


# CASES C14: with padding on the left, positions count real tokens only.
def test_positions_of_each_row():
    layer = filled()
    whole = np.asarray(layer(x(1, 5)))
    ids = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
    got = np.asarray(layer(x(2, 5), query_positions=ids, key_positions=ids))
    assert got.shape == (2, 4, 5, 5)
    np.testing.assert_array_equal(got[0, :, 2:, 2:], whole[0, :, :3, :3])
    np.testing.assert_array_equal(got[1], whole[0])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_is_float32_as_scores_are(policy):
    layer = filled(dtype=policy)
    bias = layer(x(1, 3))
    assert keras.backend.standardize_dtype(bias.dtype) == "float32"
    np.testing.assert_array_equal(np.asarray(bias)[0, :, 0, 0], layer.get_weights()[0][0])
    symbolic = layer(keras.Input((None, 6)))
    assert (symbolic.dtype, symbolic.shape) == ("float32", (1, 4, None, None))
