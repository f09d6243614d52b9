import keras
from keras import ops

from kerasattn.ops import hmm


@keras.saving.register_keras_serializable(package="kerasattn")
class CategoricalEmissions(keras.layers.Layer):
    """The log-probability of each observed symbol in each hidden state.

    Args:
        num_states, num_symbols: ints >= 1.
        initializer: of the logits, of which a softmax makes a state's probabilities. It must not
            make all states alike, or they stay so.

    Shapes:
        int (batch, length) in [0, num_symbols) -> float32 (batch, length, num_states).

    Raises:
        ValueError: for numbers below 1, or observations of another rank.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> emissions = layers.CategoricalEmissions(2, num_symbols=4, initializer="zeros")
    >>> np.round(np.exp(emissions(np.array([[3, 0]]))), 2).tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]

    Source: https://doi.org/10.1109/5.18626 (Rabiner 1989), section II.B.
    """

    def __init__(self, num_states, num_symbols, initializer="random_normal", **kwargs):
        super().__init__(autocast=False, **kwargs)
        if num_states < 1 or num_symbols < 1:
            raise ValueError(
                f"num_states and num_symbols must be at least 1, got {num_states} and "
                f"{num_symbols}."
            )
        self.num_states = num_states
        self.num_symbols = num_symbols
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape):
        if len(input_shape) != 2:
            raise ValueError(f"Observations must be (batch, length), got {tuple(input_shape)}.")
        self.symbol_logits = self.add_weight(
            (self.num_states, self.num_symbols),
            self.initializer.clone(),
            dtype="float32",
            name="symbol_logits",
            autocast=False,
        )

    def call(self, observations):
        log_symbols = ops.log_softmax(ops.convert_to_tensor(self.symbol_logits), axis=-1)
        return hmm.categorical_log_probs(ops.cast(observations, "int32"), log_symbols)

    def get_config(self):
        return {
            **super().get_config(),
            "num_states": self.num_states,
            "num_symbols": self.num_symbols,
            "initializer": keras.initializers.serialize(self.initializer),
        }
