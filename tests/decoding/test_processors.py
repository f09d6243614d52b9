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


def test_repetition_penalty(markov):
    decoder = markov.random(0, vocabulary=5, steps=6, kinds=3)
    for penalty in (1.0, 1.7, 4.0):
        processors = [decoding.RepetitionPenalty(penalty)]
        got = generate(decoder, [0, 1, 2], [1, 2, 3], processors=processors, jit=True)

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
    got = generate(
        decoder, np.arange(4), np.arange(4), steps=7, processors=[decoding.NoRepeatNgram(size)]
    )

    def change(logits, written):
        again = [repeats([*written, token], size) for token in range(8)]
        return np.where(again, -np.inf, logits)

    for row in range(4):
        assert got.token_ids[row].tolist() == greedy(decoder, row, row, 7, change)
    free = [greedy(decoder, row, row, 7, lambda logits, written: logits) for row in range(4)]
    assert any(repeats([row, *free[row]], size) for row in range(4))


def test_history_counts_as_written(markov):
    decoder = markov.random(3, vocabulary=6, steps=1)
    options = dict(processors=[decoding.NoRepeatNgram(1)], steps=3)
    alone = generate(decoder, [0], [1], history=[[-1, -1, 1]], **options).token_ids[0]
    after = generate(decoder, [0], [1], history=[[-1, alone[0], 1]], **options).token_ids[0]
    assert alone[0] not in after and not set(after) & {1}


def test_allowed_tokens(markov):
    decoder = markov.random(4, vocabulary=6, steps=3)

    def rising(written, column):  # by one or two
        last = ops.take(written, column - 1, axis=1)[:, None]
        return (np.arange(6)[None] > last) & (np.arange(6)[None] <= last + 2)

    for strategy in (decoding.Greedy(), decoding.Beam(4)):
        got = generate(
            decoder, [0, 0], [0, 4], strategy, 3, processors=[decoding.AllowedTokens(rising)]
        )
        assert set(np.diff([0, *got.token_ids[0]])) <= {1, 2}
        # Five is the highest: where nothing may follow, a row ends.
        if strategy == decoding.Greedy():
            assert got.token_ids[1].tolist() == [5, 0, 0] and not got.log_probs[1, 1:].any()


def test_forced_tokens_come_whatever_else_is_asked(markov):
    decoder = markov.random(5, vocabulary=5, steps=4, kinds=2)
    options = dict(banned=[3], processors=[decoding.NoRepeatNgram(1)], steps=4)

    def change(logits, written):
        return np.where(np.isin(np.arange(5), [3, *written]), -np.inf, logits)

    free = [greedy(decoder, row, row + 1, 3, change) for row in range(2)]
    got = generate(decoder, [0, 1], [1, 2], forced=[[3, 3], [-1, -1]], **options)
    assert np.all(got.token_ids[0, :2] == 3) and not np.any(got.token_ids[0, 2:] == 3)
    own = decoder.log_probs(0, 1, got.token_ids[0, :2])
    np.testing.assert_allclose(got.log_probs[0, :2], own, atol=1e-5)
    assert got.token_ids[1, :3].tolist() == free[1]
    got = generate(decoder, [0, 1], [1, 2], forced=[[-1, 3], [-1, -1]], **options)
    assert got.token_ids[0, :2].tolist() == [free[0][0], 3]


def test_all_goes_together_and_a_wide_beam_is_still_exhaustive(markov):
    """Processors, forced tokens and stop sequences, against a list of all that may be written."""
    decoder = markov.random(6, vocabulary=3, steps=4, kinds=3)
    kinds, stop = np.arange(3), [[1, 2], [0, 2, 0]]
    options = dict(
        steps=4,
        processors=[decoding.NoRepeatNgram(2), decoding.RepetitionPenalty(1.3)],
        forced=[-1, 2],
        stop=stop,
    )

    def hypotheses(row):
        """What is written, up to where it stops, and its log-probability after processors."""
        found = {}
        for ids in itertools.product(range(3), repeat=4):
            ids = until(ids, stop)
            written = [row, *ids]
            # What is forced is forced, also if that repeats a pair.
            pairs = [tuple(written[n - 1 : n + 1]) for n in range(1, len(written))]
            allowed = [n == 1 or pairs[n] not in pairs[:n] for n in range(len(pairs))]
            if ids[1] != 2 or not all(allowed):
                continue
            again = [n != 1 and token in written[: n + 1] for n, token in enumerate(ids)]
            penalty = np.where(again, 1.3, 1.0)
            found[tuple(ids)] = (decoder.log_probs(row, row, ids) * penalty).sum()
        return found

    for length_penalty in (0.0, 1.0):
        beams = decoding.Beam(81, length_penalty, num_return=3)
        beams = generate(decoder, kinds, kinds, beams, **options)
        every = decoding.Exhaustive(length_penalty, num_return=3)
        every = generate(decoder, kinds, kinds, every, **options)
        np.testing.assert_array_equal(beams.token_ids, every.token_ids)
        np.testing.assert_allclose(beams.scores, every.scores, rtol=1e-4)
        for row in kinds:
            found = hypotheses(row)
            assert len({len(ids) for ids in found}) > 1
            scores = [total / len(ids) ** length_penalty for ids, total in found.items()]
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


def test_stop_sequences(markov):
    """Of all rows, and under XLA a list for each row."""
    decoder = markov.random(9, vocabulary=4, steps=8, kinds=5)
    kinds = np.arange(5)
    free = [greedy(decoder, row, row % 4, 8, lambda logits, written: logits) for row in kinds]
    first, second = free[0][2:4], free[1][4:7]
    for stop in ([first, second], [second, [free[2][3]]]):
        got = generate(decoder, kinds, kinds % 4, steps=8, stop=stop).token_ids
        for row in kinds:
            kept = until(free[row], stop)
            assert got[row].tolist() == kept + [0] * (8 - len(kept))
    late = generate(decoder, kinds, kinds % 4, steps=8, stop=[first, second], min_new_tokens=7)
    assert late.token_ids[:, :7].tolist() == [ids[:7] for ids in free]
    rows = [[first], [second], [], [[free[3][5]]], []]
    got = generate(decoder, kinds, kinds % 4, steps=8, stop=rows, jit=True).token_ids
    for row in kinds:
        kept = until(free[row], rows[row])
        assert got[row].tolist() == kept + [0] * (8 - len(kept))
