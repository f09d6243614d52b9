"""CRFs against the sum and the maximum over all paths, written out."""

import itertools

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerasattn.ops import crf
from kerasattn.ops.compiled import compiled

TAGS = 3
# CASES C38
EMISSIONS = np.array([[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]], "float32")
TRANSITIONS = np.array([[0.5, -0.5], [-0.5, 0.5]], "float32")


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def all_paths(emissions, transitions, starts, ends, mask):
    """The score of every path through the real steps: {path: score}."""
    emissions, scores = np.asarray(emissions, "float64")[mask], {(): 0.0}
    if len(emissions):
        del scores[()]
    for path in itertools.product(range(emissions.shape[1]), repeat=len(emissions)):
        if path:
            score = starts[path[0]] + ends[path[-1]]
            score += sum(step[tag] for step, tag in zip(emissions, path))
            scores[path] = score + sum(transitions[pair] for pair in itertools.pairwise(path))
    return scores


def drawn(seed, batch=4, length=5, tags=TAGS, scale=2.0):
    random = np.random.default_rng(seed)
    draw = lambda *shape: random.normal(size=shape, scale=scale).astype("float32")
    parts = draw(batch, length, tags), draw(tags, tags), draw(tags), draw(tags)
    mask = random.random((batch, length)) < 0.7
    mask[0], mask[1] = False, True  # an empty row, a full one
    return parts, mask, random.integers(0, tags, (batch, length))


def forgetful(potentials):
    """Potentials that do not remember what they were made of: the loss is summed on themselves."""
    return potentials + 0.0


@compiled
def everything(emissions, transitions, starts, ends, mask, tags):
    potentials = crf.log_potentials(emissions, transitions, starts, ends, mask)
    losses = [crf.negative_log_likelihood(x, tags) for x in (potentials, forgetful(potentials))]
    return (
        keras.ops.stack(losses),
        crf.log_partition(potentials),
        crf.marginals(potentials),
        *crf.viterbi(potentials),
    )


def everything_once(*given):
    """Of shapes that come once: to make a graph takes TensorFlow longer than to do without."""
    once = keras.backend.backend() == "tensorflow"
    return list(map(array, (everything.function if once else everything)(*given)))


