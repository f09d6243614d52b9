import keras
from keras import ops

from kerasattn.layers.peephole_lstm_cell import PeepholeLSTMCell
from kerasattn.ops import masks
from kerasattn.ops.recurrence import over_time

CELLS = {
    "gru": keras.layers.GRUCell,
    "lstm": keras.layers.LSTMCell,
    "peephole_lstm": PeepholeLSTMCell,
}
LOOKS = ("before", "after")


def recurrent_cell(kind, units, kernel_initializer="glorot_uniform", **kwargs):
    """A cell by name; the GRU resets its state before the product, as Cho's.

    Raises:
        ValueError: for a name that is none of `CELLS`.

    Example:
    >>> from kerasattn.layers.recurrent_decoder import recurrent_cell
    >>> recurrent_cell("lstm", 8).state_size
    [8, 8]
    """
    if kind not in CELLS:
        raise ValueError(f"cell must be one of {tuple(CELLS)}, got {kind!r}.")
    more = {"reset_after": False} if kind == "gru" else {}
    initializer = keras.initializers.get(kernel_initializer).clone()
    return CELLS[kind](units, kernel_initializer=initializer, **more, **kwargs)


@keras.saving.register_keras_serializable(package="kerasattn")
class RecurrentDecoder(keras.layers.Layer):
    """Recurrent cells, one above the other, that look at what was read at every step.

    Args:
        units: int >= 1, of each cell.
        num_layers: int >= 1, cells.
        cell: "gru", "lstm" or "peephole_lstm".
        attention: `SoftAttention`, `LocalAttention`, or None. Without one, `values` may be a vector
            (batch, value_dim) that each step reads as it is.
        looks: when a step attends: "before" the cells, asking with the top cell's last hidden
            vector, and the context is read by the lowest cell (Bahdanau); "after" them, asking with
            the new one (Luong).
        readout_dim: int or None, where looks="after": the hidden vectors that are told are
            tanh(W [context; hidden]), of this width.
        input_feeding: bool, whether the lowest cell reads what the step before told; needs a
            readout_dim.
        readout_bias: bool, whether that product has a bias.
        dropout: float in [0, 1), of what each cell hands on.
        kernel_initializer: of the cells' kernels and the readout.
        seed: int or None, of the dropout.

    Call arguments:
        x: (batch, length, dim), what the steps are fed.
        states: list of (batch, units), the states before the first step: of the lowest cell first,
            of an LSTM the hidden vector and then the cell.
        values: (batch, key, value_dim), what is attended to, or (batch, value_dim), see above.
        real: bool (batch, key), True = may be attended to.

    Returns:
        A dict: `hidden` (batch, length, units or readout_dim); with values also `context` (batch,
        length, value_dim), with an attention `weights` (batch, length, key) float32.

    Raises:
        ValueError: for another name of a cell, numbers out of range, or what does not go together.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> decoder = layers.RecurrentDecoder(8, cell="gru", attention=layers.SoftAttention())
    >>> x, read = np.ones((2, 3, 4), "float32"), np.ones((2, 5, 6), "float32")
    >>> told = decoder(x, [np.zeros((2, 8), "float32")], read)
    >>> {name: tuple(told[name].shape) for name in sorted(told)}
    {'context': (2, 3, 6), 'hidden': (2, 3, 8), 'weights': (2, 3, 5)}

    Source: https://arxiv.org/abs/1409.0473, appendix A.1.2; https://arxiv.org/abs/1508.04025,
    equations 5 and 6, section 3.3.
    """

    def __init__(
        self,
        units,
        num_layers=1,
        cell="lstm",
        attention=None,
        looks="after",
        readout_dim=None,
        input_feeding=False,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        seed=None,
        readout_bias=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if min(units, num_layers, readout_dim or 1) < 1:
            raise ValueError(
                "units, num_layers and readout_dim must be at least 1, got "
                f"{units}, {num_layers} and {readout_dim}."
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        if looks not in LOOKS:
            raise ValueError(f"looks must be one of {LOOKS}, got {looks!r}.")
        if readout_dim is not None and (attention is None or looks == "before"):
            raise ValueError('readout_dim needs an attention with looks="after".')
        if input_feeding and readout_dim is None:
            raise ValueError("input_feeding needs a readout_dim.")
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.units = units
        self.num_layers = num_layers
        self.cell = cell
        self.attention = attention
        self.looks = looks
        self.readout_dim = readout_dim
        self.input_feeding = input_feeding
        self.readout_bias = readout_bias
        self.dropout = dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        policy = self.dtype_policy
        self.cells = [
            recurrent_cell(cell, units, self.kernel_initializer, dtype=policy, name=f"cell_{i}")
            for i in range(num_layers)
        ]
        self.states_of_cell = 1 if cell == "gru" else 2
        self.readout = None
        if readout_dim is not None:
            self.readout = keras.layers.Dense(
                readout_dim,
                activation="tanh",
                use_bias=readout_bias,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=policy,
                name="readout",
            )

    def build(self, x_shape, states_shape=None, values_shape=None, real_shape=None):
        if len(x_shape) != 3:
            raise ValueError(f"x must be (batch, length, dim), got shape {tuple(x_shape)}.")
        rank = 0 if values_shape is None else len(values_shape)
        if rank not in ((3,) if self.attention else (0, 2)):
            raise ValueError(
                "values must be (batch, key, dim) with an attention, (batch, dim) or None without; "
                f"got {values_shape and tuple(values_shape)}."
            )
        value_dim = values_shape[-1] if rank else 0
        width = x_shape[-1]
        if self.attention is None or self.looks == "before":
            width += value_dim
        if self.input_feeding:
            width += self.readout_dim
        for cell in self.cells:
            cell.build((None, width))
            width = self.units
        if self.attention is not None and not self.attention.built:
            self.attention.build((None, None, self.units), values_shape)
        if self.readout is not None:
            self.readout.build((None, value_dim + self.units))

    def call(self, x, states, values=None, real=None, training=False):
        memory = self.remember(values, real)
        drops = []
        if training and self.dropout:
            # Drawn before the loop, in which no backend draws alike.
            ones = ops.ones_like(x[..., :1]) + ops.zeros((self.units,), x.dtype)
            drops = [
                keras.random.dropout(ones, self.dropout, seed=self.seed_generator)
                for _ in self.cells
            ]

        def step(now, states):
            *states, place = states
            told, states = self.step(now[0], states, memory, place, now[1:], training)
            return told.values(), [*states, place + 1.0]

        first = self.first(states)
        place = ops.cast(ops.zeros_like(first[0][:, :1]), "float32")
        told, _ = over_time(step, [x, *drops], [*first, place])
        return dict(zip(("hidden", "context", "weights"), told, strict=False))

    def remember(self, values, real=None):
        """What all steps look at, computed once: a dict of tensors of the batch."""
        if values is None:
            return {}
        if self.attention is None:
            return {"context": values}
        keys, values = self.attention.project_key_value(values)
        real = ops.ones_like(keys[..., 0], dtype="bool") if real is None else real
        return {"keys": keys, "values": values, "real": real}

    def first(self, states):
        """The list of all states, of those of the cells."""
        states = [ops.cast(state, self.compute_dtype) for state in states]
        if self.input_feeding:  # nothing was told yet
            nothing = ops.zeros((self.readout_dim,), self.compute_dtype)
            states.append(ops.zeros_like(states[0][:, :1]) + nothing)
        return states

    def step(self, x, states, memory, place, drops=(), training=False):
        """One step.

        Args:
            x: (batch, dim).
            states: list of `first`, or of the step before.
            memory: dict of `remember`.
            place: float (batch or 1, 1), how many steps were taken before.
            drops: list of (batch, units), what the cells' outputs are multiplied by.

        Returns:
            dict of `hidden`, and `context` and `weights`, each (batch, dim); the states after it.
        """
        states, more, new = list(states), {}, []
        fed = [states.pop()] if self.input_feeding else []
        x = ops.cast(x, self.compute_dtype)
        if self.attention is None and memory:
            more = {"context": ops.cast(memory["context"], x.dtype)}
            fed.append(more["context"])
        elif self.attention is not None and self.looks == "before":
            more = self._look(states[-self.states_of_cell], memory, place)
            fed.append(more["context"])
        x = ops.concatenate([x, *fed], axis=-1) if fed else x
        for i, cell in enumerate(self.cells):
            first = i * self.states_of_cell
            x, after = cell(x, states[first : first + self.states_of_cell], training=training)
            new += list(after)
            x = x * drops[i] if drops else x
        if self.attention is not None and self.looks == "after":
            more = self._look(x, memory, place)
            if self.readout is not None:
                x = self.readout(ops.concatenate([more["context"], x], axis=-1))
        return {"hidden": x, **more}, [*new, x] if self.input_feeding else new

    def _look(self, query, memory, place):
        context, weights = self.attention(
            query[:, None],
            attention_mask=masks.keys(memory["real"]),
            cache=(memory["keys"], memory["values"]),
            query_positions=place,
            return_weights=True,
        )
        context = ops.cast(context[:, 0], self.compute_dtype)
        return {"context": context, "weights": weights[:, 0]}

    def compute_output_spec(self, x, states, values=None, real=None, training=False):
        batch, length = x.shape[:2]
        hidden = (batch, length, self.readout_dim or self.units)
        told = {"hidden": keras.KerasTensor(hidden, self.compute_dtype)}
        if values is not None:
            context = (batch, length, values.shape[-1])
            told["context"] = keras.KerasTensor(context, self.compute_dtype)
        if self.attention is not None:
            weights = (batch, length, values.shape[1])
            told["weights"] = keras.KerasTensor(weights, "float32")
        return told

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "num_layers": self.num_layers,
            "cell": self.cell,
            "attention": keras.saving.serialize_keras_object(self.attention),
            "looks": self.looks,
            "readout_dim": self.readout_dim,
            "input_feeding": self.input_feeding,
            "readout_bias": self.readout_bias,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        attention = keras.saving.deserialize_keras_object(config["attention"])
        return cls(**{**config, "attention": attention})
