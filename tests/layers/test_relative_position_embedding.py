import keras
import numpy as np
import pytest

from kerasattn.layers import RelativePositionEmbedding
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def x(batch, length):
    return RANDOM.normal(size=(batch, length, 6)).astype("float32")


def placed(batch, length):
    ids = RANDOM.integers(0, 40, size=(2, batch, length)).astype("int32")
    return {"query": x(batch, length), "query_positions": ids[0], "key_positions": ids[1]}


@pytest.mark.parametrize("learned", [True, False])
def test_layer(learned):
    skip = {"fit": "no weights"}
    skip |= dict.fromkeys(("save", "precision", "jit", "saved_model"), "the learned one has it")
    check_layer(
        RelativePositionEmbedding,
        {"embedding_dim": 5, "max_distance": 3, "learned": learned},
        placed,
        config_errors=[
            ({"embedding_dim": 0}, "embedding_dim must be at least 1"),
            ({"max_distance": -1}, "max_distance at least 0"),
        ],
        skip={} if learned else skip,
        lengths=(1, 4),
    )


def test_bert4keras(golden):
    data = np.load(golden("bert4keras/layers/relative_position") / "golden.npz")
    layer = RelativePositionEmbedding(6, max_distance=4, learned=True)
    layer.build(data["in_0"].shape)
    layer.set_weights([data["w/embeddings"]])
    np.testing.assert_array_equal(layer(data["in_0"], data["in_1"]), data["out_0"])


@pytest.mark.parametrize("dim", [8, 5])
def test_fixed_rows_are_sinusoids_of_the_clipped_distance(dim):
    got = np.asarray(RelativePositionEmbedding(dim, max_distance=3)(x(1, 6), x(1, 9)))
    row = np.clip(np.arange(9)[None] - np.arange(6)[:, None], -3, 3) + 3
    i = np.arange(dim)
    angles = row[..., None] / 10000.0 ** (2 * (i // 2) / dim)
    np.testing.assert_allclose(got, np.where(i % 2, np.cos(angles), np.sin(angles)), atol=2e-6)


def test_cached_decoding_and_positions_of_each_row():
    layer, cache = RelativePositionEmbedding(4, 3), x(2, 7)
    whole = np.asarray(layer(cache))
    step = layer(cache[:, :1], cache, query_positions=np.array([5]))
    np.testing.assert_array_equal(step, whole[5:6])
    ids = np.array([[0, 0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6]])
    rows = np.asarray(layer(cache, query_positions=ids, key_positions=ids))
    assert rows.shape == (2, 7, 7, 4)
    np.testing.assert_array_equal(rows[0, 1:, 1:], whole[:6, :6])
    np.testing.assert_array_equal(rows[1], whole)


@pytest.mark.parametrize("learned", [True, False])
def test_rows_are_in_the_compute_dtype(learned):
    layer = RelativePositionEmbedding(4, learned=learned, dtype="mixed_bfloat16")
    assert keras.backend.standardize_dtype(layer(x(1, 3)).dtype) == "bfloat16"