# Masks with holes, on the left, and empty rows among them.
@given(st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_equals_all_paths(seed):
    parts, mask, tags = drawn(seed)
    # At padding the tags may be anything.
    results = everything(*parts, mask, np.where(mask, tags, -100))
    losses, partitions, shares, best, scores = map(array, results)
    for i, row in enumerate(mask):
        paths = all_paths(parts[0][i], *parts[1:], row)
        total = np.logaddexp.reduce(list(paths.values()))
        np.testing.assert_allclose(partitions[i], total, atol=1e-5)
        np.testing.assert_allclose(losses[:, i], total - paths[tuple(tags[i][row])], atol=1e-5)
        assert tuple(best[i][row]) == max(paths, key=paths.get)
        np.testing.assert_allclose(scores[i], max(paths.values()), atol=1e-5)
        assert not best[i][~row].any()
        for place, step in enumerate(np.flatnonzero(row)):
            expected = [
                sum(np.exp(s - total) for p, s in paths.items() if p[place] == tag)
                for tag in range(TAGS)
            ]
            np.testing.assert_allclose(shares[i, step], expected, atol=1e-5)


@pytest.mark.parametrize(
    "mask, loss",
    [([1, 1, 1], 1.787680), ([1, 1, 0], 1.142736), ([1, 0, 0], 0.313262), ([1, 0, 1], 0.210998)],
)
def test_masks(mask, loss):
    potentials = crf.log_potentials(EMISSIONS, TRANSITIONS, padding_mask=np.array([mask], "bool"))
    tags = np.array([[0, 1, 0]])  # with the hole: 0, 0
    np.testing.assert_allclose(crf.negative_log_likelihood(potentials, tags), [loss], atol=1e-5)


def test_the_loss_of_a_tag_that_there_is_not():
    (emissions, transitions, *_), mask, tags = drawn(0)
    tags[0], tags[1, 2], tags[2:][~mask[2:]] = -100, TAGS, -100  # row 0 is empty
    potentials = crf.log_potentials(emissions, transitions, padding_mask=mask)
    for known in (potentials, forgetful(potentials)):
        lost = np.isnan(array(crf.negative_log_likelihood(known, tags)))
        assert lost.tolist() == [False, True, False, False]


def test_partition_and_best_path():
    potentials = crf.log_potentials(EMISSIONS, TRANSITIONS)
    np.testing.assert_allclose(crf.log_partition(potentials), [4.787680], atol=1e-5)
    tags, scores = crf.viterbi(potentials)
    assert array(tags).tolist() == [[0, 0, 0]] and float(scores[0]) == 4.0


def gradient_of(function, *values):
    """Gradients of a scalar, of each of the values."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.grad(function, argnums=tuple(range(len(values))))(*values)
    import tensorflow as tf

    tensors = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = function(*tensors)
    return tape.gradient(result, tensors)


@pytest.mark.parametrize("seen", [lambda x: x, forgetful], ids=["chain", "potentials"])
def test_gradients_are_differences_of_expected_counts(seen):
    parts, mask, tags = drawn(3)

    def loss(*parts):
        potentials = seen(crf.log_potentials(*parts, mask))
        return keras.ops.sum(crf.negative_log_likelihood(potentials, tags))

    gradients = gradient_of(loss, *parts)
    for which, gradient in enumerate(map(array, gradients)):
        exact = np.zeros_like(gradient)
        for i, row in enumerate(mask):
            scored = all_paths(parts[0][i], *parts[1:], row)
            total = np.logaddexp.reduce(list(scored.values()))
            shares = [(path, np.exp(score - total)) for path, score in scored.items()]
            for path, share in [*shares, (tuple(tags[i][row]), -1.0)]:
                steps = list(zip(np.flatnonzero(row), path))
                places = [
                    [(i, step, tag) for step, tag in steps],
                    list(itertools.pairwise(path)),
                    [(tag,) for _, tag in steps[:1]],
                    [(tag,) for _, tag in steps[-1:]],
                ][which]
                for place in places:
                    exact[place] += share
        np.testing.assert_allclose(gradient, exact, atol=1e-4)


# FACTS: sums in log space drift, and a small loss is the difference of large numbers.
def test_long_sequences():
    length = 10_000
    random = np.random.default_rng(0)
    emissions = random.normal(size=(2, length, 2)).astype("float32") * 3
    transitions = random.normal(size=(2, 2)).astype("float32")
    tags = emissions.argmax(axis=-1)
    mask = np.ones((2, length), bool)
    mask[1, 4000:] = False
    exact = []  # in float64
    for row, count in zip(range(2), mask.sum(axis=1)):
        e, path = emissions[row, :count].astype("float64"), tags[row, :count]
        alpha = e[0]
        for step in e[1:]:
            alpha = np.logaddexp.reduce(alpha[:, None] + transitions + step, axis=0)
        score = e[np.arange(count), path].sum() + transitions[path[:-1], path[1:]].sum()
        exact.append(np.logaddexp.reduce(alpha) - score)
    none = np.zeros(2, "float32")
    results = everything(emissions, transitions, none, none, mask, tags)
    losses, _, shares, best, _ = map(array, results)
    np.testing.assert_allclose(losses, [exact, exact], rtol=1e-5)
    np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-5)
    assert best.shape == (2, length) and not best[1, 4000:].any()


def test_what_is_impossible_has_no_share_and_finite_gradients():
    """Of the shapes of the tests above, which are compiled already."""
    transitions = np.zeros((TAGS, TAGS), "float32")
    transitions[0, 1], transitions[1, 0] = 1.0, crf.FORBIDDEN  # never 1 -> 0
    emissions = np.zeros((4, 5, TAGS), "float32")
    emissions[..., 2] = -100.0
    emissions[1] = -np.inf  # nothing is possible at all
    emissions[2, :, 0] = 1e4
    tags = np.tile([1, 0, 1, 0, 1], (4, 1))  # forbidden from the second step on
    mask, none = np.ones((4, 5), bool), np.zeros(TAGS, "float32")
    mask[3, 1:] = False  # a single step

    def loss(emissions, transitions):
        potentials = crf.log_potentials(emissions, transitions, padding_mask=mask)
        return keras.ops.sum(crf.negative_log_likelihood(potentials, tags))

    for gradient in gradient_of(loss, emissions, transitions):
        assert np.isfinite(array(gradient)).all()
    results = list(map(array, everything(emissions, transitions, none, none, mask, tags)))
    assert all(np.isfinite(x).all() for x in results)
    best = results[3][[0, 2]]
    assert not ((best[:, :-1] == 1) & (best[:, 1:] == 0)).any()


# What float32 drops of one step may be all that the next one leaves.
@pytest.mark.parametrize("seen", [lambda x: x, forgetful], ids=["chain", "potentials"])
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_scores_far_apart(spread, seen):
    parts, mask, tags = drawn(5, scale=spread)
    parts[1][0, 1] = parts[2][1] = crf.FORBIDDEN
    tags[1, 1:3] = 0, 1  # one of the true paths is impossible
    losses = array(everything(*parts, mask, tags)[0])

    def loss(*parts):
        potentials = seen(crf.log_potentials(*parts, mask))
        return keras.ops.sum(crf.negative_log_likelihood(potentials, tags))

    gradients = list(map(array, gradient_of(loss, *parts)))
    exact = np.zeros_like(parts[0])
    for i, row in enumerate(mask):
        paths = all_paths(parts[0][i], *parts[1:], row)
        total = np.logaddexp.reduce(list(paths.values()))
        expected = total - paths[tuple(tags[i][row])]
        np.testing.assert_allclose(losses[:, i], expected, rtol=1e-5, atol=1e-3)
        for path, score in [*paths.items(), (tuple(tags[i][row]), None)]:
            share = -1.0 if score is None else np.exp(score - total)
            exact[i, np.flatnonzero(row), list(path)] += share
    np.testing.assert_allclose(gradients[0], exact, atol=1e-3)
    np.testing.assert_allclose(
        gradients[2], exact[mask.any(1), mask.argmax(1)[mask.any(1)]].sum(0), atol=1e-3
    )


def test_half_precision_and_one_tag():
    emissions = np.full((2, 5, 4), 6e4, "float16")  # their sum is beyond float16
    half = [emissions, *(np.zeros(shape, "float16") for shape in [(4, 4), 4, 4])]
    potentials, half = crf.log_potentials(*half), [*half, np.ones((2, 5), bool)]
    assert keras.backend.standardize_dtype(potentials.dtype) == "float32"
    losses = everything_once(*half, np.zeros((2, 5), "int32"))[0]
    np.testing.assert_allclose(losses, 5 * np.log(4), rtol=1e-5)
    single = crf.log_potentials(
        np.ones((1, 3, 1)), np.ones((1, 1)), padding_mask=np.ones((1, 3), bool)
    )
    assert float(crf.negative_log_likelihood(single, np.array([[0, 0, -100]]))[0]) == 0.0


@pytest.mark.parametrize("case", ["small", "wide"])
def test_pytorch_crf(golden, case):
    data = np.load(golden("pytorch_crf.npz"))
    names = ("emissions", "transitions", "start_scores", "end_scores", "mask", "tags")
    *parts, mask, tags = given = [data[f"{case}/{name}"] for name in names]
    losses, _, _, best, _ = everything_once(*given)
    np.testing.assert_allclose(losses, [data[f"{case}/losses"]] * 2, atol=1e-4)
    np.testing.assert_array_equal(best, data[f"{case}/paths"])

    def loss(emissions, transitions):
        potentials = crf.log_potentials(emissions, transitions, *parts[2:], mask)
        return keras.ops.sum(crf.negative_log_likelihood(potentials, tags))

    gradients = map(array, gradient_of(loss, *parts[:2]))
    for name, gradient in zip(("emission", "transition"), gradients):
        np.testing.assert_allclose(gradient, data[f"{case}/{name}_gradients"], atol=1e-4)
