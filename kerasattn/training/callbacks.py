"""Callbacks that guide the latents of an autoencoder while it trains."""

import keras


class StepCallback(keras.callbacks.Callback):
    """Tells its subclasses which step of the whole training a batch begins.

    Steps are those that `optimizer.iterations` counts, over several calls of `fit` and, with a
    checkpoint, over several processes: what follows from the step alone goes on where it was.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from kerasattn.training import StepCallback
    >>> class Announce(StepCallback):
    ...     def on_train_batch_begin(self, batch, logs=None):
    ...         print("step", self.step_at(batch))
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse", jit_compile=False)
    >>> x = np.zeros((1, 1))
    >>> _ = model.fit(x, x, epochs=2, verbose=0, callbacks=[Announce()])
    step 0
    step 1
    """

    def on_epoch_begin(self, epoch, logs=None):
        # Read once an epoch: it waits for the device.
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        self._accumulated = getattr(optimizer, "gradient_accumulation_steps", None) or 1
        # In batches: with accumulated gradients an epoch may begin in the middle of a step.
        self._epoch_start = int(optimizer._iterations)

    def step_at(self, batch):
        """The step, counted from 0, of a batch of the epoch.

        With `steps_per_execution` Keras tells the first batch of each execution alone.
        """
        return (self._epoch_start + batch) // self._accumulated


class AnnealWeight(StepCallback):
    """Raises the weight of a loss from step to step, once or in cycles.

    Within a cycle the weight goes linearly from `start` to `end` over the first `ramp` of the
    steps and stays there for the rest; after the last cycle it stays at `end`. One cycle with
    ramp 1 is a plain warm-up. The weight is a function of `optimizer.iterations` alone, so that
    training which was stopped and resumed goes on as if it was not.

    Args:
        steps: int >= 1, the training steps of one cycle.
        start: float >= 0, the weight at the start of each cycle.
        end: float >= 0, the weight that is reached.
        cycles: int >= 1, how often the weight is raised.
        ramp: float, 0 < ramp <= 1, the part of a cycle in which the weight rises.
        layers: a layer, a list of layers, or None for all layers of the model that have the
            attribute.
        attribute: str, the name of the layers' variable: "kl_weight" of `GaussianSampling`,
            "isotropy_weight" of `IsotropyRegularization`.

    Raises:
        ValueError: if an argument is out of its range, or no layer has such a variable.

    Example:

    >>> from kerasattn.training import callbacks
    >>> warm_up = callbacks.AnnealWeight(steps=1000)
    >>> [warm_up.value(step) for step in (0, 500, 1000, 5000)]
    [0.0, 0.5, 1.0, 1.0]
    >>> cyclical = callbacks.AnnealWeight(steps=1000, cycles=4, ramp=0.5)
    >>> [cyclical.value(step) for step in (250, 750, 1000, 9999)]
    [0.5, 1.0, 0.0, 1.0]

    Source: https://arxiv.org/abs/1511.06349, section 3.1; cycles: https://arxiv.org/abs/1903.10145.
    """

    def __init__(
        self,
        steps,
        start=0.0,
        end=1.0,
        cycles=1,
        ramp=1.0,
        layers=None,
        attribute="kl_weight",
    ):
        super().__init__()
        if steps < 1 or cycles < 1:
            raise ValueError(f"steps and cycles must be at least 1, got {steps} and {cycles}.")
        if not start >= 0 or not end >= 0:
            raise ValueError(f"start and end must not be negative, got {start} and {end}.")
        if not 0 < ramp <= 1:
            raise ValueError(f"ramp must be above 0 and at most 1, got {ramp}.")
        self.steps, self.cycles = int(steps), int(cycles)
        self.start, self.end, self.ramp = float(start), float(end), float(ramp)
        self.layers, self.attribute = layers, attribute

    def value(self, step):
        """The weight at a training step, counted from 0."""
        if step >= self.steps * self.cycles:
            return self.end
        part = min(1.0, step % self.steps / (self.steps * self.ramp))
        return self.start + part * (self.end - self.start)

    def on_train_begin(self, logs=None):
        self._targets = _layers_with(self.model, self.attribute, self.layers)
        self._current = None

    def on_train_batch_begin(self, batch, logs=None):
        self._set(self.value(self.step_at(batch)))

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs[self.attribute] = self._current

    def _set(self, value):
        if value == self._current:
            return
        # On JAX an epoch's step holds the variables until someone asks for the model: what is set
        # before would be overwritten.
        _ = self.model
        for layer in self._targets:
            getattr(layer, self.attribute).assign(value)
        self._current = value


class CodeUsage(keras.callbacks.Callback):
    """Logs how many codes the vector quantizers of a model use, at the end of each epoch.

    Logs `code_perplexity`, the perplexity of the codes of recent batches, averaged over the
    quantizers: 1 is a single code, `codebook_size` all codes alike.

    Args:
        layers: a layer, a list of layers, or None for all vector quantizers of the model.

    Raises:
        ValueError: if the model has no vector quantizer.

    Example:

    >>> from kerasattn.training import callbacks
    >>> usage = callbacks.CodeUsage()
    """

    def __init__(self, layers=None):
        super().__init__()
        self.layers = layers

    def on_epoch_end(self, epoch, logs=None):
        targets = _layers_with(self.model, "codebook", self.layers)
        if logs is not None:
            logs["code_perplexity"] = sum(float(x.perplexity()) for x in targets) / len(targets)


def _layers_with(model, variable, layers):
    """The given layers, or all layers of the model, that hold a variable of that name."""

    def holds(layer):
        return isinstance(getattr(layer, variable, None), keras.Variable)

    if layers is None:
        found = [layer for layer in model._flatten_layers() if holds(layer)]
    else:
        found = list(layers) if isinstance(layers, (list, tuple)) else [layers]
    if not found or not all(map(holds, found)):
        names = [layer.name for layer in (found or model.layers)]
        raise ValueError(
            f"Expected layers with a variable `{variable}`, got {names}. Add such a layer to the "
            "model, or name it in `layers`."
        )
    return found
