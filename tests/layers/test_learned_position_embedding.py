import keras
import numpy as np
import pytest

from kerasattn.layers import LearnedPositionEmbedding
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def x(batch, length, dim=6):
    return RANDOM.normal(size=(batch, length, dim)).astype("float32")


def layer_of(table, **kwargs):
    layer = LearnedPositionEmbedding(len(table), **kwargs)
    layer.build((None, None, table.shape[1]))
    layer.set_weights([table])
    return layer


@pytest.mark.parametrize("hierarchical", [False, 0.3])
def test_layer(hierarchical):
    end = 9 if hierarchical else 8
    check_layer(
        LearnedPositionEmbedding,
        {"max_length": 3 if hierarchical else 8, "hierarchical": hierarchical, "mode": "multiply"},
        x,
        errors=[
            (np.ones((1, end + 1, 6), "float32"), rf"in \[0, {end}\), got 0 to {end}"),
            (np.ones((1, 6), "float32"), r"must be \(batch, length, dim\)"),
        ],
        config_errors=[
            ({"max_length": 0}, "max_length must be at least 1"),
            ({"hierarchical": 1.5}, "hierarchical must be a bool or in"),
            ({"mode": "sum"}, "mode must be one of"),
        ],
        skip=dict.fromkeys(
            ("save", "precision", "jit", "saved_model"), "the hierarchical one has it"
        )
        if not hierarchical
        else {},
    )


def test_hierarchical_of_bert4keras(golden):
    data = np.load(golden("bert4keras/layers/position_hierarchical") / "golden.npz")
    layer = layer_of(data["w/embeddings"], hierarchical=True)
    np.testing.assert_allclose(layer(data["in_0"]), data["out_0"], atol=2e-6, rtol=0)


# CASES C20
def test_table_of_four():
    table = np.array([[1.0], [2.0], [3.0], [4.0]], "float32")
    layer = layer_of(table, hierarchical=True, mode=None)
    got = np.asarray(layer(np.zeros((1, 16, 1), "float32")))[0, :, 0]
    assert got[:4].tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(got[[5, 15]], [2.66667, 6.0], atol=1e-5)
    one = np.zeros((1, 1, 1), "float32")
    for arguments in (
        {"start_index": 16},
        {"position_ids": np.array([[16]])},
        {"position_ids": np.array([[-1]])},
    ):
        with pytest.raises(ValueError, match=r"in \[0, 16\)"):
            layer(one, **arguments)
    np.testing.assert_array_equal(layer_of(table)(one, start_index=3), [[[4.0]]])
    with pytest.raises(ValueError, match=r"in \[0, 4\), got 4 to 4.*hierarchical=True"):
        layer_of(table)(one, start_index=4)


def test_modes():
    table, features = x(1, 3)[0], x(2, 3)
    np.testing.assert_allclose(layer_of(table)(features), features + table, atol=1e-6)
    np.testing.assert_allclose(
        layer_of(table, mode="multiply")(features), features * (1 + table), atol=1e-6
    )
    both = np.asarray(layer_of(table, mode="concatenate")(features))
    np.testing.assert_array_equal(both[..., :6], features)
    np.testing.assert_array_equal(both[..., 6:], np.stack([table, table]))
    np.testing.assert_array_equal(layer_of(table, mode=None)(features), table[None])


def test_position_ids_and_start_of_each_row():
    table, features = x(1, 9)[0], x(2, 3)
    layer, ids = layer_of(table), np.array([[0, 0, 1], [8, 3, 2]])
    np.testing.assert_allclose(layer(features, ids), features + table[ids], atol=1e-6)
    ids = np.array([[5, 6, 7], [0, 1, 2]])
    got = layer(features, start_index=np.array([5, 0]))
    np.testing.assert_allclose(got, features + table[ids], atol=1e-6)


def test_a_fixed_length_past_the_end_fails_when_the_model_is_made():
    with pytest.raises(ValueError, match=r"in \[0, 4\), got 0 to 4"):
        LearnedPositionEmbedding(4)(keras.Input((5, 6)))
    LearnedPositionEmbedding(4)(keras.Input((None, 6)))  # not known yet


def test_path():
    layer = LearnedPositionEmbedding(4, name="position_embedding")
    layer(x(1, 2))
    assert [w.path for w in layer.weights] == ["position_embedding/embeddings"]
