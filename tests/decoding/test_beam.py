import collections
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
@pytest.mark.parametrize("batch, jit", [(2, False), (3, True)])
def test_a_finished_beam_is_kept_and_equal_scores_go_by_lower_token(markov, batch, jit):
    first = np.log([0.1, 0.5, 0.4])
    later = np.log([[0.34, 0.33, 0.33], [0.3, 0.4, 0.3], [0.45, 0.3, 0.25]])
    equal = np.tile([-30.0, 0.0, 0.0], (3, 1))
    decoder = markov([[np.tile(first, (3, 1)), later], [equal, equal]])
    strategy = decoding.Beam(2, length_penalty=0.0, num_return=2)
    got = search(decoder, strategy, [0] * batch, 6, [0] * (batch - 1) + [1], jit)
    for row in range(batch - 1):
        assert strip(got.token_ids[row, 0]) == (2, 0)
        np.testing.assert_allclose(got.scores[row, 0], -1.714798, atol=1e-6)
    assert got.token_ids[-1].tolist() == [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 2]]


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
    limits = kinds % 5
    got = search(decoder, decoding.Beam(81, 1.0, num_return=4), starts, 4, kinds, limits=limits)
    for row in kinds:
        if limits[row] == 0:
            assert np.all(got.token_ids[row] == 2) and not got.scores[row].any()
            continue
        score, ids = exhaustive(decoder, row, starts[row], limits[row], 1.0)[0]
        assert tuple(got.token_ids[row, 0][: len(ids)]) == ids
        assert np.all(got.token_ids[row, 0][len(ids) :] == 2)
        np.testing.assert_allclose(got.scores[row, 0], score, rtol=1e-4)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_stopping_early_loses_nothing(markov, width):
    """The same as a search with lists that goes on to the end, also wider than the vocabulary.

    With one beam that is greedy search.
    """
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


def test_no_room_and_fewer_hypotheses_than_asked_for(markov):
    decoder = markov.random(5, vocabulary=3, steps=4, kinds=3)
    kinds, starts = np.arange(3), np.array([1, 2, 1])
    none = search(decoder, decoding.Beam(4, num_return=2), starts, 0, kinds)
    assert none.token_ids.shape == (3, 2, 0) and none.scores.tolist() == [[0, 0]] * 3
    one = search(decoder, decoding.Beam(5, num_return=5), starts, 1, kinds)
    expected = [np.argsort(-decoder.tables[k, 0, s]) for k, s in zip(kinds, starts)]
    np.testing.assert_array_equal(one.token_ids[:, :3, 0], expected)
    assert np.isneginf(one.scores[:, 3:]).all() and np.isfinite(one.scores[:, :3]).all()
    assert np.all(one.token_ids[:, 3:] == 2) and np.all(one.log_probs[:, 3:] == 0)


def test_finished_beams_never_change(markov):
    """Whatever comes later, they stay with their scores, or better ones take their place."""
    kinds = np.arange(8)
    decoder = markov.random(31, vocabulary=4, steps=8, kinds=8, scale=1.5)
    before = [{}] * 8
    strategy = decoding.Beam(3, 0.7, num_return=3)
    for steps in range(1, 8):
        got = search(decoder, strategy, kinds % 4, 7, kinds, limits=np.full(8, steps))
        for row in kinds:
            found = {strip(ids): score for ids, score in zip(got.token_ids[row], got.scores[row])}
            for ids, score in before[row].items():
                if ids in found:
                    np.testing.assert_allclose(found[ids], score, rtol=1e-5)
                else:
                    assert min(found.values()) >= score - 1e-5
            before[row] = {ids: score for ids, score in found.items() if ids[-1] == 0}
    assert any(before)


# === Every sequence ===


