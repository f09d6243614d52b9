"""What changes the logits, what is forced, and what ends a row, against plain Python."""

import itertools

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding


def generate(decoder, kinds, starts, strategy=None, steps=6, **options):
    return decoding.generate(
        decoder,
        decoder.inputs(kinds),
        strategy,
        start_ids=starts,
        max_new_tokens=steps,
        pad_id=0,
        return_scores=True,
        jit=options.pop("jit", False),
        **options,
    )


def greedy(decoder, kind, start, steps, change):
    """Greedy search with lists; `change(logits, written)` gives the changed logits."""
    written = [start]
    for step in range(steps):
        logits = decoder.tables[kind, min(step, decoder.tables.shape[1] - 1), written[-1]]
        written.append(int(np.argmax(change(logits.astype("float64"), written))))
    return written[1:]


def repeats(ids, size):
    grams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
    return len(set(grams)) < len(grams)


@pytest.mark.parametrize("jit", [False, True])
def test_repetition_penalty(markov, jit):
    decoder = markov.random(0, vocabulary=5, steps=6, kinds=3)
    for penalty in (1.0, 1.7, 4.0):
        processors = [decoding.RepetitionPenalty(penalty)]
        got = generate(decoder, [0, 1, 2], [1, 2, 3], processors=processors, jit=jit)

        def change(logits, written, penalty=penalty):
            seen = np.isin(np.arange(5), written)
            changed = np.where(logits > 0, logits / penalty, logits * penalty)
            return np.where(seen, changed, logits)

        for row in range(3):
            assert got.token_ids[row].tolist() == greedy(decoder, row, row + 1, 6, change)
            own = decoder.log_probs(row, row + 1, got.token_ids[row])
            np.testing.assert_allclose(got.log_probs[row], own, atol=1e-5)
    assert sum(loop.traces for loop in decoder._compiled_loops.values()) == 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_comes_twice(markov, size):
    decoder = markov.random(size, vocabulary=8, steps=1, kinds=4)
    starts = np.arange(4)
    for strategy in (decoding.Greedy(), decoding.Sampling(), decoding.Beam(3)):
        got = generate(
            decoder,
            np.arange(4),
            starts,
            strategy,
            steps=7,
            processors=[decoding.NoRepeatNgram(size)],
            seed=3,
        )
        for row in range(4):
            assert not repeats([starts[row], *got.token_ids[row]], size)
        if strategy == decoding.Greedy():

            def change(logits, written):
                again = [repeats([*written, token], size) for token in range(8)]
                return np.where(again, -np.inf, logits)

            for row in range(4):
                assert got.token_ids[row].tolist() == greedy(decoder, row, row, 7, change)
    free = generate(decoder, np.arange(4), starts, steps=7).token_ids
    assert any(repeats([starts[row], *free[row]], size) for row in range(4))


def test_history_counts_as_written(markov):
    decoder = markov.random(3, vocabulary=6, steps=1)
    options = dict(processors=[decoding.NoRepeatNgram(1)], steps=3)
    alone = generate(decoder, [0], [1], **options).token_ids[0]
    history = [[-1, alone[0], 1]]
    after = generate(decoder, [0], [1], history=history, **options).token_ids[0]
    assert alone[0] not in after and not set(after) & {1}


def test_allowed_tokens(markov):
    decoder = markov.random(4, vocabulary=6, steps=3)

    def rising(written, column):  # by one or two
        last = ops.take(written, column - 1, axis=1)[:, None]
        return (np.arange(6)[None] > last) & (np.arange(6)[None] <= last + 2)

    for strategy in (decoding.Greedy(), decoding.Beam(4), decoding.Sampling()):
        got = generate(
            decoder, [0], [0], strategy, 3, processors=[decoding.AllowedTokens(rising)], seed=0
        )
        assert set(np.diff([0, *got.token_ids[0]])) <= {1, 2}
    # Five is the highest: where nothing may follow, a row ends.
    got = generate(decoder, [0], [4], None, 3, processors=[decoding.AllowedTokens(rising)])
    assert got.token_ids[0].tolist() == [5, 0, 0] and not got.log_probs[0, 1:].any()


def test_forced_tokens_come_whatever_else_is_asked(markov):
    decoder = markov.random(5, vocabulary=5, steps=4, kinds=2)
    options = dict(banned=[3], processors=[decoding.NoRepeatNgram(1)], steps=4)
    for strategy in (decoding.Greedy(), decoding.Beam(2), decoding.Sampling()):
        got = generate(decoder, [0, 1], [1, 2], strategy, forced=[3, 3], seed=0, **options)
        assert np.all(got.token_ids[:, :2] == 3) and not np.any(got.token_ids[:, 2:] == 3)
        own = decoder.log_probs(0, 1, got.token_ids[0, :2])
        np.testing.assert_allclose(got.log_probs[0, :2], own, atol=1e-5)
    free = generate(decoder, [0, 1], [1, 2], steps=3).token_ids
    forced = generate(decoder, [0, 1], [1, 2], steps=3, forced=[[-1, 4], [-1, -1]]).token_ids
    assert forced[0, :2].tolist() == [free[0, 0], 4]
    np.testing.assert_array_equal(forced[1], free[1])


