import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class Perplexity(keras.metrics.Mean):
    """exp of the mean cross-entropy of the tokens, each weighed by its `sample_weight`.

    Args:
        name: str.

    Shapes:
        update_state(cross-entropies in nats (batch, length), sample_weight (batch, length)).

    Example:
    >>> import math
    >>> from kerasattn.training.metrics import Perplexity
    >>> metric = Perplexity()
    >>> metric.update_state([[math.log(4.0), 9.0]], sample_weight=[[1.0, 0.0]])
    >>> round(float(metric.result()), 4)
    4.0
    """

    def __init__(self, name="perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def result(self):
        return ops.exp(super().result())
