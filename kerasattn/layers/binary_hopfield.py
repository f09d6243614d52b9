import keras
from keras import ops

from kerasattn.ops import hopfield

UPDATES = ("asynchronous", "synchronous")


@keras.saving.register_keras_serializable(package="kerasattn")
class BinaryHopfield(keras.layers.Layer):
    """A Hopfield network: states run downhill to what was stored and is most like them.

    Its weights are stored, by `store` or `assign`, and not trained: there is no gradient.

    Args:
        update: "asynchronous", units one after another in their order; or "synchronous", all at
            once, which may never come to rest.
        num_sweeps: int >= 1, at most so many rounds over all units.

    Call arguments:
        states: (batch, units) of -1, 1, and 0 for what is not known.
        return_energy: bool.

    Shapes:
        (batch, units) -> (batch, units), and with return_energy the energy (batch,) where they end;
        float32 whatever the policy.

    Raises:
        ValueError: for another update, no sweeps, states of another rank, patterns that are not of
            -1 and 1.

    Example: a whole from its half.

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> network = layers.BinaryHopfield()
    >>> network.store([[1, 1, -1, -1], [1, -1, 1, -1]])
    >>> np.array(network(np.array([[1, -1, 0, 0]]))).tolist()
    [[1.0, -1.0, 1.0, -1.0]]

    Source: https://doi.org/10.1073/pnas.79.8.2554 (Hopfield 1982).
    """

    def __init__(self, update="asynchronous", num_sweeps=20, **kwargs):
        super().__init__(**kwargs)
        if update not in UPDATES:
            raise ValueError(f"update must be one of {UPDATES}, got {update!r}.")
        if num_sweeps < 1:
            raise ValueError(f"num_sweeps must be at least 1, got {num_sweeps}.")
        self.update, self.num_sweeps = update, num_sweeps

    def build(self, input_shape):
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                f"States must be (batch, units) with known units, got {tuple(input_shape)}."
            )
        units = input_shape[-1]
        kind = dict(trainable=False, dtype="float32")
        self.kernel = self.add_weight((units, units), "zeros", name="kernel", **kind)
        self.bias = self.add_weight((units,), "zeros", name="bias", **kind)

    def store(self, patterns):
        """Adds patterns to the weights, by Hebb's rule.

        Args:
            patterns: (number, units) of -1 and 1.

        Raises:
            ValueError: for others.
        """
        units = self.kernel.shape[0] if self.built else None
        patterns = hopfield.check_patterns("patterns", patterns, units)
        if not self.built:
            self.build(patterns.shape)
        self.kernel.assign_add(hopfield.hebbian(patterns))

    def sweep(self, states, order=None):
        """One round over all units.

        Args:
            states: (batch, units).
            order: int (units,), of an asynchronous update; None for one unit after the next.

        Returns:
            (batch, units).
        """
        if self.update == "synchronous":
            return hopfield.synchronous(states, self.kernel, self.bias)
        order = ops.arange(self.kernel.shape[0]) if order is None else order
        return hopfield.asynchronous(states, self.kernel, order, self.bias)

    def call(self, states, return_energy=False):
        states = ops.stop_gradient(ops.cast(states, "float32"))

        def goes_on(count, states, changed):
            return (count < self.num_sweeps) & changed

        def once(count, states, changed):
            after = self.sweep(states)
            return count + 1, after, ops.any(after != states)

        start = (ops.zeros((), "int32"), states, ops.ones((), "bool"))
        states = ops.while_loop(goes_on, once, start)[1]
        return (states, self.energy(states)) if return_energy else states

    def energy(self, states):
        """The energy of states, (batch,)."""
        return hopfield.energy(states, self.kernel, self.bias)

    def compute_output_spec(self, states, return_energy=False):
        found = keras.KerasTensor(states.shape, "float32")
        return (found, keras.KerasTensor(states.shape[:1], "float32")) if return_energy else found

    def get_config(self):
        return {**super().get_config(), "update": self.update, "num_sweeps": self.num_sweeps}
