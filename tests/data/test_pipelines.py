import itertools
from collections import Counter

import numpy as np
import pytest

from kerasattn.data import BucketPlan, bucketed_batches


@pytest.fixture
def sentences():
    """200 sentences, each told by its second id."""
    lengths = np.random.default_rng(0).integers(2, 20, 200)
    return [np.array([2] + [i + 10] * (n - 1), "int32") for i, n in enumerate(lengths)]


def take(batches, count):
    return [np.asarray(batch) for batch in itertools.islice(iter(batches), count)]


def same(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b))


def as_sentences(batches):
    return Counter(tuple(row[row != 0].tolist()) for batch in batches for row in batch if row.any())


def test_training_batches_are_full_and_of_few_shapes(sentences):
    pytest.importorskip("tensorflow")
    batches = take(bucketed_batches(sentences, 16, (8, 16, 20)), 60)
    assert {batch.shape for batch in batches} == {(16, 8), (16, 16), (16, 20)}
    assert all(batch.dtype == np.int32 for batch in batches)


def test_an_epoch_holds_every_sentence_once(sentences):
    plan = BucketPlan(sentences, 16, (8, 16, 20), shuffle=False)
    assert plan.batches_per_epoch == 13
    batches = list(plan.epoch(0))
    assert len(batches) == 13 and sorted(len(batch) for batch in batches) == [8] + [16] * 12
    assert as_sentences(batches) == Counter(tuple(s.tolist()) for s in sentences)
    # Shuffled: all but what does not fill a batch, and that is another part each epoch.
    plan = BucketPlan(sentences, 16, (8, 16, 20))
    first, second = as_sentences(plan.epoch(0)), as_sentences(plan.epoch(1))
    assert plan.batches_per_epoch == 12
    assert sum(first.values()) == sum(second.values()) == 192
    assert max(first.values()) == 1 and first != second


def test_epochs_are_shuffled_differently_and_repeat_with_the_seed(sentences):
    pytest.importorskip("tensorflow")
    count = BucketPlan(sentences, 16).batches_per_epoch
    batches = take(bucketed_batches(sentences, 16, seed=3), 2 * count)
    assert not same(batches[:count], batches[count:])
    assert same(batches, take(bucketed_batches(sentences, 16, seed=3), 2 * count))
    assert not same(batches, take(bucketed_batches(sentences, 16, seed=4), 2 * count))


@pytest.mark.parametrize("skip", [0, 1, 5, 12, 13, 31])
def test_skipping_batches_goes_on_where_a_run_stopped(sentences, skip):
    pytest.importorskip("tensorflow")
    whole = take(bucketed_batches(sentences, 16, seed=1), skip + 20)
    rest = take(bucketed_batches(sentences, 16, seed=1, skip_batches=skip), 20)
    assert same(whole[skip:], rest)


def test_validation(sentences):
    pytest.importorskip("tensorflow")
    data = bucketed_batches(sentences, 16, (8, 20), shuffle=False, repeat=False)
    assert data.cardinality() == 13
    assert same(take(data, 99), take(data, 99))
    padded = take(
        bucketed_batches(sentences, 16, (8, 20), shuffle=False, repeat=False, remainder="pad"), 99
    )
    assert all(len(batch) == 16 for batch in padded)
    assert as_sentences(padded) == as_sentences(data.as_numpy_iterator())


def test_default_buckets_hold_every_sentence(sentences):
    plan = BucketPlan(sentences, 16)
    longest = max(map(len, sentences))
    assert plan.buckets[-1] == longest and len(plan.buckets) <= 6
    assert all(length % 4 == 0 for length in plan.buckets[:-1])
    assert BucketPlan([[1, 2]] * 5, 2).buckets == [2]


@pytest.mark.parametrize("seed", range(3))
def test_default_buckets_leave_the_least_padding(seed):
    lengths = np.ceil(np.random.default_rng(seed).lognormal(2.3, 0.6, 300)).astype(int)
    longest = lengths.max()
    plan = BucketPlan([np.ones(n, "int32") for n in lengths], 1)

    def tokens(buckets):
        return np.take(buckets, np.searchsorted(buckets, lengths)).sum()

    choices = itertools.combinations(range(4, longest, 4), 5)
    assert tokens(plan.buckets) == min(tokens([*some, longest]) for some in choices)


def test_padded_array_and_lists_are_the_same():
    padded = np.array([[5, 0, 6, 0, 0], [7, 8, 0, 0, 0]])  # a 0 inside is a token
    plan = BucketPlan(padded, 1, (2, 5), shuffle=False)
    assert [batch.tolist() for batch in plan.epoch(0)] == [[[7, 8]], [[5, 0, 6, 0, 0]]]


def test_corpus_smaller_than_a_batch():
    plan = BucketPlan([[1, 2], [3]], batch_size=64)
    assert plan.batches_per_epoch == 1
    assert next(plan.epoch(0)).shape == (2, 2)


def test_fit_takes_it(sentences):
    pytest.importorskip("tensorflow")
    import keras

    model = keras.Sequential([keras.layers.Embedding(300, 4), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = bucketed_batches(sentences, 16).map(lambda ids: (ids, ids[..., None]))
    history = model.fit(data, steps_per_epoch=5, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


@pytest.mark.parametrize(
    "change, message",
    [
        ({"token_id_lists": []}, "no sentences"),
        ({"token_id_lists": [[1], []]}, "Sentence 1 has no token ids"),
        ({"token_id_lists": [[1], [1.7]]}, "integers, got row 1"),
        ({"token_id_lists": [[1], [[1], [2]]]}, r"row 1 of shape \(2, 1\)"),
        ({"token_id_lists": [[1], [1, -2]]}, "-2 in sentence 1 .* not negative"),
        ({"vocabulary_size": 3}, "3 in sentence 1 .* 0 to 2"),
        ({"buckets": (2, 3)}, "Sentence 2 has 4 token ids, the last bucket holds 3"),
        ({"buckets": (8, 4)}, "increasing"),
        ({"batch_size": 0}, "at least 1, got 0"),
        ({"skip_batches": -1}, "negative, got -1"),
        ({"remainder": "wrap"}, "'wrap'"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"token_id_lists": [[1], [2, 3], [1, 1, 1, 1]], "batch_size": 2, **change}
    with pytest.raises(ValueError, match=message):
        bucketed_batches(**arguments)
