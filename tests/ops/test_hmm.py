"""Hidden Markov models against the sum and the maximum over all paths."""

import importlib.util
import re

import keras
import numpy as np
import pytest

from kerasattn.ops import hmm
from kerasattn.ops import hmm_recursions as recursions
from kerasattn.ops.compiled import compiled

# CASES C42
INITIAL = np.log([0.6, 0.4])
TRANSITIONS = np.log([[0.7, 0.3], [0.4, 0.6]])
SYMBOLS = np.log([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


@compiled
def everything(initial, transitions, emissions, mask):
    likelihoods, states, pairs = hmm.expected_counts(initial, transitions, emissions, mask)
    return (
        hmm.log_likelihood(initial, transitions, emissions, mask),
        likelihoods,
        states,
        pairs,
        hmm.posteriors(initial, transitions, emissions, mask),
        *hmm.viterbi(initial, transitions, emissions, mask),
        *hmm.forward(initial, transitions, emissions, mask),
        hmm.backward(transitions, emissions, mask),
    )


def drawn(seed, batch=5, length=5, states=3):
    """A chain in which some things are impossible, and masks with holes."""
    random = np.random.default_rng(seed)
    initial = random.dirichlet(np.ones(states))
    transitions = random.dirichlet(np.ones(states), states)
    transitions[0, 1] = 0
    transitions /= transitions.sum(1, keepdims=True)
    emissions = random.normal(size=(batch, length, states), scale=3)
    emissions[random.random(emissions.shape) < 0.2] = -np.inf
    mask = random.random((batch, length)) < 0.7
    mask[0], mask[1], mask[2] = False, True, np.arange(length) < 3
    with np.errstate(divide="ignore"):
        return np.log(initial), np.log(transitions), emissions, mask


@pytest.mark.parametrize("seed", range(6))
def test_equals_all_paths(seed):
    *chain, emissions, mask = drawn(seed)
    found = [array(x) for x in everything(*chain, emissions, mask)]
    likelihoods, same, states, pairs, posteriors, best, scores, filtered, steps, later = found
    np.testing.assert_allclose(likelihoods, same, rtol=1e-5)
    np.testing.assert_array_equal(states, posteriors)
    assert not any(np.isnan(x).any() for x in found)
    for i, real in enumerate(mask):
        if not real.any():
            assert likelihoods[i] == scores[i] == 0
            continue
        paths, log_probs = hmm.enumerate_paths(*chain, emissions[i : i + 1, real])
        total = np.logaddexp.reduce(log_probs[0])
        np.testing.assert_allclose(likelihoods[i], total, rtol=1e-5)
        np.testing.assert_allclose(scores[i], log_probs[0].max(), rtol=1e-5)
        np.testing.assert_allclose(steps[i].sum(), total, rtol=1e-5)
        assert not posteriors[i, ~real].any() and not best[i, ~real].any()
        if total == -np.inf:
            assert not posteriors[i].any() and not pairs[i].any()
            continue
        shares = np.exp(log_probs[0] - total)
        assert tuple(best[i, real]) == tuple(paths[log_probs[0].argmax()])
        expected = np.stack([(paths == s).T @ shares for s in range(3)], axis=1)
        np.testing.assert_allclose(posteriors[i, real], expected, atol=1e-5)
        both = filtered[i, real] + later[i, real]
        both = np.exp(both - both.max(-1, keepdims=True))
        np.testing.assert_allclose(both / both.sum(-1, keepdims=True), expected, atol=1e-5)
        expected = np.zeros((3, 3))
        for path, share in zip(paths, shares):
            np.add.at(expected, (path[:-1], path[1:]), share)
        np.testing.assert_allclose(pairs[i], expected, atol=1e-5)
    with pytest.raises(ValueError, match="3 states and 11 steps have 177147 paths"):
        hmm.enumerate_paths(*chain, np.zeros((1, 11, 3)))


def test_gradient_is_that_of_the_sum_over_all_paths():
    *chain, emissions, mask = drawn(3)
    emissions = np.maximum(emissions, -20.0)
    weights, inputs = np.array([1.0, 2.0, 0.5, 1.0, 3.0]), (*chain, emissions)
    inputs = [np.maximum(x, -20.0).astype("float32") for x in inputs]

    def total(*parts):
        return keras.ops.sum(hmm.log_likelihood(*parts, mask) * weights.astype("float32"))

    if keras.backend.backend() == "jax":
        import jax

        found = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(*inputs)
    else:
        import tensorflow as tf

        tensors = list(map(tf.constant, inputs))
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = total(*tensors)
        found = tape.gradient(value, tensors)

    def by_paths(parts):
        rows = (
            np.logaddexp.reduce(hmm.enumerate_paths(*parts[:2], parts[2][i : i + 1, real])[1][0])
            for i, real in enumerate(mask)
            if real.any()
        )
        return np.dot(list(rows), weights[mask.any(axis=1)])

    random = np.random.default_rng(0)
    for place, gradient in enumerate(map(array, found)):
        for _ in range(4):  # along a random direction, by central differences in float64
            direction, step = random.normal(size=gradient.shape), 1e-4
            ends = []
            for sign in (1, -1):
                moved = [x.astype("float64") for x in inputs]
                moved[place] = moved[place] + sign * step * direction
                ends.append(by_paths(moved))
            expected = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(np.sum(gradient * direction), expected, atol=2e-3)


# CASES C42
def test_likelihood_of_long_rows():
    """-5814.86125 is hmmlearn's; a periodic row of 100,000 grows by the same number each period."""
    lengths, longest = np.array([3, 5000]), 100_000
    emissions = hmm.categorical_log_probs(np.arange(longest)[None] % 3, SYMBOLS)
    likelihood = compiled(hmm.log_likelihood)
    mask = np.arange(lengths[1]) < lengths[:, None]
    found = likelihood(INITIAL, TRANSITIONS, np.tile(emissions[:, : lengths[1]], (2, 1, 1)), mask)
    np.testing.assert_allclose(array(found), [-3.316489, -5814.86125], rtol=1e-6)
    # In float64, by the scaled recursion, whose numbers come again long before 999 steps.
    a, b = np.exp(TRANSITIONS), np.exp(SYMBOLS)
    alpha, growths = np.exp(INITIAL), []
    for t in range(999):
        alpha = (alpha @ a if t else alpha) * b[:, t % 3]
        growths.append(np.log(alpha.sum()))
        alpha = alpha / alpha.sum()
    assert growths[-3:] == growths[-6:-3]
    periods, rest = divmod(longest - 999, 3)
    total = sum(growths) + periods * sum(growths[-3:]) + sum(growths[-3:][:rest])
    found = float(array(likelihood(INITIAL, TRANSITIONS, emissions))[0])
    np.testing.assert_allclose(found, total, rtol=5e-6)


@pytest.mark.parametrize("states", [3, 20])
def test_products_of_probabilities_give_what_log_space_does(states):
    """Without zeros the likelihood takes another way, of few states and of many."""
    random = np.random.default_rng(0)
    chain = [np.log(random.dirichlet(np.ones(states), n)) for n in (1, states)]
    emissions, mask = random.normal(size=(3, 9, states), scale=4) - 500, np.ones((3, 9), bool)
    mask[0, 3:5] = mask[1, :2] = mask[2, 6:] = False
    parts = recursions.parts(chain[0][0], chain[1], emissions, mask)
    value, exact = recursions.scaled(*parts)
    assert bool(exact)
    filtered, steps, possible = recursions.forward(*parts)
    assert array(possible).all() and np.isfinite(array(filtered)).all()
    np.testing.assert_allclose(array(value), array(steps).sum(0), rtol=1e-6)
    emissions[1, 4] = [0] + [-100] * (states - 1)
    assert not bool(recursions.scaled(*recursions.parts(chain[0][0], chain[1], emissions, mask))[1])


def test_viterbi():
    emissions = hmm.categorical_log_probs(np.array([[0, 1, 2]]), SYMBOLS)
    states, scores = hmm.viterbi(INITIAL, TRANSITIONS, emissions)
    assert array(states).tolist() == [[0, 0, 1]]
    np.testing.assert_allclose(array(scores), [-4.191737], rtol=1e-6)


def test_an_outlier_is_not_impossible():
    """The only state that may come is e^-500 times as likely as one that may not."""
    with np.errstate(divide="ignore"):
        chain = np.log([1.0, 0, 0]), np.log([[1.0, 0, 0], [0.5, 0.5, 0], [0, 0, 1]])
    emissions = np.tile([[-1.0, -1, -1], [-500, 0, 0], *[[-1.0, -1, -1]] * 3], (5, 1, 1))
    mask = np.tile(np.arange(5) < 3, (5, 1))  # all of the shapes that are compiled above
    found = [array(x) for x in everything(*chain, emissions, mask)]
    assert (found[0] == -502).all() and (found[6] == -502).all()
    np.testing.assert_array_equal(found[2][:, :3], [[[1, 0, 0]] * 3] * 5)


def test_sample():
    with np.errstate(divide="ignore"):
        chain = np.log([0.0, 0.25, 0.75]), np.log([[0, 0.5, 0.5], [1, 0, 0], [0.2, 0.8, 0]])
    draw = compiled(lambda: hmm.sample(*chain, 4000, 6, seed=3), jit=False)
    states = array(draw())
    assert states.shape == (4000, 6) and not (states[:, 0] == 0).any()
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (states[:, :-1], states[:, 1:]), 1)
    assert not pairs[np.exp(chain[1]) == 0].any()
    shares = pairs / pairs.sum(1, keepdims=True)
    np.testing.assert_allclose(shares, np.exp(chain[1]), atol=0.02)
    np.testing.assert_allclose((states[:, 0] == 1).mean(), 0.25, atol=0.03)
    np.testing.assert_array_equal(array(draw()), states)


def test_cuts_unknown_words_as_jieba_does():
    """Every fourth word of 10,000 Cantonese sentences by the parameters that jieba has published.

    Traditional characters that jieba's table lacks are many. Of ties, which they make, jieba takes
    the state whose letter is the last: the order of the states below does.
    """
    for package in ("jieba", "pycantonese"):
        if importlib.util.find_spec(package) is None:
            pytest.skip("the extras [chinese] and [examples] install it")
    from jieba import finalseg

    from kerasattn.data.corpora import cantonese_sentences

    text = "\n".join(cantonese_sentences()[:10_000])
    words = sorted(set(re.findall("[\u4e00-\u9fd5]+", text)))[::4]
    states, unseen = "SMEB", -1e25  # jieba's is -3.14e100
    score = lambda table, key: max(table.get(key, unseen), unseen)
    initial = np.array([score(finalseg.start_P, s) for s in states])
    transitions = np.array([[finalseg.trans_P[a].get(b, -np.inf) for b in states] for a in states])
    characters = {c: i for i, c in enumerate(sorted(set(text)), 1)}
    symbols = np.full((4, len(characters) + 1), unseen)
    for row, state in zip(symbols, states):
        row[1:] = [score(finalseg.emit_P[state], c) for c in characters]
    lengths = np.array([len(word) for word in words])
    ids = np.zeros((len(words), lengths.max()), "int32")
    for row, word in zip(ids, words):
        row[: len(word)] = [characters[c] for c in word]
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    ends = np.where(np.isin(list(states), ["E", "S"]), 0, -np.inf)  # a word ends in one of them
    last = np.arange(ids.shape[1]) == lengths[:, None] - 1
    emissions = symbols.T[ids] + np.where(last[..., None], ends, 0)
    best, _ = compiled(hmm.viterbi, jit=False)(initial, transitions, emissions, mask)
    cuts = np.isin(array(best), [states.index("E"), states.index("S")]) & mask
    assert len(words) > 1_500
    for word, cut in zip(words, cuts):
        places = np.flatnonzero(cut) + 1
        pieces = [word[a:b] for a, b in zip([0, *places], places)]
        assert pieces == list(finalseg.cut(word))
