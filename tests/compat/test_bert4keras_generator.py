import keras
import numpy as np
import pytest

from kerasattn.compat.bert4keras import DataGenerator, sequence_padding


class Batches(DataGenerator):
    def __iter__(self, random=False):
        batch = []
        for is_end, item in self.sample(random):
            batch.append(item)
            if len(batch) == self.batch_size or is_end:
                ids = sequence_padding(batch)
                yield [ids, np.zeros_like(ids)], np.array([[len(item)] for item in batch])
                batch = []


DATA = [[1] * n for n in (3, 1, 4, 1, 5, 9, 2)]


def test_every_item_once_a_round():
    generator = Batches(DATA, batch_size=3)
    assert len(generator) == 3
    assert [len(y) for _, y in generator] == [3, 3, 1]
    labels = [y for _, (_, y) in zip(range(3), generator.forfit())]
    assert sorted(np.concatenate(labels)[:, 0]) == sorted(map(len, DATA))
    for random in (False, True):
        stream = Batches(iter(DATA), batch_size=3, buffer_size=2)
        got = [item for _, item in stream.sample(random)]
        assert sorted(got) == sorted(DATA) and (random or got == DATA)
    with pytest.raises(TypeError, match="give steps_per_epoch"):
        len(stream)
    assert list(Batches([]).sample()) == []


def test_fit_and_predict():
    ids, segments = (keras.Input((None,), dtype="int32") for _ in range(2))
    h = keras.layers.Embedding(3, 4)(ids) + keras.layers.Embedding(2, 4)(segments)
    model = keras.Model([ids, segments], keras.layers.Dense(1)(h[:, 0]))
    model.compile("adam", loss="mse", jit_compile=False)
    generator = Batches(DATA, batch_size=3)
    model.fit(generator.forfit(), steps_per_epoch=len(generator), epochs=2, verbose=0)
    assert len(model.predict(generator.fortest(), steps=len(generator), verbose=0)) == 7


@pytest.mark.parametrize("lengths", [(3, 3, 5), (1, 1, 1)])
def test_lengths_that_differ_late(lengths):
    """Keras 3 takes an axis that has one length in two batches to have it in all."""

    class Rounds(DataGenerator):
        def __iter__(self, random=False):
            for length in self.data:
                ids = np.ones((2, length), int)
                labels = [np.ones((2, 1), int), np.ones((2, length, 2))]
                yield [ids, np.ones((2, 4, 4, 3), "float32")], labels

    ids, pixels = keras.Input((None,), dtype="int32"), keras.Input((4, 4, 3))
    h = keras.layers.Embedding(3, 2)(ids)
    h = h + keras.ops.mean(pixels)
    label = keras.layers.Dense(3, activation="softmax")(h[:, 0])
    model = keras.Model([ids, pixels], [label, h])
    losses = ["sparse_categorical_crossentropy", "mse"]
    model.compile("sgd", losses, jit_compile=False)
    batches = Rounds(lengths, batch_size=2)
    model.fit(batches.forfit(), steps_per_epoch=4, epochs=2, verbose=0)
    assert model.predict(batches.fortest(), steps=2, verbose=0)[0].shape == (4, 3)
    inputs, labels = next(batches.forfit())
    assert (inputs[0].shape[1], len(labels)) == (lengths[0], 2)


def test_to_dataset():
    pytest.importorskip("tensorflow", reason="tf.data is TensorFlow's")

    class Samples(DataGenerator):
        def __iter__(self, random=False):
            for _, item in self.sample(random):
                yield item, [len(item)]

    dataset = Samples(DATA, batch_size=4).to_dataset(
        types=("int32", "int32"), shapes=([None], [1]), names=("ids", None), padded_batch=True
    )
    x, y = next(iter(dataset))
    assert x["ids"].shape[0] == 4 and x["ids"].shape[1] == max(y[:, 0])
    np.testing.assert_array_equal((x["ids"].numpy() > 0).sum(axis=1), y[:, 0])


def test_to_dataset_of_names():
    pytest.importorskip("tensorflow", reason="tf.data is TensorFlow's")

    class Pairs(DataGenerator):
        def __iter__(self, random=False):
            for _, item in self.sample(random):
                yield [item, [0] * len(item)], [[len(item)]]

    batches = Pairs(DATA, batch_size=4)
    types, shapes = [("float32", "float32"), ("float32",)], [([None], [None]), ([1],)]
    names = [("ids", "segments"), ("label",)]
    x, y = next(iter(batches.to_dataset(types, shapes, names, padded_batch=True)))
    assert x["ids"].shape == x["segments"].shape and y.shape == (4, 1)  # of one output, no dict
    both = batches.to_dataset(types, shapes, [("ids", "segments"), ("y",)], padded_batch=True)
    assert set(next(iter(both))[0]) == {"ids", "segments"}

    class Alone(DataGenerator):
        def __iter__(self, random=False):
            for _, item in self.sample(random):
                yield item, [0] * len(item)

    alone = Alone(DATA, batch_size=4).to_dataset(
        ("int32", "int32"), ([None], [None]), ("ids", "segments"), padded_batch=True
    )
    assert set(next(iter(alone))) == {"ids", "segments"}
