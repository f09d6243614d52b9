import numpy as np

from kerasattn.compat.bert4keras.batches import Batches


class DataGenerator:
    """Batches of data that is a list or a stream, over and over, for `model.fit`.

    Subclass it and write `__iter__(self, random=False)`, which collects what `self.sample(random)`
    gives and yields batches `(inputs, labels)`.

    Args:
        data: a sequence, or something to iterate over again and again.
        batch_size: int.
        buffer_size: int, how many of a stream are shuffled together; 1000 batches by default.

    Example:

    >>> from kerasattn.compat.bert4keras import DataGenerator
    >>> class Numbers(DataGenerator):
    ...     def __iter__(self, random=False):
    ...         batch = []
    ...         for is_end, item in self.sample(random):
    ...             batch.append(item)
    ...             if len(batch) == self.batch_size or is_end:
    ...                 yield [batch], None
    ...                 batch = []
    >>> list(Numbers([1, 2, 3], batch_size=2)), len(Numbers([1, 2, 3], batch_size=2))
    ([([[1, 2]], None), ([[3]], None)], 2)
    """

    def __init__(self, data, batch_size=32, buffer_size=None):
        self.data = data
        self.batch_size = batch_size
        self.steps = -(-len(data) // batch_size) if hasattr(data, "__len__") else None
        self.buffer_size = buffer_size or batch_size * 1000

    def __len__(self):
        if self.steps is None:
            raise TypeError("The data is a stream: its length is not known, give steps_per_epoch.")
        return self.steps

    def sample(self, random=False):
        """Yields (is_end, item) of one round, shuffled if random."""
        rows = self._shuffled() if random else iter(self.data)
        try:
            current = next(rows)
        except StopIteration:
            return
        for following in rows:
            yield False, current
            current = following
        yield True, current

    def _shuffled(self):
        if self.steps is not None:
            for i in np.random.permutation(len(self.data)):  # noqa: NPY002, users seed this one
                yield self.data[i]
            return
        waiting = []
        for item in self.data:
            waiting.append(item)
            if len(waiting) >= self.buffer_size:
                yield waiting.pop(np.random.randint(len(waiting)))  # noqa: NPY002
        while waiting:
            yield waiting.pop(np.random.randint(len(waiting)))  # noqa: NPY002

    def __iter__(self, random=False):
        raise NotImplementedError("A subclass of DataGenerator writes __iter__(self, random).")

    def forfit(self, random=True):
        """Batches without end, for `fit`: inputs in a tuple, and labels where there are any."""
        return Batches(map(_for_keras, self._rounds(random)))

    def fortest(self, random=False):
        """The inputs of batches without end, for `predict`."""
        return Batches((_for_keras(batch)[0],) for batch in self._rounds(random))

    def _rounds(self, random):
        while True:
            yield from self.__iter__(random)

    def to_dataset(self, types, shapes, names=None, padded_batch=False):
        """A `tf.data.Dataset` of batches, of an `__iter__` that yields samples.

        Args:
            types, shapes: dtypes and shapes of a sample, nested as it is.
            names: names of its parts, nested likewise, for dicts: [("a", "b"), ("y",)] for inputs
                and labels, ("a", "b") for inputs alone. None for tuples.
            padded_batch: whether samples are padded to the longest of their batch.
        """
        import tensorflow as tf

        types, shapes = _named(types, names), _named(shapes, names)
        signature = tf.nest.map_structure(
            lambda dtype, shape: tf.TensorSpec(shape, dtype), types, _shapes_as(types, shapes)
        )
        samples = lambda: (_named(sample, names) for sample in self.forfit())
        dataset = tf.data.Dataset.from_generator(samples, output_signature=signature)
        batch = dataset.padded_batch if padded_batch else dataset.batch
        return batch(self.batch_size).prefetch(tf.data.AUTOTUNE)


def _for_keras(batch):
    """(inputs, labels) as Keras takes them: lists as tuples, no labels if they are None."""
    if not isinstance(batch, list | tuple):
        return (batch,)
    inputs, *rest = batch
    inputs = tuple(inputs) if isinstance(inputs, list) else inputs
    while rest and rest[-1] is None:
        rest.pop()
    return (inputs, *(tuple(x) if isinstance(x, list) else x for x in rest))


def _named(parts, names):
    """Parts with the structure of their names: dicts; lone labels stand for themselves."""
    if names is None:
        return tuple(tuple(p) if isinstance(p, list) else p for p in parts)
    if isinstance(names, str):
        return {names: parts}
    if all(isinstance(name, str) for name in names):
        return dict(zip(names, parts))
    inputs, *rest = (p if name is None else _named(p, name) for p, name in zip(parts, names))
    lone = lambda p: next(iter(p.values())) if isinstance(p, dict) and len(p) == 1 else p
    return (inputs, *map(lone, rest))


def _shapes_as(types, shapes):
    """Shapes, which are tuples themselves, kept whole in the structure of the types."""
    import tensorflow as tf

    if isinstance(types, dict):
        return {name: _shapes_as(types[name], shapes[name]) for name in types}
    if isinstance(types, tuple):
        return tuple(_shapes_as(t, s) for t, s in zip(types, shapes))
    return tf.TensorShape(shapes)
