import keras

from kerasattn.ops import hmm


@keras.saving.register_keras_serializable(package="kerasattn")
class HiddenMarkovChain(keras.layers.Layer):
    """The hidden chain of an HMM: how likely observations are, and which state each comes from.

    What the states emit is another layer's: `CategoricalEmissions`, `GaussianEmissions`, or any
    network that gives log-probabilities. The weights are logits, of which a softmax makes the
    probabilities of the first state and of each next one.

    Args:
        initializer: of the logits. It must not make all states alike, or they stay so.

    Call arguments:
        log_emissions: float (batch, length, num_states), log p(observation | state).
        padding_mask: bool (batch, length), True = real. A Keras mask counts too.

    Shapes:
        (batch, length, num_states) -> log-likelihoods (batch,), in nats, and posteriors of the
        states (batch, length, num_states), both float32 in every policy.

    Raises:
        ValueError: for log_emissions of another rank.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> likelihood, posteriors = layers.HiddenMarkovChain("zeros")(np.log([[[0.9, 0.1]] * 3]))
    >>> round(float(likelihood[0]), 4), round(float(posteriors[0, 0, 0]), 4)  # 3 * log(0.5)
    (-2.0794, 0.9)

    Source: https://doi.org/10.1109/5.18626 (Rabiner 1989).
    """

    def __init__(self, initializer="random_normal", **kwargs):
        # Log-probabilities are float32 in every policy.
        super().__init__(autocast=False, **kwargs)
        self.initializer = keras.initializers.get(initializer)
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                "log_emissions must be (batch, length, num_states) with a known number of states, "
                f"got shape {tuple(input_shape)}."
            )
        states = input_shape[-1]

        def logits(shape, name):
            initializer = self.initializer.clone()
            return self.add_weight(shape, initializer, dtype="float32", name=name, autocast=False)

        self.initial_logits = logits((states,), "initial_logits")
        self.transition_logits = logits((states, states), "transition_logits")

    def chain(self):
        """Log-probabilities of the first state (N,) and of each next one (N, N)."""
        return tuple(
            keras.ops.log_softmax(keras.ops.convert_to_tensor(logits), axis=-1)
            for logits in (self.initial_logits, self.transition_logits)
        )

    def call(self, log_emissions, padding_mask=None, mask=None):
        if mask is not None:
            padding_mask = mask if padding_mask is None else padding_mask & mask
        chain = self.chain()
        likelihoods = hmm.log_likelihood(*chain, log_emissions, padding_mask)
        return likelihoods, hmm.posteriors(*chain, log_emissions, padding_mask)

    def compute_output_spec(self, log_emissions, padding_mask=None, mask=None):
        shape = tuple(log_emissions.shape)
        return keras.KerasTensor(shape[:1], "float32"), keras.KerasTensor(shape, "float32")

    def compute_mask(self, *args, **kwargs):
        return None

    def get_config(self):
        initializer = keras.initializers.serialize(self.initializer)
        return {**super().get_config(), "initializer": initializer}
