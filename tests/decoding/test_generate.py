import functools

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import decoding

# Most tests leave XLA out, which takes seconds to compile; some compare the two. Greedy search goes
# the way of sampling, a single group of beams that of several.
STRATEGIES = [
    decoding.Sampling(temperature=1.3, top_k=4, top_p=0.9, min_p=0.05),
    decoding.Beam(4, num_return=1, groups=2, diversity=0.5),
]


def traces(decoder):
    return sum(loop.traces for loop in decoder._compiled_loops.values())


def test_greedy_follows_the_best_token(markov):
    decoder = markov.random(0, vocabulary=5, steps=6, kinds=2)
    got = decoding.generate(
        decoder,
        markov.inputs([0, 1, 1]),
        start_ids=[2, 3, 4],
        max_new_tokens=6,
        end_id=1,
        return_scores=True,
    )
    for row, (kind, token) in enumerate([(0, 2), (1, 3), (1, 4)]):
        expected, start = [], token
        while len(expected) < 6 and 1 not in expected:
            token = int(np.argmax(decoder.tables[kind, len(expected), token]))
            expected.append(token)
        assert got.token_ids[row].tolist() == expected + [0] * (6 - len(expected))
        log_probs = decoder.log_probs(kind, start, expected)
        np.testing.assert_allclose(got.scores[row], log_probs.sum(), rtol=1e-5)
        padded = np.pad(log_probs, (0, 6 - len(expected)))
        np.testing.assert_allclose(got.log_probs[row], padded, atol=1e-5)
    assert got.token_ids.dtype == "int32"


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_batched_is_alone(markov, strategy):
    """Rows do not see each other, nor the copies that fill up the batch."""
    decoder = markov.random(1, vocabulary=6, steps=5, kinds=5)
    kinds, starts, seeds = np.arange(5), np.array([1, 2, 3, 4, 1]), np.arange(5) + 30
    run = lambda rows: decoding.generate(
        decoder,
        markov.inputs(kinds[rows]),
        strategy,
        start_ids=starts[rows],
        seed=seeds[rows],
        max_new_tokens=5,
        end_id=0,
        pad_id=5,
        return_scores=True,
        jit=False,
    )
    together = run(np.arange(5))
    for row in range(5):
        alone = run(np.full(5, row))  # of the same shape, so that nothing is traced anew
        for found in range(5):
            np.testing.assert_array_equal(alone.token_ids[found], together.token_ids[row])
            np.testing.assert_allclose(alone.scores[found], together.scores[row], rtol=1e-5)
    assert traces(decoder) == 1


STARTS = np.random.default_rng(3).normal(size=(3, 8)).astype("float32")  # no score is near 0


@functools.cache
def written(summing, strategy, cached):
    """From a running sum, or summing all again under XLA."""
    return decoding.generate(
        summing(11, 8, cached),
        STARTS,
        strategy,
        start_ids=[1, 2, 3],
        max_new_tokens=7,
        end_id=0,
        pad_id=10,
        seed=3,
        return_scores=True,
        jit=not cached,
    )


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_cached_is_uncached(summing, strategy):
    results = [written(summing, strategy, cached) for cached in (True, False)]
    np.testing.assert_array_equal(results[0].token_ids, results[1].token_ids)
    np.testing.assert_allclose(results[0].scores, results[1].scores, rtol=1e-4)


def test_one_trace_a_bucket(summing):
    """Batches of 5 to 8 share one trace; neither temperature, end nor bans cause another."""
    decoder = summing(11, 8, cached=True)
    for batch, temperature, end in ((5, 0.5, 0), (8, 2.0, 1), (7, 1.0, 2), (6, 1.5, 3)):
        decoding.generate(
            decoder,
            np.zeros((batch, 8), "float32"),
            decoding.Sampling(temperature, top_p=0.1 * batch),
            start_ids=np.ones(batch, int),
            max_new_tokens=3,
            end_id=end,
            banned=[9 - end],
            min_new_tokens=end,
            limits=np.arange(batch),
        )
    assert traces(decoder) == 1


