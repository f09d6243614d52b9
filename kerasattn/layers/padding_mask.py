import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class PaddingMask(keras.layers.Layer):
    """True at real tokens: the mask that was given, or else every token that is not padding.

    Args:
        pad_id: int, the id of padding, or None: no token is.
        keep_first: bool, whether position 0 counts as real whatever stands there.

    Shapes:
        token ids (batch, length) and optionally a padding mask (batch, length)
        -> bool (batch, length).

    Raises:
        ValueError: for a padding mask of another shape than the ids.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> print(np.array(layers.PaddingMask()(np.array([[7, 8, 0]]))))
    [[ True  True False]]
    """

    def __init__(self, pad_id=0, keep_first=False, **kwargs):
        super().__init__(**kwargs)
        self.pad_id = pad_id
        self.keep_first = keep_first

    def call(self, token_ids, padding_mask=None):
        if padding_mask is None:
            pad_id = -1 if self.pad_id is None else self.pad_id  # no token has -1
            mask = ops.not_equal(token_ids, pad_id)
        else:
            _check_same(tuple(token_ids.shape), tuple(padding_mask.shape))
            mask = ops.cast(padding_mask, "bool")
        if self.keep_first:
            mask = ops.concatenate([ops.ones_like(mask[:, :1]), mask[:, 1:]], axis=1)
        return mask

    def compute_output_spec(self, token_ids, padding_mask=None):
        return keras.KerasTensor(token_ids.shape, "bool")

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id, "keep_first": self.keep_first}


def _check_same(ids, mask):
    """Refuses a mask that would be stretched; sizes that are not known yet are None."""
    known = [size for size in zip(ids, mask) if None not in size]
    if len(ids) != len(mask) or any(a != b for a, b in known):
        raise ValueError(f"The padding mask has the shape {mask}, the token ids have {ids}.")
