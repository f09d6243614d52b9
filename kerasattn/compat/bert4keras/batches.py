import keras
import numpy as np
from keras.src.trainers.data_adapters.data_adapter import DataAdapter


class Batches(DataAdapter):
    """Batches of a generator, for `fit` and `predict`, whose lengths may differ at any time.

    Of a plain generator Keras 3 asks that the first two batches differ wherever later ones do: what
    has one length in both must keep it. This is what Keras calls an adapter of data, and says
    itself what may vary on TensorFlow: all axes, but for those of size 1 and for the features at
    the end of (batch, ..., features). It is an iterator too.

    Args:
        generator: of tuples (inputs,), (inputs, labels) or (inputs, labels, weights), without end.
    """

    def __init__(self, generator):
        self.generator = generator
        self.waiting = []

    def __iter__(self):
        return self

    def __next__(self):
        return self.waiting.pop(0) if self.waiting else next(self.generator)

    def get_tf_dataset(self):
        """A `tf.data.Dataset` of all batches that are left."""
        import tensorflow as tf

        self.waiting = [keras.tree.map_structure(np.asarray, next(self)) for _ in range(2)]
        signature = keras.tree.map_structure(
            lambda *arrays: tf.TensorSpec(shape_of_all(*arrays), arrays[0].dtype), *self.waiting
        )
        batches = lambda: (keras.tree.map_structure(np.asarray, batch) for batch in self)
        dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
        return dataset.prefetch(tf.data.AUTOTUNE)

    def get_jax_iterator(self):
        """All batches that are left, as arrays."""
        return (keras.tree.map_structure(np.asarray, batch) for batch in self)

    get_numpy_iterator = get_jax_iterator

    def get_torch_dataloader(self):
        """Not there: PyTorch is no backend of this library."""
        raise NotImplementedError("Batches of a DataGenerator are for TensorFlow and JAX.")

    num_batches = None
    batch_size = None
    has_partial_batch = None
    partial_batch_size = None


def shape_of_all(first, second):
    """The shape that all batches have, None for what may vary, of the arrays of two of them."""
    shape = [None] * first.ndim
    for axis, (a, b) in enumerate(zip(first.shape, second.shape)):
        is_label = a == b == 1
        # Features are numbers; whole ones are ids, of which there may be more or less.
        is_feature = a == b and axis == first.ndim - 1 > 1 and first.dtype.kind in "fu"
        is_square = first.shape[1:2] == (a,) and second.shape[1:2] == (b,)
        if axis and (is_label or (is_feature and not is_square)):
            shape[axis] = a
    return shape
