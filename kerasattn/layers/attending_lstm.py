import keras
from keras import ops

from kerasattn.layers.hard_attention import check_gradient
from kerasattn.ops import hard_attention, scores
from kerasattn.ops.attention import attend, masked_softmax


@keras.saving.register_keras_serializable(package="kerasattn")
class AttendingLSTM(keras.layers.Layer):
    """An LSTM that looks at the places of a picture before each step, softly or at one of them.

    It looks by additive scores of its last state, and reads the step's input beside what it saw,
    which a gate of the state may dim. Its first state is made of the mean of the places.

    Args:
        units: int >= 1, of the LSTM.
        attention_dim: int >= 1, width of the scores.
        attention: "soft", the mean of the places by their weights; or one place, drawn in training
            and the likeliest otherwise, learned by "reinforce" or "gumbel" as in `HardAttention`.
        temperature: float > 0, of "gumbel".
        seed: int or None, of the draws.

    Shapes:
        x (batch, length, dim) and values (batch, places, value_dim), of a known number of places
        -> hidden (batch, length, units); what was seen (batch, length, value_dim); weights, float32
        (batch, length, places); and the log-probabilities of the draws and their entropies, in
        nats, float32 (batch, length), zeros with soft attention.

    Raises:
        ValueError: for sizes below 1, another kind of attention, or inputs of another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> lstm = layers.AttendingLSTM(units=6, attention_dim=5)
    >>> hidden, seen, weights, *_ = lstm(np.ones((2, 3, 4)), np.ones((2, 9, 8)))
    >>> tuple(hidden.shape), tuple(seen.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 8), (2, 3, 9))

    Source: https://arxiv.org/abs/1502.03044 (Xu et al. 2015), equations 1 to 6 and section 4.2.1.
    """

    def __init__(
        self, units, attention_dim, attention="soft", temperature=1.0, seed=None, **kwargs
    ):
        super().__init__(**kwargs)
        if min(units, attention_dim) < 1:
            raise ValueError(
                f"units and attention_dim must be at least 1, got {units} and {attention_dim}."
            )
        if attention != "soft":
            check_gradient(attention, temperature)
        self.units, self.attention_dim, self.attention = units, attention_dim, attention
        self.temperature, self.seed = float(temperature), seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, x_shape, values_shape):
        if len(x_shape) != 3 or len(values_shape) != 3 or values_shape[1] is None:
            raise ValueError(
                "x must be (batch, length, dim) and values (batch, places, value_dim) of a known "
                f"number of places, got {tuple(x_shape)} and {tuple(values_shape)}."
            )

        def dense(units, name, shape, activation=None):
            layer = keras.layers.Dense(
                units, activation=activation, dtype=self.dtype_policy, name=name
            )
            layer.build(shape)
            return layer

        self.places, self.value_dim = values_shape[1:]
        self.first = dense(2 * self.units, "first", (None, self.value_dim), "tanh")
        self.key_dense = dense(self.attention_dim, "key", values_shape)
        self.cell = AttendingLSTMCell(
            self.units,
            self.attention_dim,
            self.places,
            self.value_dim,
            self.attention,
            self.temperature,
            dtype=self.dtype_policy,
            name="cell",
        )
        self.recurrent = keras.layers.RNN(
            self.cell, return_sequences=True, dtype=self.dtype_policy, name="recurrent"
        )
        noise = 0 if self.attention == "soft" else self.places
        self.recurrent.build((None, None, x_shape[-1] + noise))

    def initial_state(self, values):
        """Hidden vector and cell, and the picture with its projection, which stay as they are.

        Args:
            values: (batch, places, value_dim).
        """
        states = ops.split(self.first(ops.mean(values, axis=1)), 2, axis=-1)
        return [*states, values, self.key_dense(values)]

    def step(self, x, states):
        """One step without draws: hidden (batch, units), seen, weights, and the states after it.

        Args:
            x: (batch, dim).
            states: of `initial_state`, or of the step before.
        """
        if self.attention != "soft":
            x = ops.pad(x, [[0, 0], [0, self.places]])
        output, states = self.cell(x, states)
        return *self._parts(output)[:2], self._weights(output), states

    def call(self, x, values, training=False):
        steps, noise = x, None
        if self.attention != "soft":
            noise = ops.zeros((*ops.shape(x)[:2], self.places), "float32")
            if training:  # drawn beforehand: a loop of steps carries no seeds
                uniforms = keras.random.uniform(ops.shape(noise), seed=self.seed_generator)
                noise = hard_attention.gumbel(uniforms)
            noise = ops.cast(noise, x.dtype)
            steps = ops.concatenate([x, noise], axis=-1)
        output = self.recurrent(
            steps, initial_state=self.initial_state(values), training=training
        )  # (batch, length, units + value_dim + places)
        hidden, seen, found = self._parts(output)
        told = entropy = ops.zeros_like(ops.cast(found[..., 0], "float32"))
        if self.attention != "soft":
            drawn = hard_attention.draw(found, noise)
            told, entropy = hard_attention.log_prob(found, drawn)
        return hidden, seen, self._weights(output), told, entropy

    def compute_output_spec(self, x, values, training=False):
        steps = tuple(x.shape[:2])
        hidden, seen = (
            keras.KerasTensor((*steps, width), self.compute_dtype)
            for width in (self.units, values.shape[-1])
        )
        weights = keras.KerasTensor((*steps, values.shape[1]), "float32")
        return hidden, seen, weights, *(keras.KerasTensor(steps, "float32") for _ in range(2))

    def _parts(self, output):
        return ops.split(output, [self.units, self.units + self.value_dim], axis=-1)

    def _weights(self, output):
        return masked_softmax(self._parts(output)[2])

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "attention_dim": self.attention_dim,
            "attention": self.attention,
            "temperature": self.temperature,
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class AttendingLSTMCell(keras.layers.Layer):
    """One step of `AttendingLSTM`; the picture and its projection are states that stay the same.

    Args: those of `AttendingLSTM`, and the numbers of places and of a place's values.
    """

    def __init__(
        self, units, attention_dim, places, value_dim, attention, temperature=1.0, **kwargs
    ):
        super().__init__(**kwargs)
        self.units, self.attention_dim = units, attention_dim
        self.places, self.value_dim = places, value_dim
        self.attention, self.temperature = attention, temperature
        self.state_size = [units, units, places * value_dim, places * attention_dim]
        self.output_size = units + value_dim + places

    def build(self, input_shape):
        def dense(units, name, activation=None):
            layer = keras.layers.Dense(
                units, activation=activation, dtype=self.dtype_policy, name=name
            )
            layer.build((None, self.units))
            return layer

        self.query_dense = dense(self.attention_dim, "query")
        self.gate = dense(1, "gate", "sigmoid")
        self.vector = self.add_weight((self.attention_dim,), "random_normal", name="vector")
        noise = 0 if self.attention == "soft" else self.places
        self.lstm = keras.layers.LSTMCell(self.units, dtype=self.dtype_policy, name="lstm")
        self.lstm.build((None, input_shape[-1] - noise + self.value_dim))

    def call(self, step, states, training=False):
        hidden, cell, values, keys = states
        query = self.query_dense(hidden)[:, None]  # (batch, 1, attention)
        found = ops.cast(scores.additive(query, keys, self.vector), values.dtype)
        if self.attention == "soft":
            seen, _ = attend(found, values)  # (batch, 1, value_dim)
        else:
            step, noise = ops.split(step, [step.shape[-1] - self.places], axis=-1)
            temperature = self.temperature if self.attention == "gumbel" else None
            drawn = hard_attention.draw(found, noise[:, None], temperature=temperature)
            seen = ops.matmul(ops.cast(drawn, values.dtype), values)
        seen = seen[:, 0] * self.gate(hidden)
        read = ops.concatenate([step, seen], axis=-1)
        hidden, (_, cell) = self.lstm(read, [hidden, cell], training=training)
        output = ops.concatenate([hidden, seen, found[:, 0]], axis=-1)
        return output, [hidden, cell, values, keys]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "attention_dim": self.attention_dim,
            "places": self.places,
            "value_dim": self.value_dim,
            "attention": self.attention,
            "temperature": self.temperature,
        }
