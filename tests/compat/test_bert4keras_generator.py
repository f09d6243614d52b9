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
    model.compile("adam", loss="mse")
    generator = Batches(DATA, batch_size=3)
    model.fit(generator.forfit(), steps_per_epoch=len(generator), epochs=2, verbose=0)
    assert len(model.predict(generator.fortest(), steps=len(generator), verbose=0)) == 7


def test_to_dataset():
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
