"""Beam search and sampling over a `predict`: all outputs of a small chain can be listed."""

import itertools

import keras
import numpy as np
import pytest

from kerasattn.compat.bert4keras import AutoRegressiveDecoder


class Chain(AutoRegressiveDecoder):
    """The next token's probabilities by the last token, the first's by the input."""

    table = np.array([[0.34, 0.33, 0.33], [0.3, 0.4, 0.3], [0.45, 0.3, 0.25]])
    first = np.array([0.1, 0.5, 0.4])
    calls = 0

    @AutoRegressiveDecoder.wraps(default_rtype="probas")
    def predict(self, inputs, output_ids, states):
        self.calls += 1
        assert len(inputs[0]) == len(output_ids)
        if output_ids.shape[1] == 0:
            return np.array([self.first] * len(output_ids))
        late = output_ids.shape[1] > 2
        return np.array([self.table[0 if late else ids[-1]] for ids in output_ids])


class Texts(AutoRegressiveDecoder):
    """Logits that depend on the whole input and all that is written."""

    @AutoRegressiveDecoder.wraps(default_rtype="logits")
    def predict(self, inputs, output_ids, states):
        whole = np.concatenate([inputs[0], output_ids], axis=1)
        return np.stack([3 * np.sin(np.arange(7) * (1 + ids.sum()) + len(ids)) for ids in whole])


# CASES C54
def test_what_has_ended_is_kept():
    assert Chain(None, end_id=0, maxlen=6).beam_search([[5]], topk=2).tolist() == [2, 0]


# CASES C57
def test_limits():
    class Eager(Chain):
        first = np.array([0.9, 0.05, 0.05])

    ids = Eager(None, end_id=0, maxlen=6, minlen=3).beam_search([[5]], topk=2)
    assert len(ids) >= 3 and 0 not in ids[:2]
    for ids in Eager(None, 0, maxlen=6, minlen=3).random_sample([[5]], n=20, seed=0):
        assert len(ids) >= 3 and 0 not in ids[:2]
    for topk in (3, 4, 50):
        assert Chain(None, 0, maxlen=1).beam_search([[5]], topk=topk).tolist() == [1]
    assert all(len(i) == 1 for i in Chain(None, 0, maxlen=1).random_sample([[5]], 4, topk=50))
    with pytest.raises(ValueError, match="maxlen must be"):
        Chain(None, 0, maxlen=0)
    with pytest.raises(ValueError, match="topk must be"):
        Chain(None, 0, maxlen=2).beam_search([[5]], topk=0)


@pytest.mark.parametrize("min_ends", [1, 2])
def test_a_wide_beam_finds_the_best_of_all(min_ends):
    decoder = Texts(start_id=3, end_id=0, maxlen=4)
    text = np.array([[1, 2, 5]])
    scores = {}
    for ids in itertools.product(range(7), repeat=4):
        ends = [i for i, token in enumerate(ids) if token == 0]
        stop = ends[min_ends - 1] + 1 if len(ends) >= min_ends else 4
        if not any(ids[stop:]):  # each output once
            total = 0.0
            for step in range(stop):
                written = np.array([[3, *ids[:step]]])
                logs, _ = decoder.predict([text], written, None, rtype="logits")
                total += logs[0, ids[step]]
            scores[(3, *ids[:stop])] = total
    best = decoder.beam_search([text[0]], topk=7**3, min_ends=min_ends)
    assert tuple(best) == max(scores, key=scores.get)
    whole = decoder.beam_search([text], topk=2, min_ends=min_ends, add_btz_dim=False)
    np.testing.assert_array_equal(whole, decoder.beam_search([text[0]], 2, min_ends=min_ends))


