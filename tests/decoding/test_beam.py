import itertools

import numpy as np
import pytest

from kerasattn import decoding

PENALTIES = (-1.0, -0.5, 0.0, 0.6, 1.0, 2.0)


def hypotheses(vocabulary, max_new_tokens, end_id):
    """Every sequence that ends, or that is as long as allowed."""
    for length in range(1, max_new_tokens + 1):
        for ids in itertools.product(range(vocabulary), repeat=length):
            if end_id not in ids[:-1] and (ids[-1] == end_id or length == max_new_tokens):
                yield ids


def exhaustive(decoder, kind, start, max_new_tokens, penalty, end_id=0):
    """All (score, ids), best first."""
    scored = [
        (decoder.log_probs(kind, start, ids).sum() / len(ids) ** penalty, ids)
        for ids in hypotheses(decoder.vocabulary_size, max_new_tokens, end_id)
    ]
    return sorted(scored, key=lambda pair: -pair[0])


def plain_beam(decoder, kind, start, max_new_tokens, width, penalty, end_id=0):
    """Beam search with lists, which never stops early."""
    beams, finished = [(0.0, ())], []
    for length in range(1, max_new_tokens + 1):
        candidates = []
        for _, ids in beams:
            for token in range(decoder.vocabulary_size):
                new = (*ids, token)
                candidates.append((decoder.log_probs(kind, start, new).sum(), new))
        candidates.sort(key=lambda pair: -pair[0])
        best = candidates[:width]
        finished += [(s / length**penalty, ids) for s, ids in best if ids[-1] == end_id]
        beams = [pair for pair in candidates if pair[1][-1] != end_id][:width]
        if width == 1 and best and best[0][1][-1] == end_id:
            beams = []
    finished += [(s / max_new_tokens**penalty, ids) for s, ids in beams]
    return sorted(finished, key=lambda pair: -pair[0])


def search(decoder, strategy, starts, max_new_tokens, kinds, jit=False, **kwargs):
    # XLA takes seconds to compile: it runs where it could differ, in equal scores and in shapes.
    return decoding.generate(
        decoder,
        decoder.inputs(kinds),
        strategy,
        start_ids=starts,
        max_new_tokens=max_new_tokens,
        end_id=0,
        pad_id=decoder.vocabulary_size - 1,
        return_scores=True,
        jit=jit,
        **kwargs,
    )


def strip(ids, end_id=0):
    """Up to the end token."""
    ids = np.asarray(ids).tolist()
    return tuple(ids[: ids.index(end_id) + 1] if end_id in ids else ids)


# CASES C54
@pytest.mark.parametrize("batch, jit", [(1, False), (3, True)])
def test_a_finished_beam_is_kept(markov, batch, jit):
    first = np.log([0.1, 0.5, 0.4])
    later = np.log([[0.34, 0.33, 0.33], [0.3, 0.4, 0.3], [0.45, 0.3, 0.25]])
    decoder = markov([[np.tile(first, (3, 1)), later]])
    got = search(decoder, decoding.Beam(2, length_penalty=0.0), [0] * batch, 6, [0] * batch, jit)
    assert strip(got.token_ids[-1]) == (2, 0)
    np.testing.assert_allclose(got.scores, -1.714798, atol=1e-6)


def test_a_wide_beam_is_exhaustive(markov):
    """All penalties, many models in one batch: the best four hypotheses and their scores."""
    kinds = np.arange(8)
    decoder = markov.random(11, vocabulary=3, steps=4, kinds=8)
    starts = kinds % 3
    for penalty in PENALTIES:
        got = search(decoder, decoding.Beam(81, penalty, num_return=4), starts, 4, kinds)
        for row in kinds:
            best = exhaustive(decoder, row, starts[row], 4, penalty)[:4]
            np.testing.assert_allclose(got.scores[row], [s for s, _ in best], rtol=1e-4)
            assert [strip(ids) for ids in got.token_ids[row]] == [ids for _, ids in best]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_stopping_early_loses_nothing(markov, width):
    """The same as a search with lists that goes on to the end, also wider than the vocabulary."""
    kinds = np.arange(8)
    decoder = markov.random(width, vocabulary=3, steps=7, kinds=8, scale=1.5)
    starts = kinds % 3
    for penalty in PENALTIES:
        got = search(decoder, decoding.Beam(width, penalty), starts, 7, kinds)
        for row in kinds:
            score, ids = plain_beam(decoder, row, starts[row], 7, width, penalty)[0]
            assert strip(got.token_ids[row]) == ids
            np.testing.assert_allclose(got.scores[row], score, rtol=1e-4)
            # From scratch: the log-probability of each token, the end's too.
            log_probs = decoder.log_probs(row, starts[row], ids)
            np.testing.assert_allclose(got.log_probs[row][: len(ids)], log_probs, atol=1e-5)


def test_one_beam_is_greedy(markov):
    kinds = np.arange(16)
    decoder = markov.random(21, vocabulary=5, steps=6, kinds=16)
    greedy = search(decoder, decoding.Greedy(), kinds % 5, 6, kinds)
    for penalty in PENALTIES:
        beam = search(decoder, decoding.Beam(1, penalty), kinds % 5, 6, kinds)
        np.testing.assert_array_equal(beam.token_ids, greedy.token_ids)


def test_no_room_one_token_and_limits(markov):
    decoder = markov.random(5, vocabulary=3, steps=4, kinds=3)
    kinds, starts = np.arange(3), np.array([1, 2, 1])
    none = search(decoder, decoding.Beam(4, num_return=2), starts, 0, kinds)
    assert none.token_ids.shape == (3, 2, 0) and none.scores.tolist() == [[0, 0]] * 3
    one = search(decoder, decoding.Beam(4), starts, 1, kinds)
    expected = [np.argmax(decoder.tables[k, 0, s]) for k, s in zip(kinds, starts)]
    assert one.token_ids[:, 0].tolist() == expected
    limits = np.array([0, 2, 4])
    got = search(decoder, decoding.Beam(27, 1.0), starts, 4, kinds, limits=limits)
    assert got.token_ids[0].tolist() == [2] * 4 and got.scores[0] == 0
    for row in (1, 2):
        score, ids = exhaustive(decoder, row, starts[row], limits[row], 1.0)[0]
        assert tuple(got.token_ids[row][: len(ids)]) == ids
        assert np.all(got.token_ids[row][len(ids) :] == 2)
        np.testing.assert_allclose(got.scores[row], score, rtol=1e-4)


def test_fewer_hypotheses_than_asked_for(markov):
    decoder = markov.random(6, vocabulary=3, steps=1)
    got = search(decoder, decoding.Beam(5, num_return=5), [1], 1, [0])
    assert np.isneginf(got.scores[0, 3:]).all() and np.isfinite(got.scores[0, :3]).all()
    assert np.all(got.token_ids[0, 3:] == 2) and np.all(got.log_probs[0, 3:] == 0)


@pytest.mark.parametrize("jit", [False, True])
def test_equal_scores_go_by_lower_token(markov, jit):
    decoder = markov(np.zeros((1, 1, 5, 5)))
    got = search(decoder, decoding.Beam(3, 0.0, num_return=3), [1], 2, [0], jit, banned=[0])
    assert got.token_ids[0].tolist() == [[1, 1], [1, 2], [1, 3]]
