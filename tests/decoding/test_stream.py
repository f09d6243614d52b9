"""Tokens as they come, and scores of given ones."""

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding


def test_a_stream_is_what_generate_gives(markov):
    strategy = decoding.Sampling(0.8, top_k=4)
    decoder = markov.random(1, vocabulary=6, steps=5, kinds=3)
    options = dict(
        start_ids=[1, 2, 3],
        end_id=0,
        pad_id=5,
        seed=3,
        max_new_tokens=7,
        processors=[decoding.RepetitionPenalty(1.2)],
        jit=False,
    )
    inputs = markov.inputs([0, 1, 2])
    whole = decoding.generate(decoder, inputs, strategy, **options)
    before = len(decoder._compiled_loops)
    for _ in range(2):
        steps = list(decoding.generate(decoder, inputs, strategy, stream=True, **options))
        np.testing.assert_array_equal(np.stack(steps, axis=1), whole[:, : len(steps)])
        assert np.all(whole[:, len(steps) :] == 5)
    loops = list(decoder._compiled_loops.values())[before:]
    assert [loop.traces for loop in loops] == [1, 1]
    first = next(decoding.generate(decoder, inputs, strategy, stream=True, **options))
    np.testing.assert_array_equal(first, whole[:, 0])


def test_a_stream_ends_with_its_rows(markov):
    decoder = markov(np.log([[[[0.1, 0.9]] * 2]]))
    run = lambda **options: list(
        decoding.generate(decoder, markov.inputs([0, 0]), start_ids=[1, 1], stream=True, **options)
    )
    assert len(run(max_new_tokens=5, limits=[1, 3])) == 3
    assert len(run(max_new_tokens=5, end_id=1)) == 1
    assert run(max_new_tokens=0) == []


def test_scores_of_given_tokens(markov):
    decoder = markov.random(2, vocabulary=5, steps=4, kinds=3)
    kinds, starts = np.arange(3), np.array([1, 2, 3])
    token_ids = np.random.default_rng(0).integers(1, 5, (3, 6))
    token_ids[0, 2] = 0
    got = decoding.score(
        decoder, markov.inputs(kinds), token_ids, start_ids=starts, end_id=0, length_penalty=1.0,
        jit=False,
    )  # fmt: skip
    for row, length in enumerate((3, 6, 6)):
        own = decoder.log_probs(row, starts[row], token_ids[row, :length])
        np.testing.assert_allclose(got.log_probs[row, :length], own, atol=1e-5)
        assert not got.log_probs[row, length:].any()
        np.testing.assert_allclose(got.scores[row], own.mean(), rtol=1e-5)
    mask = np.arange(6) < np.array([2, 6, 0])[:, None]
    masked = decoding.score(
        decoder, markov.inputs(kinds), token_ids, start_ids=starts, padding_mask=mask, jit=False
    )
    expected = np.where(mask, got.log_probs, 0).sum(axis=1)
    np.testing.assert_allclose(masked.scores, expected, rtol=1e-5)
    assert [loop.traces for loop in decoder._compiled_loops.values()] == [1]


def test_what_is_no_token_is_never_written():
    """Of a decoder that does not say how many tokens there are."""

    def either(token_ids, index, state):
        return 0.0 * ops.one_hot(token_ids, 2), state

    given = [[0, 5], [1, 1]]
    found = decoding.score(either, (), given, start_ids=[0, 1], jit=False).log_probs
    half = np.log(0.5)
    np.testing.assert_allclose(found, [[half, -np.inf], [half, half]], rtol=1e-6)


def test_errors(markov):
    decoder = markov.random(0)
    for changes, words in (
        (dict(token_ids=[[1, 3]]), r"token_ids must be in \[0, 3\)"),
        (dict(token_ids=[1, 2]), r"\(1, length\)"),
        (dict(padding_mask=[[True]]), "padding_mask"),
        (dict(end_id=7), "end_id"),
    ):
        given = {"token_ids": [[1, 2]], "start_ids": [1], **changes}
        with pytest.raises(ValueError, match=words):
            decoding.score(decoder, markov.inputs([0]), **given)
