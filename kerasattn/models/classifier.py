"""What models that choose one of several classes share."""

import keras
from keras import ops

from kerasattn.training.losses import label_loss


class Classifier:
    """Of a `BaseModel` with `class_logits`: the cross-entropy of labels, and their accuracy."""

    _logits = "class_logits"  # the output that tells

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The mean cross-entropy in nats, unless `compile` was given a loss.

        Args:
            x: dict of the inputs.
            y: int (batch,), the classes; -100 counts for nothing.
            y_pred: dict of the outputs.
            sample_weight: (batch,), weights of rows.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None:
            raise ValueError(f"{self.name} needs labels y, int (batch,).")
        return label_loss(y, y_pred[self._logits], sample_weight) + sum(self.losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Those of `compile`, and the accuracy."""
        update_accuracy(self._accuracy, self._logits, y, y_pred, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _keep_classes(self, config, policy, hidden):
        """Keeps what `BaseModel` asks for, and the metric."""
        self._config = {**config, "dtype": policy.name}
        self._hidden = hidden
        self._accuracy = keras.metrics.Mean(name="accuracy")


def update_accuracy(metric, name, y, y_pred, sample_weight=None):
    """Counts how often the class of the highest logit is that of the labels, if there are any.

    Args:
        metric: `keras.metrics.Mean`.
        name: str, the output's.
        y: int (batch,) or one-hot (batch, classes) labels, or a dict of them by outputs.
        y_pred: dict of the outputs.
        sample_weight: (batch,), weights of rows.
    """
    labels = y.get(name) if isinstance(y, dict) else y
    if labels is None:
        return
    if len(labels.shape) == 2:  # of a loss of one's own
        labels = ops.argmax(labels, axis=-1)
    best = ops.argmax(y_pred[name], axis=-1)
    right = ops.equal(best, ops.cast(labels, best.dtype))
    metric.update_state(right, row_weights(labels, sample_weight))


def row_weights(y, sample_weight=None):
    """Weights of rows by int labels (batch,), for metrics: 0 where they are -100.

    Args:
        y: int (batch,).
        sample_weight: (batch,), what they are otherwise; None for 1.

    Shapes:
        -> float32 (batch,).
    """
    weights = ops.cast(ops.not_equal(y, -100), "float32")
    return weights if sample_weight is None else weights * ops.cast(sample_weight, "float32")


def both_ways(kind, units, policy, name):
    """A recurrent layer in both directions that gives a vector of 2 * units for each word.

    Args:
        kind: `keras.layers.GRU` or `LSTM`.
        units: int, of one direction.
        policy: the dtype policy.
        name: str.
    """
    layer = kind(units, return_sequences=True, dtype=policy)
    return keras.layers.Bidirectional(layer, dtype=policy, name=name)


def check_even(hidden_dim):
    """Refuses a width that two directions cannot share.

    Raises:
        ValueError: if it is odd.
    """
    if hidden_dim % 2:
        raise ValueError(f"hidden_dim is of two directions, it must be even: {hidden_dim}.")