def test_training_in_between_is_seen(summing):
    decoder = summing(7, 4, cached=True)
    run = lambda: decoding.generate(
        decoder, np.zeros((2, 4), "float32"), start_ids=[1, 2], max_new_tokens=5
    ).tolist()
    decoder.table.assign(np.eye(7, 4) * 3)  # a token's best successor is itself
    assert run() == [[1] * 5, [2] * 5]
    decoder.table.assign(-np.eye(7, 4) * 3 + 1e-3)
    first = run()
    assert traces(decoder) == 1
    assert (
        first
        == decoding.generate(
            decoding.StepFunction(lambda *args: decoder.step(*args), decoder.variables),
            [np.zeros((2, 4), "float32")],
            start_ids=[1, 2],
            max_new_tokens=5,
        ).tolist()
    )


def test_functions_and_other_objects():
    def count(token_ids, index, state):
        return ops.one_hot(token_ids + state, 12), state

    class Other:
        def step(self, token_ids, index, state):
            return count(token_ids, index, state)

        def initial_state(self, inputs, max_new_tokens):
            return inputs + 1

    other, options = Other(), dict(start_ids=[0, 1], max_new_tokens=3, jit=False)
    by = np.array([1, 2], "int32")
    for _ in range(2):
        assert decoding.generate(count, by, **options).tolist() == [[1, 2, 3], [3, 5, 7]]
        assert decoding.generate(other, by, **options).tolist() == [[2, 4, 6], [4, 7, 10]]
    assert traces(count._step_decoder) == traces(other._step_decoder) == 1
    with pytest.raises(ValueError, match="step"):
        decoding.generate(3, (), start_ids=[0], max_new_tokens=1)
    with pytest.raises(ValueError, match="A decoder has a method step"):
        decoding.generate(Other, (), start_ids=[0], max_new_tokens=1)


def test_a_subclass_has_a_loop_of_its_own(markov):
    class Least(decoding.Greedy):
        def choose(self, logits, uniform, parameters):
            return ops.cast(ops.argmin(logits, axis=-1), "int32")

    decoder, options = markov.random(0), dict(start_ids=[1], max_new_tokens=1, jit=False)
    found = [
        decoding.generate(decoder, markov.inputs([0]), strategy, **options).item()
        for strategy in (decoding.Greedy(), Least())
    ]
    logits = decoder.tables[0, 0, 1]
    assert found == [logits.argmax(), logits.argmin()]


# CASES C57
@pytest.mark.parametrize(
    "strategy",
    [
        decoding.Greedy(),
        decoding.Sampling(0.3, top_k=2),
        decoding.Beam(4, groups=2, diversity=0.3),
        decoding.Exhaustive(),
    ],
    ids=repr,
)
def test_limits(markov, strategy):
    """Of all strategies; and what is written is worth what the model says, whatever is banned."""
    tables = markov.random(4, vocabulary=4, steps=3, scale=1.0).tables
    tables[..., 0] += 2.0  # so that the end comes at once
    decoder = markov(tables)

    def run(banned, end_id, pad_id, limits=(5, 5), **more):
        """What two rows are before their padding; always of the same shapes, for one trace."""
        got = decoding.generate(
            decoder,
            markov.inputs([0, 0]),
            strategy,
            start_ids=[1, 1],
            max_new_tokens=5,
            banned=banned,
            end_id=end_id,
            pad_id=pad_id,
            limits=limits,
            seed=0,
            return_scores=True,
            jit=False,
            **more,
        )
        rows = []
        for ids, log_probs in zip(got.token_ids, got.log_probs):
            length = np.count_nonzero(log_probs)
            own = decoder.log_probs(0, 1, ids[:length])
            np.testing.assert_allclose(log_probs[:length], own, rtol=1e-4)
            assert np.all(ids[length:] == pad_id)
            assert not set(ids[:length]) & set(banned)
            assert not set(ids[: max(length - 1, 0)]) & set(end_id)
            rows.append(ids[:length].tolist())
        return rows

    for row in run([2, 3], [0, 0], 3, min_new_tokens=3):
        assert row[:3] == [1, 1, 1] and (len(row) == 5 or row[-1] == 0)
    none, three = run([0, 2], [0, 0], 2, limits=[0, 3])
    assert none == [] and len(three) == 3
    for row in run([0, 3], [1, 2], 0):
        assert row in ([1], [2])
    if strategy == decoding.Greedy():
        assert run([2, 3], [0, 0], 3) == [[0]] * 2  # the end at once
    assert traces(decoder) == 1
    options = dict(start_ids=[1, 1], max_new_tokens=0)
    assert decoding.generate(decoder, markov.inputs([0, 0]), strategy, **options).shape == (2, 0)


