import functools

import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.settings import check_settings
from kerasattn.ops.compiled import compiled

ORDERS = ("fixed", "random")


@keras.saving.register_keras_serializable(package="kerasattn")
class HopfieldNetwork(BaseModel):
    """The binary Hopfield network: patterns are stored at once, and found from what is like them.

    Args:
        num_units: int >= 1.
        update: "asynchronous", units one after another; or "synchronous", all at once.
        num_sweeps: int >= 1, at most so many rounds over all units.

    Inputs:
        states: (batch, num_units) of -1, 1, and 0 for what is not known.

    Outputs:
        states (batch, num_units), where they came to rest; energy (batch,), there.

    Raises:
        ValueError: for sizes below 1, another update, or patterns that are not of -1 and 1.

    Example:

    >>> import numpy as np
    >>> from kerasattn.models import HopfieldNetwork
    >>> patterns = np.random.default_rng(0).choice([-1, 1], (8, 100))
    >>> network = HopfieldNetwork(100)
    >>> network.store(patterns)
    >>> half = np.where(np.arange(100) < 50, patterns, 0)
    >>> found, energies = network.recall(half, order="random", seed=0, return_energies=True)
    >>> bool((found == patterns).all()), bool((np.diff(energies, axis=0) <= 1e-5).all())
    (True, True)

    Source: https://doi.org/10.1073/pnas.79.8.2554 (Hopfield 1982).
    """

    def __init__(
        self,
        num_units,
        update="asynchronous",
        num_sweeps=20,
        dtype=None,
        name="hopfield_network",
    ):
        config = dict(num_units=num_units, update=update, num_sweeps=num_sweeps, name=name)
        check_settings(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        network = layers.BinaryHopfield(update, num_sweeps, dtype=policy, name="network")

        # === Model ===
        states = keras.Input((num_units,), name="states")
        settled, energy = network(states, return_energy=True)  # (batch, num_units), (batch,)
        super().__init__({"states": states}, {"states": settled, "energy": energy}, name=name)

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._hidden = [states, settled]

    def store(self, patterns):
        """Adds patterns, (number, num_units) of -1 and 1, to the weights by Hebb's rule."""
        self.get_layer("network").store(patterns)

    def forget(self):
        """Sets all weights to 0."""
        for weight in self.get_layer("network").weights:
            weight.assign(ops.zeros(weight.shape, weight.dtype))

    def recall(self, states, order="fixed", seed=None, return_energies=False):
        """What the states come to rest at.

        Args:
            states: (batch, num_units) of -1, 1, and 0 for what is not known.
            order: "fixed" or "random", in which order an asynchronous update goes through the
                units; a random order is drawn anew for each sweep.
            seed: int or None, of the orders.
            return_energies: bool, whether to return the energy before the first and after each
                sweep.

        Returns:
            numpy float32 (batch, num_units), and with return_energies (sweeps + 1, batch).

        Raises:
            ValueError: for another order.
        """
        if order not in ORDERS:
            raise ValueError(f"order must be one of {ORDERS}, got {order!r}.")
        states = ops.convert_to_tensor(self._check_inputs(states)["states"], "float32")
        random, units = np.random.default_rng(seed), np.arange(self._config["num_units"])
        energies, before = [], None
        for _ in range(self._config["num_sweeps"] + 1):
            energy = self._energy(states)
            energies.append(ops.convert_to_numpy(energy))
            array = ops.convert_to_numpy(states)
            if before is not None and np.array_equal(array, before):
                break
            turns = random.permutation(units) if order == "random" else units
            before, states = array, self._sweep(states, turns.astype("int32"))
        return (array, np.stack(energies)) if return_energies else array

    @functools.cached_property
    def _sweep(self):
        return compiled(self.get_layer("network").sweep, self._all_variables)

    @functools.cached_property
    def _energy(self):
        return compiled(self.get_layer("network").energy, self._all_variables)

    def _all_variables(self):
        return self.variables
