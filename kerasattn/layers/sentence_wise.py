import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class SentenceWise(keras.layers.Wrapper):
    """Runs a layer over every sentence of documents, which are padded to one number of sentences.

    Args:
        layer: a layer of (batch, words, dim) that takes Keras' `mask`, such as a recurrent one, and
            returns a vector for each word.

    Shapes:
        x (batch, sentences, words, dim) and a padding_mask, bool (batch, sentences, words), True =
        real word, or None -> (batch, sentences, words, what the layer makes).

    Raises:
        ValueError: for x of another rank.

    Example:
    >>> import keras
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> layer = layers.SentenceWise(keras.layers.GRU(5, return_sequences=True))
    >>> tuple(layer(np.ones((2, 3, 7, 4), "float32")).shape)
    (2, 3, 7, 5)
    """

    def build(self, x_shape, padding_mask_shape=None):
        if len(x_shape) != 4:
            raise ValueError(
                f"x must be (batch, sentences, words, dim), got the shape {tuple(x_shape)}."
            )
        if not self.layer.built:
            self.layer.build((None, *x_shape[2:]))
        self.built = True

    def call(self, x, padding_mask=None, training=False):
        batch, sentences, words, _ = ops.shape(x)
        rows = ops.reshape(x, (batch * sentences, words, x.shape[-1]))
        if padding_mask is not None:
            padding_mask = ops.reshape(padding_mask, (batch * sentences, words))
        rows = self.layer(rows, mask=padding_mask, training=training)
        return ops.reshape(rows, (batch, sentences, words, rows.shape[-1]))

    def compute_output_spec(self, x, padding_mask=None, training=False):
        made = self.layer.compute_output_shape((None, *x.shape[2:]))
        return keras.KerasTensor((*x.shape[:3], made[-1]), self.layer.compute_dtype)
