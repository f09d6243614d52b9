import keras

from kerasattn.ops import masks

APPLICATIONS = ("encoder", "lm", "unilm")


@keras.saving.register_keras_serializable(package="kerasattn")
class AttentionMask(keras.layers.Layer):
    """What a model's tokens see of each other: no padding, and as much as its application allows.

    Args:
        application: "encoder" sees everything; "lm" sees what stands before; "unilm" sees all of
            segment 0 and of segment 1 what stands before.

    Call arguments:
        padding_mask: bool (batch, length), True = real token.
        segment_ids: int (batch, length), read by "unilm" alone.
        attention_mask: bool (batch, length, length) or None, True = may attend: a further mask.

    Returns:
        bool, broadcastable to (batch, heads, length, length).

    Raises:
        ValueError: for another application.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> real = np.array([[True, True, False]])
    >>> print(np.array(layers.AttentionMask("lm")(real)).astype(int)[0, 0])
    [[1 0 0]
     [1 1 0]
     [1 1 0]]

    Source: UniLM https://arxiv.org/abs/1905.03197, section 2.2.
    """

    def __init__(self, application="encoder", **kwargs):
        super().__init__(**kwargs)
        if application not in APPLICATIONS:
            raise ValueError(f"application must be one of {APPLICATIONS}, got {application!r}.")
        self.application = application

    def call(self, padding_mask, segment_ids=None, attention_mask=None):
        mask = masks.keys(padding_mask)  # (batch, 1, 1 or length, length)
        if self.application == "lm":
            mask = mask & masks.causal(padding_mask)
        elif self.application == "unilm":
            mask = mask & masks.prefix(segment_ids)
        if attention_mask is not None:
            mask = mask & keras.ops.cast(attention_mask, "bool")[:, None]
        return mask

    def compute_output_spec(self, padding_mask, segment_ids=None, attention_mask=None):
        batch, length = padding_mask.shape
        queries = 1 if self.application == "encoder" and attention_mask is None else length
        return keras.KerasTensor((batch, 1, queries, length), "bool")

    def get_config(self):
        return {**super().get_config(), "application": self.application}
