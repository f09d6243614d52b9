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


def label_loss(labels, logits, sample_weight=None, label_smoothing=0.0):
    """The mean cross-entropy of labels, in nats each, where -100 counts for nothing.

    Args:
        labels: int (batch, length), or (batch,).
        logits: (batch, length, vocabulary), or (batch, vocabulary).
        sample_weight: (batch,) or (batch, length), weights of sentences or tokens.
        label_smoothing: float in [0, 1), the share of each label that is spread evenly over all
            tokens (https://arxiv.org/abs/1512.00567, section 7).

    Raises:
        ValueError: for labels of another rank, such as (batch, 1) of one class each.

    Example:
    >>> import numpy as np
    >>> from kerasattn.training.losses import label_loss
    >>> round(float(label_loss(np.array([[3, -100]]), np.zeros((1, 2, 8), "float32"))), 3)
    2.079
    """
    labels = ops.cast(labels, "int32")
    if len(logits.shape) != len(labels.shape) + 1:  # it would be stretched, and the loss be wrong
        raise ValueError(
            f"labels of logits {tuple(logits.shape)} take all their axes but the last, got "
            f"{tuple(labels.shape)}."
        )
    if len(labels.shape) == 1:
        labels, logits = labels[:, None], logits[:, None]
    counts = ops.not_equal(labels, -100)
    weights = ops.cast(counts, "float32")
    if sample_weight is not None:
        weights = weights * token_weights(sample_weight, labels)
    losses = token_cross_entropy(ops.where(counts, labels, 0), logits)
    if label_smoothing:
        spread = -ops.mean(ops.log_softmax(ops.cast(logits, "float32"), axis=-1), axis=-1)
        losses = (1 - label_smoothing) * losses + label_smoothing * spread
    return weighted_mean(losses, weights)


def binary_loss(labels, logits, sample_weight=None):
    """The mean cross-entropy of yes and no, in nats each, where -100 counts for nothing.

    Args:
        labels: int (batch, length), 1 for yes.
        logits: (batch, length).
        sample_weight: (batch,) or (batch, length), weights of sentences or tokens.
    """
    no = ops.zeros_like(logits)
    return label_loss(labels, ops.stack([no, logits], axis=-1), sample_weight)


def squared_loss(labels, values, sample_weight=None):
    """The mean squared error of numbers (batch,), weighted by `sample_weight` (batch,)."""
    errors = ops.square(ops.cast(labels, "float32") - ops.cast(values, "float32"))
    weights = ops.ones_like(errors) if sample_weight is None else sample_weight
    return weighted_mean(errors, weights)


def multilabel_cross_entropy(labels, scores):
    """log(1 + the sum of e^score of what is not) + log(1 + the sum of e^-score of what is).

    It asks for scores above 0 of all that is and below 0 of all else, without a balance of the two
    that would have to be tuned, whatever their numbers. Scores of -inf cost nothing where the label
    is 0.

    Args:
        labels: (..., number) of 0 and 1.
        scores: float (..., number).

    Shapes:
        -> (...) float32, in nats.

    Example: of three labels that are scored 0, two are not and one is.

    >>> import numpy as np
    >>> from kerasattn.training.losses import multilabel_cross_entropy
    >>> round(float(multilabel_cross_entropy([1, 0, 0], [0.0, 0.0, 0.0])), 4)  # log 3 + log 2
    1.7918

    Source: https://arxiv.org/abs/2208.02955, equation 6; https://kexue.fm/archives/7359.
    """
    is_so = ops.cast(labels, "float32") > 0.5
    scores = ops.cast(scores, "float32")
    zeros = ops.zeros_like(scores[..., :1])
    # A finite minimum, so that no gradient meets inf - inf.
    of = lambda those, signed: ops.logsumexp(
        ops.concatenate([zeros, ops.where(those, ops.maximum(signed, -1e30), -1e30)], axis=-1),
        axis=-1,
    )
    return of(~is_so, scores) + of(is_so, -scores)
