import keras

from kerasattn.training import metrics


class TextMetrics(keras.callbacks.Callback):
    """Has the model write at the end of each epoch, and logs how that compares with what is wanted.

    The numbers stand in the logs beside the loss, where `History` and `EarlyStopping` find them.

    Args:
        write: a function of the model that returns a list of str.
        originals: list of str, what should be written.
        metrics: dict of names to functions (originals, written) -> float, as those of
            `training.metrics`; by default BLEU and chrF of characters and the exact matches.
        every: int >= 1, after how many epochs.

    Raises:
        ValueError: if `every` is below 1, or not as many texts are written as there are originals.

    Example:
    >>> import keras
    >>> import numpy as np
    >>> from kerasattn.training import TextMetrics, metrics
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse", jit_compile=False)
    >>> compare = TextMetrics(
    ...     lambda model: ["ab", "d"], ["ab", "c"], {"val_exact": metrics.exact_match})
    >>> history = model.fit(np.zeros((1, 1)), np.zeros((1, 1)), verbose=0, callbacks=[compare])
    >>> history.history["val_exact"]
    [0.5]
    """

    DEFAULT = {
        "val_bleu": metrics.bleu,
        "val_chrf": metrics.chrf,
        "val_exact_match": metrics.exact_match,
    }

    def __init__(self, write, originals, metrics=None, every=1):
        super().__init__()
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}.")
        self.write = write
        self.originals = list(originals)
        self.metrics = dict(self.DEFAULT if metrics is None else metrics)
        self.every = every

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every or logs is None:
            return
        written = list(self.write(self.model))
        if len(written) != len(self.originals):
            raise ValueError(
                f"write must return as many texts as there are originals, {len(self.originals)}; "
                f"got {len(written)}."
            )
        for name, metric in self.metrics.items():
            logs[name] = metric(self.originals, written)