def test_sampling_repeats_and_follows_the_model(markov):
    decoder = markov.random(3, vocabulary=4, steps=1)
    n = 1024
    run = lambda seed, **kwargs: decoding.generate(
        decoder,
        markov.inputs(np.zeros(n)),
        decoding.Sampling(**kwargs),
        start_ids=np.ones(n, int),
        max_new_tokens=1,
        seed=seed,
        jit=False,
    )[:, 0]
    drawn = run(1)
    np.testing.assert_array_equal(drawn, run(1))
    assert np.any(drawn != run(2)) and np.any(run(None) != run(None))
    logits = decoder.tables[0, 0, 1].astype("float64")
    p = np.exp(logits) / np.exp(logits).sum()
    shares = np.bincount(drawn, minlength=4) / n
    assert np.all(np.abs(shares - p) < 4 * np.sqrt(p * (1 - p) / n))
    assert set(run(1, top_k=50, top_p=0.0)) == {int(np.argmax(p))}
    np.testing.assert_array_equal(run(1, top_k=50, top_p=1.0), drawn)


@pytest.mark.parametrize("dtype, strategy", zip(["bfloat16", "float16"], STRATEGIES))
def test_half_precision_states(summing, dtype, strategy):
    got = decoding.generate(
        summing(7, 4, cached=True, dtype=dtype),
        np.zeros((2, 4), "float32"),
        strategy,
        start_ids=[1, 2],
        max_new_tokens=4,
        seed=0,
        return_scores=True,
        jit=False,
    )
    assert got.scores.dtype == "float32" and np.all(np.isfinite(got.scores))


def test_errors(markov):
    decoder = markov.random(0)
    run = lambda **changes: decoding.generate(
        decoder,
        **{
            "inputs": markov.inputs([0, 0]),
            "start_ids": [1, 2],
            "max_new_tokens": 2,
            "end_id": 0,
            **changes,
        },
    )
    for changes, words in (
        (dict(start_ids=[1, 3]), r"start_ids must be in \[0, 3\)"),
        (dict(start_ids=[1.5, 2]), "start_ids must be integers"),
        (dict(start_ids=[1, 2, 0]), "batch as first axis"),
        (dict(end_id=3), "end_id"),
        (dict(banned=[-1]), "banned"),
        (dict(banned=[0, 1, 2, 2]), "banned leaves none"),
        (dict(max_new_tokens=-1), "max_new_tokens"),
        (dict(max_new_tokens=2.5), "max_new_tokens must be an int"),
        (dict(min_new_tokens=-1), "min_new_tokens must be an int"),
        (dict(min_new_tokens=1.5), "min_new_tokens must be an int"),
        (dict(limits=[1]), "limits"),
        (dict(strategy=decoding.Sampling(), seed=[1, 2, 3]), "seed"),
        (dict(strategy=decoding.Sampling(), seed=1.5), "seed must be an int"),
        (dict(strategy=decoding.Sampling(), seed=-1), "seed must be an int"),
        (dict(strategy="greedy"), "strategy takes .*got 'greedy'"),
        (dict(strategy=decoding.Greedy), "strategy takes .*got <class"),
        (dict(stop=[1, 2]), "list of lists"),
        (dict(stop=1), "list of lists"),
        (dict(pad_id=[]), "pad_id must be one int"),
        (dict(limits=[2**31, 1]), r"limits must be in \[0, 2147483648\); got"),
        (dict(processors=[decoding.NoRepeatNgram]), "processors takes a list of Processors, got"),
        (dict(stop=[[1], [3]]), r"stop must be in \[0, 3\)"),
        (dict(stop=[[1], []]), "empty"),
        (dict(stop=[[[1]], [[2]], [[1]]]), "each of 2 rows, got 3"),
        (dict(forced=[3]), r"forced must be in \[-1, 3\)"),
        (dict(forced=[[1], [1], [1]]), r"\(2, n\)"),
        (dict(history=[1, 2], processors=[decoding.NoRepeatNgram(2)]), r"history must be ints"),
        (dict(strategy=decoding.Contrastive()), "hidden_step"),
        (dict(strategy=decoding.Beam(2), stream=True), "stream=True"),
    ):
        with pytest.raises(ValueError, match=words):
            run(**changes)


