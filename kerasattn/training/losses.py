"""Losses over tokens, where padding and weights count as they should."""

import keras
from keras import ops


def token_cross_entropy(token_ids, logits):
    """-log p of each token, in nats and float32.

    (batch, length), (batch, length, vocabulary) -> (batch, length).
    """
    logits = ops.cast(logits, "float32")
    return keras.losses.sparse_categorical_crossentropy(token_ids, logits, from_logits=True)


def weighted_mean(values, weights):
    """sum(weights * values) / sum(weights), and 0 where there is no weight at all.

    Example:
    >>> from kerasattn.training.losses import weighted_mean
    >>> float(weighted_mean([[1.0, 9.0, 2.0]], [[1.0, 0.0, 1.0]]))
    1.5
    """
    values, weights = ops.convert_to_tensor(values), ops.convert_to_tensor(weights)
    weights = ops.cast(weights, values.dtype)
    total = ops.sum(weights)
    return ops.sum(values * weights) / ops.where(total > 0, total, 1.0)


def token_weights(sample_weight, token_ids):
    """Weights of sentences (batch,) or of tokens (batch, length) as float32 (batch, length).

    Raises:
        ValueError: for another rank.
    """
    weights = ops.cast(sample_weight, "float32")
    if len(weights.shape) == 1:
        weights = weights[:, None]
    if len(weights.shape) != 2:
        raise ValueError(
            "sample_weight takes (batch,) or (batch, length), got the shape "
            f"{tuple(weights.shape)}."
        )
    return ops.broadcast_to(weights, ops.shape(token_ids))
