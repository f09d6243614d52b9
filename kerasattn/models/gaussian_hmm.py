import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models import hmm_estimation as estimation
from kerasattn.models.hmm import HiddenMarkovModel, initializer
from kerasattn.models.settings import check_settings


@keras.saving.register_keras_serializable(package="kerasattn")
class GaussianHMM(HiddenMarkovModel):
    """A hidden Markov model of vectors, which have a diagonal normal distribution in each state.

    Trained as `CategoricalHMM`; `start_from` puts the states among the observations first.

    Args:
        num_states, num_features: ints >= 1.
        min_variance: float > 0, below which `estimate` and `baum_welch` put no variance.
        seed: int or None, of the start.

    Inputs:
        observations: float (batch, length, num_features).
        padding_mask: bool (batch, length), True = real; by default all are.

    Outputs:
        log_likelihood (batch,), in nats; posteriors (batch, length, num_states), 0 at padding.

    Raises:
        ValueError: for numbers below 1, a min_variance that is not above 0.

    Example: two states, around 0 and around 5.

    >>> import numpy as np
    >>> from kerasattn.models import GaussianHMM
    >>> random = np.random.default_rng(0)
    >>> observations = random.normal(size=(4, 50, 1)) + 5 * (np.arange(50) % 10 > 4)[:, None]
    >>> model = GaussianHMM(2, num_features=1, seed=0)
    >>> model.start_from(observations, seed=0)
    >>> history = model.baum_welch(observations)
    >>> np.sort(model.parameters["means"].ravel()).round(0).tolist()
    [0.0, 5.0]

    Source: https://doi.org/10.1109/5.18626 (Rabiner 1989), section IV.A.
    """

    def __init__(
        self,
        num_states,
        num_features,
        min_variance=1e-6,
        seed=None,
        dtype=None,
        name="gaussian_hmm",
    ):
        config = dict(num_states=num_states, num_features=num_features, min_variance=min_variance,
                      seed=seed, name=name)  # fmt: skip
        check_settings(config)
        if not 0 < min_variance < np.inf:
            raise ValueError(f"min_variance must be finite and above 0, got {min_variance}.")
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        emissions = layers.GaussianEmissions(
            num_states, initializer(seed, "emissions"), dtype=policy, name="emissions"
        )
        self._shape = (num_features,)
        super().__init__(emissions, config, policy)
        self.min_variance = min_variance

    def start_from(self, observations, padding_mask=None, seed=None):
        """Puts the means onto observations far from each other, with the variances of all.

        Args:
            observations: array (batch, length, num_features), or a list of sequences.
            padding_mask: bool (batch, length), True = real; for arrays.
            seed: int or None.

        Source: https://dl.acm.org/doi/10.5555/1283383.1283494 (k-means++).
        """
        observations, mask = self._read(observations, padding_mask)
        points = observations[mask].astype("float64")
        means = estimation.spread(points, self.num_states, np.random.default_rng(seed))
        variances = np.maximum(points.var(axis=0), self.min_variance)
        self.set_parameters(means=means, variances=np.broadcast_to(variances, means.shape))

    def _emission_parameters(self):
        emissions = self.get_layer("emissions")
        means, log_variances = (ops.convert_to_numpy(x) for x in emissions.weights)
        return {
            "means": means.astype("float64"),
            "variances": np.exp(log_variances.astype("float64")),
        }

    def _set_emission_parameters(self, parameters):
        emissions = self.get_layer("emissions")
        if "means" in parameters:
            emissions.means.assign(parameters["means"])
        if "variances" in parameters:
            emissions.log_variances.assign(np.log(parameters["variances"]))

    def _maximize_emissions(self, observations, weights, row):
        before, total = self.parameters, weights.sum(axis=0)[:, None]  # (N, 1)
        observations, some = observations.astype("float64"), np.where(total > 0, total, 1.0)
        means = weights.T @ observations / some  # (N, num_features)
        variances = [w @ np.square(observations - mean) for w, mean in zip(weights.T, means)] / some
        return {
            "means": np.where(total > 0, means, before["means"]),
            "variances": np.where(
                total > 0, np.maximum(variances, self.min_variance), before["variances"]
            ),
        }

    def _draw(self, states, random):
        parameters = self.parameters
        noise = random.normal(size=(*states.shape, *self._shape))
        deviations = np.sqrt(parameters["variances"])[states]
        return (parameters["means"][states] + deviations * noise).astype("float32")