def test_many_texts_are_written_as_each_alone():
    random = np.random.default_rng(0)
    texts = [[random.integers(1, 7, size=n)] for n in (3, 5, 3, 3, 5, 1)]
    decoder = Texts(start_id=None, end_id=0, maxlen=8)
    together = decoder.beam_search_batch(texts, topk=3)
    for text, ids in zip(texts, together):
        np.testing.assert_array_equal(ids, decoder.beam_search(text, topk=3))
    counting = Chain(None, end_id=0, maxlen=6)
    counting.beam_search_batch([[[5]], [[6]], [[7]]], topk=2)
    alone = Chain(None, end_id=0, maxlen=6)
    alone.beam_search([[5]], topk=2)
    assert counting.calls == alone.calls


def test_temperature_and_logits():
    chain, logs = Chain(None, 0, maxlen=2), np.log(Chain.first)
    inputs, written = [np.zeros((1, 1))], np.zeros((1, 0), int)
    for temperature in (0.5, 2.0):
        expected = np.exp(logs / temperature) / np.exp(logs / temperature).sum()
        got, _ = chain.predict(inputs, written, None, temperature, "probas")
        np.testing.assert_allclose(got[0], expected)
        got, _ = chain.predict(inputs, written, None, temperature, "logits")
        np.testing.assert_allclose(got[0], np.log(expected))
    with pytest.raises(ValueError, match="rtype must be"):
        chain.predict(inputs, written, None, 1, "odds")


# CASES C58
@pytest.mark.parametrize(
    "topp, kept",
    [(0, {0}), (1e-8, {0}), (0.5, {0}), (0.9, {0, 1, 2}), (1.0, {0, 1, 2, 3})],
)
def test_nucleus(topp, kept):
    class Four(AutoRegressiveDecoder):
        @AutoRegressiveDecoder.wraps()
        def predict(self, inputs, output_ids, states):
            return np.array([[0.5, 0.35, 0.1, 0.05]] * len(output_ids))

    drawn = Four(None, end_id=9, maxlen=1).random_sample([[1]], n=3000, topp=topp, seed=0)
    shares = np.bincount([ids[0] for ids in drawn], minlength=4) / 3000
    assert {i for i, share in enumerate(shares) if share} == kept
    expected = np.array([0.5, 0.35, 0.1, 0.05]) * [i in kept for i in range(4)]
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.04)
    for bad in (-0.1, 1.1):
        with pytest.raises(ValueError, match="topp must be in"):
            Four(None, 9, maxlen=1).random_sample([[1]], n=1, topp=bad)


def test_top_k_and_seeds():
    chain = Chain(None, end_id=0, maxlen=6)
    first = {ids[0] for ids in chain.random_sample([[1]], n=200, topk=2, seed=1)}
    assert first == {1, 2}
    draw = lambda seed: [i.tolist() for i in chain.random_sample([[1]], n=20, seed=seed)]
    assert draw(1) == draw(1) != draw(2)
    np.random.seed(5)  # noqa: NPY002, scripts do so
    again = draw(None)
    np.random.seed(5)  # noqa: NPY002, scripts do so
    assert draw(None) == again


def test_states_follow_their_hypotheses():
    class Remembering(AutoRegressiveDecoder):
        @AutoRegressiveDecoder.wraps(default_rtype="logits", use_states=True)
        def predict(self, inputs, output_ids, states):
            sums = output_ids.sum(axis=1) + 1
            if states is not None:  # the sum, added up token by token
                states = {"sum": states["sum"] + output_ids[:, -1], "step": states["step"] + 1}
                np.testing.assert_array_equal(states["sum"], sums)
                assert states["step"] == output_ids.shape[1]
            else:
                states = {"sum": sums, "step": 0}
            return np.stack([3 * np.sin(np.arange(7) * (2 + s)) for s in sums]), states

    decoder = Remembering(None, end_id=0, maxlen=6)
    decoder.beam_search([[1]], topk=4)
    decoder.random_sample([[1]], n=5, seed=0)


def test_last_token():
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, keras.layers.Embedding(5, 3)(inputs))
    decoder = Chain(None, 0, maxlen=1)
    ids = np.array([[1, 2, 3]])
    last = decoder.last_token(model)
    assert decoder.last_token(model) is last
    np.testing.assert_allclose(last(ids), model(ids)[:, -1])
