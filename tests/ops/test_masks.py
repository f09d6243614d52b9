"""Masks: equal to their definitions, query by query and key by key, and to the reference's."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerasattn.ops import masks

fast = settings(max_examples=25, deadline=None)


def array(mask):
    return np.asarray(keras.ops.convert_to_numpy(mask))


def by_definition(rule, batch, queries, keys):
    """The mask (batch, 1, query, key) of `rule(row, query, key) -> bool`, by loops."""
    return np.array(
        [[[[rule(b, i, j) for j in range(keys)] for i in range(queries)]] for b in range(batch)],
        "bool",
    )


def assert_is(mask, rule, batch, queries, keys):
    mask = array(mask)
    assert mask.dtype == bool
    expected = by_definition(rule, batch, queries, keys)
    np.testing.assert_array_equal(np.broadcast_to(mask, expected.shape), expected)


@st.composite
def halves(draw):
    """0s, then 1s, in a few rows of one length, as (batch, length) segment ids."""
    length = draw(st.integers(1, 8))
    firsts = draw(st.lists(st.integers(0, length), min_size=1, max_size=3))
    return np.array([[int(i >= first) for i in range(length)] for first in firsts], "int32")


def matrices(low, high, min_length=1):
    return st.tuples(st.integers(1, 3), st.integers(min_length, 6), st.integers(0, 2**31)).map(
        lambda s: np.random.default_rng(s[2]).integers(low, high + 1, s[:2]).astype("int32")
    )


# === Each by its definition ===


@fast
@given(matrices(0, 3), st.integers(0, 3))
def test_padding(ids, pad_id):
    assert_is(
        masks.padding(ids, pad_id), lambda b, i, j: ids[b, j] != pad_id, len(ids), 1, ids.shape[1]
    )
    real = ids != pad_id
    np.testing.assert_array_equal(array(masks.keys(real)), array(masks.padding(ids, pad_id)))


@fast
@given(st.integers(1, 6), st.integers(0, 4), st.booleans())
def test_causal(queries, more, reverse):
    """The queries are the last of the keys; read from right to left, the first."""
    query, key = np.zeros((2, queries), "int32"), np.zeros((2, queries + more), "int32")

    def rule(b, i, j):
        return j >= i if reverse else j <= i + more

    assert_is(masks.causal(query, key, reverse), rule, 2, queries, queries + more)
    if not more:
        assert_is(masks.causal(query, reverse=reverse), rule, 2, queries, queries)


@fast
@given(halves())
def test_prefix(segments):
    def rule(b, i, j):
        return segments[b, j] == 0 or (segments[b, i] == 1 and j <= i)

    assert_is(masks.prefix(segments), rule, *segments.shape, segments.shape[1])


@fast
@given(halves(), st.booleans())
def test_autoencoder(segments, latent):
    def rule(b, i, j):
        same = segments[b, i] == segments[b, j]
        return (same and (segments[b, i] == 0 or j <= i)) or (latent and j == 0)

    assert_is(masks.autoencoder(segments, latent=latent), rule, *segments.shape, segments.shape[1])


@fast
@given(st.integers(1, 8), st.integers(0, 9), st.integers(0, 9))
def test_window(length, before, after):
    ids = np.zeros((2, length), "int32")
    rule = lambda b, i, j: -before <= j - i <= after
    assert_is(masks.window(ids, before, after), rule, 2, length, length)


@fast
@given(matrices(0, 2))
def test_segment(segments):
    rule = lambda b, i, j: segments[b, i] == segments[b, j]
    assert_is(masks.segment(segments), rule, *segments.shape, segments.shape[1])
    assert_is(masks.segment(segments[:, :1], segments), rule, len(segments), 1, segments.shape[1])


@fast
@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from(["int32", "bool", "float32"]),
)
def test_visible(batch, queries, keys, dtype):
    matrix = np.random.default_rng(keys).integers(0, 2, (batch, queries, keys)).astype(dtype)
    assert_is(masks.visible(matrix), lambda b, i, j: matrix[b, i, j] != 0, batch, queries, keys)


@fast
@given(st.permutations(range(6)), st.booleans())
def test_permutation(order, include_self):
    """The content stream sees itself, the query stream does not."""
    rank = np.array([order])
    before = lambda b, i, j: order[j] < order[i] or (include_self and i == j)
    assert_is(masks.permutation(rank, include_self), before, 1, 6, 6)


def test_the_masks_of_the_reference(golden):
    numbers = np.load(golden("univae_reference") / "golden.npz")
    segments = numbers["segment_ids"].astype("int32")
    np.testing.assert_array_equal(
        array(masks.autoencoder(segments))[:, 0], numbers["visible_plain"].astype(bool)
    )
    np.testing.assert_array_equal(
        array(masks.autoencoder(segments, latent=True))[:, 0], numbers["visible_first"].astype(bool)
    )
    np.testing.assert_array_equal(
        array(masks.padding(numbers["token_ids"]))[:, 0, 0], numbers["key_mask"].astype(bool)
    )


# === As values ===


def test_masks_join_and_broadcast():
    ids = np.array([[5, 6, 0]], "int32")
    mask = array(masks.causal(ids) & masks.padding(ids))
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]


def test_c24_memory_as_more_keys_than_queries():
    """Memory of 2 before a segment of 2: the first slot of the memory is visible."""
    mask = array(masks.causal(np.zeros((1, 2)), np.zeros((1, 4))))
    np.testing.assert_array_equal(mask[0, 0], np.array([[1, 1, 1, 0], [1, 1, 1, 1]], "bool"))
    # Of an equal span for every row: the two keys before itself, as the pull request has it.
    spans = array(masks.window(np.zeros((1, 4)), before=2))[0, 0, 2:]
    np.testing.assert_array_equal(spans, np.array([[1, 1, 1, 0], [0, 1, 1, 1]], "bool"))


def test_lengths_may_be_unknown():
    ids = keras.Input((None,), dtype="int32")
    matrix = keras.Input((None, None), dtype="int32")
    outputs = [
        masks.padding(ids),
        masks.causal(ids),
        masks.causal(ids, reverse=True),
        masks.causal(ids[:, 1:], ids),
        masks.prefix(ids),
        masks.autoencoder(ids, latent=True),
        masks.window(ids, 1, 1),
        masks.segment(ids),
        masks.visible(matrix),
        masks.permutation(ids),
    ]
    model = keras.Model([ids, matrix], outputs)
    for length in (2, 5):
        values = np.array([[0, 1, 1, 1, 1]], "int32")[:, :length]
        square = np.eye(length, dtype="int32")[None]
        symbolic = [array(mask) for mask in model([values, square])]
        assert all(mask.dtype == bool and mask.shape[-1] == length for mask in symbolic)
        np.testing.assert_array_equal(symbolic[3], array(masks.causal(values[:, 1:], values)))
        np.testing.assert_array_equal(symbolic[5], array(masks.autoencoder(values, latent=True)))


def test_positions():
    np.testing.assert_array_equal(array(masks.positions(np.full((2, 4), 9))), [[0, 1, 2, 3]] * 2)
    assert array(masks.positions(np.ones((1, 0), "int32"))).shape == (1, 0)


def test_errors():
    with pytest.raises(ValueError, match="0 or more keys each way, got -1 and 0"):
        masks.window(np.zeros((1, 3)), before=-1)
    with pytest.raises(
        ValueError, match=r"visible takes \(batch, query, key\), got the shape \(3, 3\)"
    ):
        masks.visible(np.eye(3))


@pytest.mark.parametrize("given", [4, np.array([7, 8, 9])])
@pytest.mark.parametrize(
    "function",
    [
        masks.autoencoder,
        masks.causal,
        lambda x: masks.causal(np.ones((1, 4)), x),
        masks.keys,
        masks.padding,
        masks.permutation,
        masks.positions,
        masks.prefix,
        masks.real_positions,
        lambda x: masks.recent(x, x, 2),
        masks.segment,
        lambda x: masks.segment(np.ones((1, 4)), x),
        masks.visible,
        lambda x: masks.window(x, 1),
    ],
)
def test_lengths_and_lone_sequences_are_refused(function, given):
    with pytest.raises(ValueError, match=r"\(batch, length\).*got the shape \((3,)?\)"):
        function(given)
