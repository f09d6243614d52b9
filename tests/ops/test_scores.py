import numpy as np
import pytest
from keras import ops

from kerasattn.ops import masks, scores
from kerasattn.ops.attention import attend, masked_softmax

RANDOM = np.random.default_rng(0)
QUERY = RANDOM.normal(size=(2, 3, 4)).astype("float32")
KEY = RANDOM.normal(size=(2, 5, 4)).astype("float32")


def test_scores_follow_their_formulas():
    kernel = RANDOM.normal(size=(4, 4)).astype("float32")
    vector = RANDOM.normal(size=4).astype("float32")
    places = RANDOM.normal(size=(4, 5)).astype("float32")
    for b, q, k in np.ndindex(2, 3, 5):
        one, other = QUERY[b, q], KEY[b, k]
        for found, wanted in (
            (scores.dot(QUERY, KEY, scale=0.5), one @ other / 2),
            (scores.bilinear(QUERY, KEY, kernel), one @ kernel @ other),
            (scores.additive(QUERY, KEY, vector), vector @ np.tanh(one + other)),
            (scores.location(QUERY, places), one @ places[:, k]),
        ):
            np.testing.assert_allclose(found[b, q, k], wanted, rtol=1e-4, atol=1e-5)


def test_scores_of_half_precision_do_not_overflow():
    big = np.full((1, 1, 4), 200.0, "float16")  # the product, 160,000, is beyond float16
    assert float(scores.dot(big, big)[0, 0, 0]) == 160_000
    assert float(scores.bilinear(big, big, np.eye(4, dtype="float16"))[0, 0, 0]) == 160_000


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_attending_to_nothing_gives_zeros(rank):
    real = np.array([[True, True, False, False, False], [False] * 5])
    mask = {
        2: np.zeros((3, 5), bool),
        3: np.repeat(real[:, None], 3, axis=1),
        4: masks.padding(real.astype("int32")),
    }[rank]
    mixed, weights = attend(scores.dot(QUERY, KEY), KEY, mask)
    if rank == 2:
        assert not np.any(mixed) and not np.any(weights)
        return
    assert not np.any(mixed[1]) and not np.any(weights[1])
    alone, _ = attend(scores.dot(QUERY, KEY[:, :2]), KEY[:, :2])
    np.testing.assert_allclose(mixed[0], alone[0], rtol=1e-5, atol=1e-6)


def test_a_mask_of_another_shape_or_dtype_is_refused():
    with pytest.raises(ValueError, match=r"got the dtype float32"):
        attend(scores.dot(QUERY, KEY), KEY, np.ones((3, 5), "float32"))
    with pytest.raises(ValueError, match=r"got the shape \(3, 4\)"):
        attend(scores.dot(QUERY, KEY), KEY, np.ones((3, 4), bool))


def test_softmax_over_two_axes():
    x = RANDOM.normal(size=(2, 3, 4)).astype("float32")
    weights = ops.convert_to_numpy(masked_softmax(x, x > 0, axis=(1, 2)))
    np.testing.assert_allclose(weights.sum(axis=(1, 2)), 1, rtol=1e-6)
    assert not weights[x <= 0].any()


def test_values_may_be_integers_but_not_more_than_keys():
    whole = np.array([[[1, -1], [3, 5]]])
    mixed, _ = attend(np.zeros((1, 1, 2), "float32"), whole)
    np.testing.assert_allclose(ops.convert_to_numpy(mixed), [[[2.0, 2.0]]])
    with pytest.raises(ValueError, match="scores of 5 keys, and 3 values"):
        attend(scores.dot(QUERY, KEY), KEY[:, :3])