def test_processors_compose_and_a_wide_beam_is_still_exhaustive(markov):
    """Against a list of all sequences in which no pair comes twice."""
    decoder = markov.random(6, vocabulary=3, steps=4, kinds=3)
    kinds = np.arange(3)
    options = dict(
        steps=4,
        processors=[decoding.NoRepeatNgram(2), decoding.RepetitionPenalty(1.3)],
        forced=[-1, 2],
    )
    beams = generate(decoder, kinds, kinds, decoding.Beam(81, 0.0, num_return=3), **options)
    every = generate(decoder, kinds, kinds, decoding.Exhaustive(0.0, num_return=3), **options)
    np.testing.assert_array_equal(beams.token_ids, every.token_ids)
    np.testing.assert_allclose(beams.scores, every.scores, rtol=1e-4)
    for row in kinds:
        scores = []
        for ids in itertools.product(range(3), repeat=4):
            written = [row, *ids]
            # What is forced is forced, also if that repeats a pair.
            pairs = [tuple(written[n - 1 : n + 1]) for n in range(1, 5)]
            allowed = [n == 2 or pairs[n - 1] not in pairs[: n - 1] for n in range(1, 5)]
            if ids[1] != 2 or not all(allowed):
                continue
            penalty = [1.3 if ids[n] in written[: n + 1] and n != 1 else 1.0 for n in range(4)]
            scores.append((decoder.log_probs(row, row, ids) * penalty).sum())
        np.testing.assert_allclose(every.scores[row], sorted(scores)[::-1][:3], rtol=1e-4)


def test_a_processor_of_ones_own(markov):
    class Favour(decoding.Processor):
        def __init__(self, token):
            self.token = token

        def signature(self):
            return "favour"

        def parameters(self):
            return {"token": self.token}

        def __call__(self, logits, written, column, parameters):
            return logits + 100.0 * ops.one_hot(parameters["token"], logits.shape[-1])

    decoder = markov.random(7, vocabulary=5, steps=1)
    for token in (2, 4):
        got = generate(decoder, [0], [1], steps=3, processors=[Favour(token)])
        assert got.token_ids.tolist() == [[token] * 3]
    assert [loop.traces for loop in decoder._compiled_loops.values()] == [1]


# === Ends ===


def until(ids, sequences):
    """Up to the end of the first of some sequences."""
    for n in range(1, len(ids) + 1):
        if any(n >= len(s) and list(ids[n - len(s) : n]) == list(s) for s in sequences):
            return list(ids[:n])
    return list(ids)


@pytest.mark.parametrize("jit", [False, True])
def test_stop_sequences(markov, jit):
    decoder = markov.random(9, vocabulary=4, steps=1, kinds=5)
    kinds = np.arange(5)
    free = generate(decoder, kinds, kinds % 4, decoding.Sampling(), 8, seed=1).token_ids
    first, second = free[0, 2:4].tolist(), free[1, 4:7].tolist()
    options = dict(strategy=decoding.Sampling(), steps=8, seed=1, jit=jit)
    for stop in ([first], [first, second], [first, [free[2, 3]]]):
        got = generate(decoder, kinds, kinds % 4, stop=stop, **options).token_ids
        for row in kinds:
            kept = until(free[row].tolist(), stop)
            assert got[row].tolist() == kept + [0] * (8 - len(kept))
    rows = [[first], [second], [], [[free[3, 5]]], []]
    got = generate(decoder, kinds, kinds % 4, stop=rows, **options).token_ids
    for row in kinds:
        kept = until(free[row].tolist(), rows[row])
        assert got[row].tolist() == kept + [0] * (8 - len(kept))
    late = generate(decoder, kinds, kinds % 4, stop=[first], min_new_tokens=7, **options)
    assert np.array_equal(late.token_ids[:, :7], free[:, :7])


def test_beams_stop_at_sequences(markov):
    """Against a list of all sequences that stop."""
    decoder = markov.random(10, vocabulary=3, steps=4, kinds=4)
    kinds, stop = np.arange(4), [[1, 2], [2, 0, 2]]
    options = dict(steps=4, stop=stop)
    beams = generate(decoder, kinds, kinds % 3, decoding.Beam(81, num_return=4), **options)
    every = generate(decoder, kinds, kinds % 3, decoding.Exhaustive(num_return=4), **options)
    np.testing.assert_array_equal(beams.token_ids, every.token_ids)
    np.testing.assert_allclose(beams.scores, every.scores, rtol=1e-4)
    for row in kinds:
        found = {tuple(until(ids, stop)) for ids in itertools.product(range(3), repeat=4)}
        scores = [decoder.log_probs(row, row % 3, ids).sum() / len(ids) for ids in found]
        np.testing.assert_allclose(beams.scores[row], sorted(scores)[::-1][:4], rtol=1e-4)
