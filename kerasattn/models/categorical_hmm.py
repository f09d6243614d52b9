import keras
import numpy as np

from kerasattn import layers
from kerasattn.models import hmm_estimation as estimation
from kerasattn.models.hmm import HiddenMarkovModel, initializer, probabilities
from kerasattn.models.settings import check_settings


@keras.saving.register_keras_serializable(package="kerasattn")
class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov model of symbols.

    Trained by `estimate` (states known), by `baum_welch`, or by gradient with `fit`, whose loss is
    -log p(observations), in nats an observation.

    Args:
        num_states, num_symbols: ints >= 1.
        seed: int or None, of the start.

    Inputs:
        observations: int (batch, length) in [0, num_symbols).
        padding_mask: bool (batch, length), True = real; by default all are.

    Outputs:
        log_likelihood (batch,), in nats, -inf for what is impossible; posteriors (batch, length,
        num_states), 0 at padding.

    Raises:
        ValueError: for numbers below 1, symbols out of range.

    Example:

    >>> import numpy as np
    >>> from kerasattn.models import CategoricalHMM
    >>> model = CategoricalHMM(2, num_symbols=3)
    >>> model.set_parameters(
    ...     initial=[0.6, 0.4],
    ...     transitions=[[0.7, 0.3], [0.4, 0.6]],
    ...     symbols=[[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]],
    ... )
    >>> model.decode([[0, 1, 2]]).tolist()
    [[0, 0, 1]]
    >>> history = model.baum_welch([[0, 1, 2, 2], [0, 0, 1]], num_iterations=5)
    >>> history[0] < history[-1]
    True

    Source: https://doi.org/10.1109/5.18626 (Rabiner 1989).
    """

    _dtype = "int32"

    def __init__(self, num_states, num_symbols, seed=None, dtype=None, name="categorical_hmm"):
        config = dict(num_states=num_states, num_symbols=num_symbols, seed=seed, name=name)
        check_settings(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        emissions = layers.CategoricalEmissions(
            num_states, num_symbols, initializer(seed, "emissions"), dtype=policy, name="emissions"
        )
        super().__init__(emissions, config, policy)
        self._id_ranges = {"observations": num_symbols}
        self.num_symbols = num_symbols

    def _emission_parameters(self):
        return {"symbols": probabilities(self.get_layer("emissions").symbol_logits)}

    def _set_emission_parameters(self, parameters):
        if "symbols" in parameters:
            self.get_layer("emissions").symbol_logits.assign(estimation.log(parameters["symbols"]))

    def _maximize_emissions(self, observations, weights, row):
        counts = [np.bincount(observations, w, self.num_symbols) for w in weights.T]
        return {"symbols": row(np.stack(counts), "symbols")}

    def _draw(self, states, random):
        cumulative = np.cumsum(self.parameters["symbols"], axis=1)
        cumulative = (cumulative / cumulative[:, -1:])[states]  # (number, length, num_symbols)
        draws = random.random(states.shape)
        return np.sum(draws[..., None] >= cumulative, axis=-1, dtype="int32")
