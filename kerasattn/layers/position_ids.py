import keras
from keras import ops

from kerasattn.ops import masks


@keras.saving.register_keras_serializable(package="kerasattn")
class PositionIds(keras.layers.Layer):
    """The positions that were given, or else those that count real tokens alone.

    Args:
        start: int >= 0, position of the first real token.
        padding_position: int or None, position of all padding. By default padding has the position
            of the real token before it.

    Shapes:
        padding mask (batch, length) and optionally positions (batch, length)
        -> int32 (batch, length).

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> print(np.array(layers.PositionIds()(np.array([[False, True, True]]))))
    [[0 0 1]]

    Source: positions from 2 on, padding at 1: RoBERTa's checkpoints, after
    https://arxiv.org/abs/1907.11692.
    """

    def __init__(self, start=0, padding_position=None, **kwargs):
        super().__init__(**kwargs)
        self.start = start
        self.padding_position = padding_position

    def call(self, padding_mask, position_ids=None):
        if position_ids is not None:
            return ops.cast(position_ids, "int32")
        counted = masks.real_positions(padding_mask) + self.start
        if self.padding_position is None:
            return counted
        return ops.where(padding_mask, counted, self.padding_position)

    def compute_output_spec(self, padding_mask, position_ids=None):
        return keras.KerasTensor(padding_mask.shape, "int32")

    def get_config(self):
        return {
            **super().get_config(),
            "start": self.start,
            "padding_position": self.padding_position,
        }
