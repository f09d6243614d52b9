"""What hidden Markov models share: their chain, its estimation and its decoding."""

import functools

import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models import hmm_estimation as estimation
from kerasattn.models.base import BaseModel
from kerasattn.models.settings import check_whole
from kerasattn.ops import hmm, seeds
from kerasattn.ops.compiled import compiled
from kerasattn.ops.hmm_recursions import NEVER

METHODS = ("viterbi", "approximate")


class HiddenMarkovModel(BaseModel):
    """Observations, each of which comes from a hidden state of a chain.

    Observations are given as an array and a padding mask, or as a list of sequences, which are
    padded here. A subclass makes the layer of the emissions, and has

        _emission_parameters(): dict of numpy arrays, and _set_emission_parameters(dict);
        _maximize_emissions(observations (steps, ...), weights (steps, N), row): those that make
            them most likely, where row(counts, name) makes probabilities;
        _draw(states, random): observations of states.

    Args:
        emissions: layer, observations -> log-probabilities (batch, length, num_states).
        config: dict of the constructor's arguments.
        policy: the dtype policy.
    """

    _shape = ()  # of one observation
    _dtype = "float32"

    def __init__(self, emissions, config, policy):
        # === Layers ===
        chain = layers.HiddenMarkovChain(
            initializer=initializer(config["seed"], "chain"), dtype=policy, name="chain"
        )

        # === Model ===
        inputs = {
            "observations": keras.Input(
                (None, *self._shape), dtype=self._dtype, name="observations"
            ),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask", optional=True),
        }
        log_emissions = emissions(inputs["observations"])  # (batch, length, num_states)
        likelihoods, posteriors = chain(log_emissions, padding_mask=inputs["padding_mask"])
        outputs = {"log_likelihood": likelihoods, "posteriors": posteriors}
        super().__init__(inputs, outputs, name=config["name"])

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._hidden = [log_emissions]
        self.num_states = config["num_states"]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """-log p(observations), in nats an observation, unless `compile` was given a loss.

        Args:
            x: dict of the inputs.
            y: None.
            y_pred: dict of the outputs.
            sample_weight: (batch,), weights of sequences.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        inputs = self._check_inputs(x)
        real = inputs["padding_mask"]
        if real is None:
            real = ops.ones(ops.shape(inputs["observations"])[:2])
        count = ops.sum(ops.cast(real, "float32"), axis=1)  # (batch,)
        losses = -y_pred["log_likelihood"]
        if sample_weight is not None:
            weight = ops.cast(sample_weight, "float32")
            losses, count = losses * weight, count * weight
        return ops.sum(losses) / ops.maximum(ops.sum(count), 1.0) + sum(self.losses)

    # === Parameters ===
    @property
    def parameters(self):
        """Dict of numpy arrays: `initial` (N,), `transitions` (N, N), and those of the states."""
        initial, transitions = map(probabilities, self.get_layer("chain").weights)
        return {"initial": initial, "transitions": transitions, **self._emission_parameters()}

    def set_parameters(self, **parameters):
        """Sets any of `parameters` by name.

        Raises:
            ValueError: for an unknown name, another shape, or rows that are no probabilities.
        """
        known = self.parameters
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"{self.name} has the parameters {list(known)}, got {name!r}.")
            parameters[name] = estimation.check(name, value, known[name].shape)
        chain = self.get_layer("chain")
        for name, logits in (
            ("initial", chain.initial_logits),
            ("transitions", chain.transition_logits),
        ):
            if name in parameters:
                logits.assign(estimation.log(parameters[name]))
        self._set_emission_parameters(parameters)

    # === Estimation ===
    def estimate(self, observations, states, padding_mask=None, smoothing=0.0):
        """Sets the parameters from observations whose states are known, by counting.

        Args:
            observations: array (batch, length, ...), or a list of sequences.
            states: int in [0, num_states), likewise.
            padding_mask: bool (batch, length), True = real; for arrays.
            smoothing: float >= 0, added to each count of a state, a transition and a symbol. What
                has no count at all is even; a Gaussian state without observations stays as it is.

        Raises:
            ValueError: for states out of range or of other lengths.
        """
        observations, mask = self._read(observations, padding_mask)
        states = estimation.read_states(states, mask, self.num_states)
        counts = estimation.count(observations, states, mask, self.num_states)
        self._maximize(*counts, estimation.check_smoothing(smoothing), keep=False)

    def baum_welch(
        self,
        observations,
        padding_mask=None,
        num_iterations=100,
        tolerance=1e-2,
        smoothing=0.0,
        batch_size=256,
    ):
        """Expectation maximization: sets the parameters to what the observations are likely under.

        Args:
            observations: array (batch, length, ...), or a list of sequences.
            padding_mask: bool (batch, length), True = real; for arrays.
            num_iterations: int >= 1, at most so many.
            tolerance: float, it ends where the log-likelihood of all grows by less, in nats; None
                never.
            smoothing: float >= 0, added to each expected count of a state, a transition and a
                symbol. A row without any count stays as it is.
            batch_size: int >= 1, sequences at a time.

        Returns:
            list of floats, the log-likelihood of all observations before each iteration.

        Raises:
            ValueError: where observations are impossible.

        Source: https://doi.org/10.1109/5.18626, equations 40 and 52 to 54.
        """
        check_whole("num_iterations", num_iterations, least=1)
        observations, mask = self._read(observations, padding_mask)
        smoothing, history = estimation.check_smoothing(smoothing), []
        for _ in range(num_iterations):
            parts = self._by_batch(self._counting, observations, mask, batch_size)
            likelihoods, posteriors, pairs = map(np.concatenate, zip(*parts))
            self._refuse_impossible(likelihoods, observations, mask)
            history.append(float(np.sum(likelihoods, dtype="float64")))
            initial = estimation.first_states(posteriors, mask)
            pairs = np.sum(pairs, axis=0, dtype="float64")
            flat = observations[mask], posteriors[mask].astype("float64")
            self._maximize(initial, pairs, *flat, smoothing, keep=True)
            gains = np.diff(history[-2:])
            if tolerance is not None and len(gains) and gains[0] < tolerance:
                break
        return history

    def _maximize(self, initial, transitions, observations, weights, smoothing, keep):
        """The parameters that make weighted observations most likely."""
        before = self.parameters
        row = lambda counts, name: estimation.shares(
            counts + smoothing, before[name] if keep else None
        )
        self.set_parameters(
            initial=row(initial, "initial"),
            transitions=row(transitions, "transitions"),
            **self._maximize_emissions(observations, weights, row),
        )

    # === Decoding ===
    def decode(
        self,
        observations,
        padding_mask=None,
        method="viterbi",
        return_scores=False,
        batch_size=256,
    ):
        """The hidden states that observations come from.

        Args:
            observations: array (batch, length, ...), or a list of sequences.
            padding_mask: bool (batch, length), True = real; for arrays.
            method: "viterbi", the most likely path; or "approximate", the most likely state at each
                step, which may be a path that is impossible.
            return_scores: bool, whether to return scores too.
            batch_size: int >= 1, sequences at a time.

        Returns:
            numpy int32 (batch, length), 0 at padding. With return_scores also float32 (batch,):
            log p(path, observations), or of "approximate" how many states are expected to be right.

        Raises:
            ValueError: where observations are impossible, and for another method.
        """
        if method not in METHODS:
            raise ValueError(f"method must be one of {METHODS}, got {method!r}.")
        observations, mask = self._read(observations, padding_mask)
        if method == "viterbi":
            parts = self._by_batch(self._decoding, observations, mask, batch_size)
            states, scores = map(np.concatenate, zip(*parts))
            self._refuse_impossible(scores, observations, mask)
        else:
            parts = self._by_batch(self._counting, observations, mask, batch_size)
            likelihoods, posteriors, _ = map(np.concatenate, zip(*parts))
            self._refuse_impossible(likelihoods, observations, mask)
            states = np.where(mask, posteriors.argmax(axis=-1), 0).astype("int32")
            scores = np.where(mask, posteriors.max(axis=-1), 0).sum(axis=1)
        return (states, scores) if return_scores else states

    def sample(self, number, length, seed=None):
        """Draws states, numpy int32 (number, length), and observations (number, length, ...)."""
        check_whole("number", number, least=1)
        check_whole("length", length, least=1)
        random = np.random.default_rng(seed)
        seed, chain = int(random.integers(2**31)), self.get_layer("chain").chain()
        draw = compiled(lambda: hmm.sample(*chain, number, length, seed=seed), jit=False)
        states = ops.convert_to_numpy(draw())
        return states, self._draw(states, random)

    # === Inside ===
    def _read(self, observations, padding_mask):
        observations, mask = estimation.read(observations, padding_mask, len(self._shape))
        checked = self._check_inputs({"observations": observations, "padding_mask": mask})
        return checked["observations"], mask

    @functools.cached_property
    def _counting(self):
        return compiled(
            lambda x, mask: self._run(hmm.expected_counts, x, mask), self._all_variables
        )

    @functools.cached_property
    def _decoding(self):
        return compiled(lambda x, mask: self._run(hmm.viterbi, x, mask), self._all_variables)

    @functools.cached_property
    def _filtering(self):
        return compiled(lambda x, mask: self._run(hmm.forward, x, mask), self._all_variables)

    def _all_variables(self):
        return self.variables

    def _run(self, function, observations, mask):
        chain, emissions = self.get_layer("chain"), self.get_layer("emissions")
        return function(*chain.chain(), emissions(observations), mask)

    def _by_batch(self, function, observations, mask, batch_size):
        """Yields tuples of numpy arrays; batches are of one shape, the last one filled up."""
        check_whole("batch_size", batch_size, least=1)
        size = min(batch_size, len(mask))
        for start in range(0, len(mask), size):
            parts = observations[start : start + size], mask[start : start + size]
            count = len(parts[1])
            found = function(*(_fill(part, size) for part in parts))
            yield tuple(ops.convert_to_numpy(x)[:count] for x in found)

    def _refuse_impossible(self, scores, observations, mask):
        impossible = np.flatnonzero(~(scores > -np.inf))
        if len(impossible):
            row = impossible[0]
            _, steps = self._filtering(observations[row : row + 1], mask[row : row + 1])
            step = int(np.argmax(ops.convert_to_numpy(steps)[0] < NEVER))
            raise ValueError(
                f"The observations of row {row} are impossible: whatever the states, the one at "
                f"step {step}, {observations[row, step].tolist()}, has probability 0 after those "
                "before it. Estimate with smoothing above 0, or leave the row out."
            )


def _fill(x, size):
    """Rows of zeros, up to `size` rows."""
    return np.pad(x, [(0, size - len(x)), *[(0, 0)] * (x.ndim - 1)])


def initializer(seed, name):
    """Logits or means of spread 1, so that no two states are alike."""
    return keras.initializers.RandomNormal(stddev=1.0, seed=seeds.child(seed, name))


def probabilities(logits):
    logits = ops.convert_to_numpy(logits).astype("float64")
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)
