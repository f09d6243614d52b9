import keras
from keras import ops

from kerasattn.ops.attention import masked_softmax
from kerasattn.ops.scores import dot


@keras.saving.register_keras_serializable(package="kerasattn")
class MemoryHop(keras.layers.Layer):
    """A look into a memory: what a question finds by its likeness to the keys.

    It may begin without the softmax, as a linear model, which some tasks are learned from: `linear`
    is a variable, which a training that is compiled sees change.

    Args:
        linear: bool, whether it begins so.

    Call arguments:
        question: (batch, dim).
        keys: (batch, slots, dim).
        values: (batch, slots, dim).
        attention_mask: bool (batch, slots), True where the memory holds something; None for
            everywhere.

    Shapes:
        What it found (batch, dim), zeros of an empty memory; and the weights of the slots (batch,
        slots), float32, or where it is linear the scores.

    Raises:
        ValueError: for inputs of another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> keys, values = np.array([[[9.0], [-9.0]]], "float32"), np.array([[[1.0], [2.0]]], "float32")
    >>> found, weights = layers.MemoryHop()(np.ones((1, 1), "float32"), keys, values)
    >>> np.array(found).round(3).tolist()
    [[1.0]]

    Source: https://arxiv.org/abs/1503.08895, equations 1 and 2; section 4.2 for linear.
    """

    def __init__(self, linear=False, **kwargs):
        super().__init__(**kwargs)
        self.linear = bool(linear)

    def build(self, question_shape, keys_shape, values_shape, attention_mask_shape=None):
        if len(question_shape) != 2 or len(keys_shape) != 3 or len(values_shape) != 3:
            raise ValueError(
                "A hop takes a question (batch, dim), keys and values (batch, slots, dim), got "
                f"{tuple(question_shape)}, {tuple(keys_shape)} and {tuple(values_shape)}."
            )
        self.is_linear = self.add_weight(
            (), "ones" if self.linear else "zeros", name="linear", dtype="float32", trainable=False
        )

    def call(self, question, keys, values, attention_mask=None):
        values = ops.cast(values, self.compute_dtype)  # which integers have no room for
        mask = None if attention_mask is None else attention_mask[:, None]
        scores = dot(question[:, None], keys)  # (batch, 1, slots)
        weights = masked_softmax(scores, mask)
        plain = scores if mask is None else scores * ops.cast(mask, "float32")
        weights = ops.where(ops.cast(self.is_linear, "bool"), plain, weights)
        found = ops.matmul(ops.cast(weights, values.dtype), values)
        return found[:, 0], weights[:, 0]

    def compute_output_spec(self, question, keys, values, attention_mask=None):
        found = keras.KerasTensor((values.shape[0], values.shape[-1]), self.compute_dtype)
        return found, keras.KerasTensor(keys.shape[:2], "float32")

    def get_config(self):
        return {**super().get_config(), "linear": self.linear}
