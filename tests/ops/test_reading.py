"""Readers' attention against the papers' formulas, row by row in numpy."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from kerasattn.ops import hard_attention, reading, scores, spans

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def texts(dim=3):
    """A text of 5 words and a question of 4, of which the second row has 3 and 2."""
    context, query = RANDOM.normal(size=(2, 5, dim)), RANDOM.normal(size=(2, 4, dim))
    return context, query, np.arange(5) < [[5], [3]], np.arange(4) < [[4], [2]]


def test_attention_over_attention():
    document, query, real, asked = texts()
    found = reading.attention_over_attention(scores.dot(document, query), real, asked)
    for row, (d, q) in enumerate(((5, 4), (3, 2))):
        matches = document[row, :d] @ query[row, :q].T
        looks = softmax(matches, axis=0)
        words = softmax(matches, axis=1).mean(axis=0)
        np.testing.assert_allclose(array(found[0])[row, :d], looks @ words, atol=1e-6)
        np.testing.assert_allclose(array(found[1])[row, :q], words, atol=1e-6)
    np.testing.assert_allclose(array(found[0]).sum(axis=1), 1, atol=1e-6)
    nothing = reading.attention_over_attention(scores.dot(document, query), real, asked & False)
    assert not any(array(x).any() for x in nothing)


def test_attention_flow():
    context, query, real, asked = texts()
    weights = RANDOM.normal(size=9)
    matches = scores.trilinear(context, query, *np.split(weights, 3))
    found, to_query, to_context = map(
        array, reading.attention_flow(context, query, matches, real, asked)
    )
    for row, (t, j) in enumerate(((5, 4), (3, 2))):
        h, u = context[row, :t], query[row, :j]
        s = np.array([[weights @ np.concatenate([a, b, a * b]) for b in u] for a in h])
        seen = softmax(s, axis=1) @ u
        summary = softmax(s.max(axis=1)) @ h
        expected = np.concatenate([h, seen, h * seen, h * summary], axis=1)
        np.testing.assert_allclose(found[row, :t], expected, atol=1e-5)
        np.testing.assert_allclose(to_context[row, :t], softmax(s.max(axis=1)), atol=1e-6)
        np.testing.assert_allclose(to_query[row, :t, :j], softmax(s, axis=1), atol=1e-6)
    nothing = array(reading.attention_flow(context, query, matches, real, asked & False)[0])
    assert not nothing[..., 3:].any() and np.isfinite(nothing).all()


def test_best_span():
    starts, ends = RANDOM.normal(size=(2, 6, 7))
    real = np.arange(7) < RANDOM.integers(1, 8, (6, 1))
    for longest in (None, 2):
        found = spans.best(starts, ends, real, longest)
        for row in range(6):
            count = real[row].sum()
            pairs = [
                (starts[row, i] + ends[row, j], i, j)
                for i in range(count)
                for j in range(i, min(count, i + (longest or 7)))
            ]
            score, start, end = max(pairs)
            assert [int(x[row]) for x in found[:2]] == [start, end]
            assert abs(float(found[2][row]) - score) < 1e-5
    with pytest.raises(ValueError, match="max_tokens must be at least 1"):
        spans.best(starts, ends, max_tokens=0)


def test_draws():
    logits, mask = (
        RANDOM.normal(size=(3, 4)),
        np.array([[True] * 4, [True, False] * 2, [False] * 4]),
    )
    noise = hard_attention.gumbel(RANDOM.random((20000, 3, 4)))
    drawn = array(hard_attention.draw(np.tile(logits, (20000, 1, 1)), noise, mask))
    expected = softmax(np.where(mask, logits, -np.inf)[:2], axis=-1)
    np.testing.assert_allclose(drawn.mean(axis=0)[:2], expected, atol=0.015)
    assert not drawn[:, 2].any() and set(np.unique(drawn)) == {0.0, 1.0}
    told, entropy = map(array, hard_attention.log_prob(logits, drawn[0], mask))
    log_probs = log_softmax(np.where(mask, logits, -np.inf)[:2], axis=-1)
    np.testing.assert_allclose(told[:2], log_probs[drawn[0, :2] > 0], atol=1e-5)
    of = lambda p: -np.sum(p[p > 0] * np.log(p[p > 0]))
    np.testing.assert_allclose(entropy, [of(expected[0]), of(expected[1]), 0], atol=1e-5)
    assert told[2] == 0