def test_exhaustive_is_every_sequence(markov):
    kinds = np.arange(4)
    decoder = markov.random(12, vocabulary=3, steps=4, kinds=4)
    starts = kinds % 3
    limits = np.array([0, 2, 3, 4])
    for penalty, some in ((-0.5, None), (0.0, None), (1.0, None), (1.0, limits)):
        strategy = decoding.Exhaustive(penalty, num_return=5)
        got = search(decoder, strategy, starts, 4, kinds, limits=some)
        for row in kinds:
            limit = 4 if some is None else some[row]
            if limit == 0:
                assert np.all(got.token_ids[row] == 2) and not got.scores[row].any()
                continue
            best = exhaustive(decoder, row, starts[row], limit, penalty)[:5]
            np.testing.assert_allclose(got.scores[row], [s for s, _ in best], rtol=1e-4)
            for ids, log_probs, (_, wanted) in zip(got.token_ids[row], got.log_probs[row], best):
                assert tuple(ids[: len(wanted)]) == wanted and np.all(ids[len(wanted) :] == 2)
                own = decoder.log_probs(row, starts[row], wanted)
                np.testing.assert_allclose(log_probs[: len(wanted)], own, atol=1e-5)
                assert not log_probs[len(wanted) :].any()


def test_exhaustive_beyond_its_bound(markov):
    decoder = markov.random(5, vocabulary=3, steps=4)
    with pytest.raises(ValueError, match=r"3 \*\* 4 = 81 sequences a row, more than most = 80"):
        search(decoder, decoding.Exhaustive(most=80), [1], 4, [0])
    with pytest.raises(ValueError, match="vocabulary_size"):
        decoding.generate(
            lambda *args: decoder.step(*args),
            decoder.inputs([0]),
            decoding.Exhaustive(),
            start_ids=[0],
            max_new_tokens=2,
            jit=False,
        )


# === Groups ===


def plain_groups(decoder, kind, start, max_new_tokens, strategy):
    """Groups of beams with lists, where nothing ends."""
    each = strategy.width // strategy.groups
    groups = [[(0.0, ())] for _ in range(strategy.groups)]
    for _ in range(max_new_tokens):
        taken = collections.Counter()
        for g, beams in enumerate(groups):
            candidates = []
            for _, ids in beams:
                for token in range(decoder.vocabulary_size):
                    new = (*ids, token)
                    candidates.append((decoder.log_probs(kind, start, new).sum(), new))
            candidates.sort(key=lambda pair: strategy.diversity * taken[pair[1][-1]] - pair[0])
            groups[g] = candidates[:each]
            taken.update(ids[-1] for _, ids in groups[g])
    return groups


def test_groups_are_diverse_as_the_plain_search(markov):
    decoder = markov.random(4, vocabulary=5, steps=5, kinds=4, scale=1.0)
    kinds = np.arange(4)
    for width, diversity in ((6, 0.0), (6, 0.7), (6, 5.0), (3, 1.0)):
        strategy = decoding.Beam(width, 0.0, 3, 3, diversity)  # the best of each group
        got = decoding.generate(
            decoder,
            decoder.inputs(kinds),
            strategy,
            start_ids=kinds,
            max_new_tokens=5,
            return_scores=True,
            jit=False,
        )
        for row in kinds:
            found = plain_groups(decoder, row, row, 5, strategy)
            best = sorted((max(group) for group in found), key=lambda pair: -pair[0])
            np.testing.assert_allclose(got.scores[row], [s for s, _ in best], rtol=1e-4)
            assert sorted(map(tuple, got.token_ids[row].tolist())) == sorted(i for _, i in best)


def test_groups_that_end_keep_their_scores(markov):
    kinds = np.arange(6)
    decoder = markov.random(8, vocabulary=4, steps=6, kinds=6)
    strategy = decoding.Beam(4, 0.6, num_return=4, groups=2, diversity=0.5)
    got = search(decoder, strategy, kinds % 4, 6, kinds)
    assert np.all(np.diff(got.scores, axis=1) <= 0)
    for row in kinds:
        for ids, score in zip(got.token_ids[row], got.scores[row]):
            own = decoder.log_probs(row, row % 4, strip(ids))
            np.testing.assert_allclose(score, own.sum() / len(own) ** 0.6, rtol=1e-4)
