import keras
from keras import ops

from kerasattn.ops import routing


@keras.saving.register_keras_serializable(package="kerasattn")
class CapsuleMask(keras.layers.Layer):
    """Keeps one capsule of each row and sets the others to zero, so that a decoder sees it alone.

    In training it is the one of the label, else, or where there is no label, the longest.

    Call arguments:
        capsules: float (batch, num_capsules, dim).
        labels: int (batch,) in [0, num_capsules).
        training: bool.

    Shapes:
        (batch, num_capsules, dim) -> (batch, num_capsules, dim)

    Raises:
        ValueError: for inputs of other ranks.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> capsules, labels = np.array([[[1.0, 2.0], [3.0, 4.0]]], "float32"), np.array([0])
    >>> layer = layers.CapsuleMask()
    >>> np.asarray(layer(capsules, labels, training=True)).tolist()
    [[[1.0, 2.0], [0.0, 0.0]]]
    >>> np.asarray(layer(capsules, labels)).tolist()
    [[[0.0, 0.0], [3.0, 4.0]]]

    Source: https://arxiv.org/abs/1710.09829, section 4.1.
    """

    def call(self, capsules, labels=None, training=False):
        if len(capsules.shape) != 3 or (labels is not None and len(labels.shape) != 1):
            raise ValueError(
                "CapsuleMask takes capsules (batch, num_capsules, dim) and labels (batch,), got "
                f"{tuple(capsules.shape)} and {labels if labels is None else tuple(labels.shape)}."
            )
        if labels is None or not training:
            labels = ops.argmax(routing.lengths(capsules), axis=-1)
        return routing.keep_labelled(capsules, labels)