def test_a_state_that_grows_is_refused():
    def grow(token_ids, index, state):
        return ops.one_hot(token_ids, 3), ops.concatenate([state, state], axis=1)

    with pytest.raises(ValueError, match="Preallocate"):
        decoding.generate(grow, np.zeros((1, 2), "float32"), start_ids=[0], max_new_tokens=2)


def test_empty_batch(markov):
    ids = decoding.generate(markov.random(0), markov.inputs([]), start_ids=[], max_new_tokens=3)
    assert ids.shape == (0, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: decoding.Sampling(temperature=0),
        lambda: decoding.Sampling(temperature=float("nan")),
        lambda: decoding.Sampling(top_p=-0.1),
        lambda: decoding.Sampling(top_p=1.1),
        lambda: decoding.Sampling(top_p=np.float32(1.1)),
        lambda: decoding.Sampling(top_p="0.5"),
        lambda: decoding.Sampling(temperature=None),
        lambda: decoding.Sampling(top_k=0),
        lambda: decoding.Sampling(top_k=2.5),
        lambda: decoding.Beam(2.5),
        lambda: decoding.Beam(2, num_return=1.0),
        lambda: decoding.Beam(0),
        lambda: decoding.Beam(2, num_return=3),
        lambda: decoding.Beam(2, length_penalty=float("inf")),
        lambda: decoding.Beam(4, groups=3),
        lambda: decoding.Beam(4, groups=2.0),
        lambda: decoding.Beam(4, groups=2, diversity=-1.0),
        lambda: decoding.Beam(4, diversity=1.0),
        lambda: decoding.Sampling(min_p=1.5),
        lambda: decoding.Contrastive(alpha=1.1),
        lambda: decoding.Contrastive(top_k=0),
        lambda: decoding.Exhaustive(num_return=0),
        lambda: decoding.Exhaustive(num_return=1.5),
        lambda: decoding.Exhaustive(most=0),
        lambda: decoding.Exhaustive(float("nan")),
        lambda: decoding.RepetitionPenalty(0.0),
        lambda: decoding.NoRepeatNgram(0),
        lambda: decoding.NoRepeatNgram(2.5),
        lambda: decoding.AllowedTokens([1, 2]),
    ],
)
def test_strategies_check_their_values(make):
    with pytest.raises(ValueError, match="must be"):
        make()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a graph of TensorFlow")
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_inside_a_graph_of_any_batch(summing, strategy):
    """As an exported function does it: `make_request` and `strategy.decode` alone."""
    import tensorflow as tf

    decoder, steps = summing(11, 8, cached=True), 7

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, 8), tf.float32),
            tf.TensorSpec((None,), tf.int32),
            tf.TensorSpec((None, steps), tf.float32),
        ],
        autograph=False,
    )
    def graph(inputs, start_ids, uniforms):
        request = decoding.make_request(
            strategy, start_ids=start_ids, max_new_tokens=steps, end_ids=[0], pad_id=10
        )
        return strategy.decode(decoder, inputs, {**request, "uniforms": uniforms}, steps)

    expected = written(summing, strategy, True)
    for batch in (1, 3):
        start_ids = np.arange(batch, dtype="int32") + 1
        got = graph(STARTS[:batch], start_ids, decoding.draw_uniforms(3, batch, steps))
        np.testing.assert_array_equal(got[0], expected.token_ids[:batch])
        np.testing.assert_allclose(got[1], expected.scores[:batch], rtol=1e-5)
