import functools

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from kerasattn.ops import sampling
from kerasattn.ops.compiled import compiled

PROBABILITIES = np.array([[0.5, 0.35, 0.1, 0.05]])


def kept(logits, **kwargs):
    return ops.convert_to_numpy(sampling.kept_tokens(logits, **kwargs))


@functools.cache
def _compiled(name, top_k):
    return compiled(lambda x, p: sampling.kept_tokens(x, top_k, **{name: p}), jit=False)


def kept_by(logits, name, p, top_k=None):
    """As `kept`, traced once for all p: the search for the least logit takes many steps."""
    return ops.convert_to_numpy(_compiled(name, top_k)(logits, p))


def kept_by_sorting(logits, top_k, top_p):
    """The definition, in float64 and one row at a time."""
    result = np.zeros(logits.shape, bool)
    for row, values in enumerate(logits.astype("float64")):
        order = np.lexsort((np.arange(len(values)), -values))
        if top_k is not None:
            order = order[:top_k]
        if top_p is not None and top_p < 1:
            p = np.exp(values[order] - values.max())
            sums = np.cumsum(p / p.sum())
            order = order[: 1 + np.searchsorted(sums, top_p - 1e-6)]
        result[row, order] = True
    return result


# CASES C58
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    "top_p, expected", [(0.0, [0]), (1e-8, [0]), (0.5, [0]), (0.9, [0, 1, 2]), (1.0, [0, 1, 2, 3])]
)
def test_top_p_sets(dtype, top_p, expected):
    logits = np.log(PROBABILITIES).astype(dtype)
    assert np.flatnonzero(kept_by(logits, "top_p", top_p)).tolist() == expected
    # In another order, and among tokens that cannot come.
    mixed = np.concatenate([[[-np.inf] * 3], logits[:, ::-1]], axis=1).astype(dtype)
    if top_p < 1:
        assert sorted(6 - np.flatnonzero(kept_by(mixed, "top_p", top_p))) == expected


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    "min_p, expected",
    [(0.0, [0, 1, 2, 3]), (0.15, [0, 1, 2]), (0.5, [0, 1]), (0.69, [0, 1]), (1.0, [0])],
)
def test_min_p_sets(dtype, min_p, expected):
    logits = np.log(PROBABILITIES).astype(dtype)
    assert np.flatnonzero(kept_by(logits, "min_p", min_p)).tolist() == expected
    assert np.flatnonzero(kept_by(logits + 7, "min_p", min_p, top_k=2)).tolist() == expected[:2]
    assert kept_by(np.zeros((1, 4), dtype), "min_p", min_p).all()  # equals of the best
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="min_p"):
            kept(logits, min_p=wrong)


def test_top_p_renormalised():
    filtered = sampling.filter_logits(np.log(PROBABILITIES).astype("float32"), top_p=0.9)
    p = ops.convert_to_numpy(ops.softmax(filtered))
    np.testing.assert_allclose(p, [[0.526316, 0.368421, 0.105263, 0]], atol=1e-6)


def test_tie_exactly_at_p():
    """The set [.5, .3, .2] at .5, of which keras-hub keeps two."""
    for dtype in ("float32", "float16"):
        assert kept(np.log([[0.5, 0.3, 0.2]]).astype(dtype), top_p=0.5).tolist() == [
            [True, False, False]
        ]


@pytest.mark.parametrize("top_p", [-0.1, 1.1, -1, 2])
def test_top_p_out_of_range(top_p):
    with pytest.raises(ValueError, match="top_p"):
        sampling.kept_tokens(np.zeros((1, 3), "float32"), top_p=top_p)
    with pytest.raises(ValueError, match="top_k"):
        sampling.kept_tokens(np.zeros((1, 3), "float32"), top_k=0)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    vocabulary=st.sampled_from([2, 7, 64, 65]),
    top_k=st.none() | st.integers(1, 70),
    top_p=st.none() | st.floats(0, 1, width=32),
    coarse=st.booleans(),
)
def test_same_as_sorting(seed, vocabulary, top_k, top_p, coarse):
    logits = np.random.default_rng(seed).normal(size=(3, vocabulary)) * 4
    logits = (np.round(logits) if coarse else logits).astype("float32")  # coarse: many ties
    got = kept(logits, top_k=top_k, top_p=top_p)
    if top_p is not None and not coarse:
        # The sum may lie within rounding of top_p: one token more or less there.
        low = kept_by_sorting(logits, top_k, max(top_p - 3e-6, 0))
        high = kept_by_sorting(logits, top_k, min(top_p + 3e-6, 1))
        assert np.all(low <= got) and np.all(got <= high)
    elif top_p is None:
        np.testing.assert_array_equal(got, kept_by_sorting(logits, top_k, None))
    assert got.any(axis=1).all()


def test_equal_logits_go_by_id():
    assert kept(np.zeros((1, 5), "float32"), top_k=2).tolist() == [
        [True, True, False, False, False]
    ]
    assert kept(np.zeros((1, 4), "float32"), top_p=0.5).sum() == 2
    signed = np.array([[-1.0, -0.0, 0.0, -2.0]], "float32")
    assert kept(signed, top_k=1).tolist() == [[False, True, False, False]]


def test_draw_inverts_the_distribution():
    """Evenly spaced numbers hit each token as often as its probability says."""
    p = np.array([0.1, 0.0, 0.4, 0.5, 0.0])
    with np.errstate(divide="ignore"):
        logits = np.tile(np.log(p), (1000, 1)).astype("float32")
    uniform = (np.arange(1000, dtype="float32") + 0.5) / 1000
    tokens = ops.convert_to_numpy(sampling.draw(logits, uniform))
    assert np.bincount(tokens, minlength=5).tolist() == [100, 0, 400, 500, 0]
    assert np.all(np.diff(tokens) >= 0)


def test_draw_at_the_ends_never_gives_an_impossible_token():
    logits = np.full((2, 9), -np.inf, "float32")
    logits[:, [3, 5]] = 0
    ends = np.array([0.0, np.nextafter(np.float32(1), np.float32(0))], "float32")
    assert ops.convert_to_numpy(sampling.draw(logits, ends)).tolist() == [3, 5]


def test_temper_does_not_overflow():
    logits = np.array([[1.0, 3.0, 2.0]], "float32")
    p = ops.convert_to_numpy(ops.softmax(sampling.temper(logits, np.float32(1e-30))))
    assert p.tolist() == [[0, 1, 0]]
    half = ops.convert_to_numpy(ops.softmax(sampling.temper(logits, 0.5)))
    expected = np.exp([2.0, 6, 4]) / np.exp([2.0, 6, 4]).sum()
    np.testing.assert_allclose(half[0], expected, rtol=1e-5)


def test_bfloat16_logits():
    logits = ops.cast(np.log(PROBABILITIES).astype("float32"), "bfloat16")
    assert kept(logits, top_p=0.9).tolist() == [[True, True, True, False]]
    assert keras.backend.standardize_dtype(sampling.filter_logits(logits, 2).dtype) == "float32"
