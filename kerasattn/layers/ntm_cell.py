import keras
import numpy as np
from keras import ops

from kerasattn.ops import addressing, seeds

ADDRESSING = ("content_and_location", "content")
CONTROLLERS = ("lstm", "dense")
MEMORIES = ("constant", "random", "learned")
EMPTY = 1e-6  # what a constant memory holds


@keras.saving.register_keras_serializable(package="kerasattn")
class NTMCell(keras.layers.Layer):
    """A neural Turing machine's step, for `keras.layers.RNN`: a controller and heads on a memory.

    At each step the controller sees the input and what was read before, the heads move by what it
    says, read the memory, and write to it.

    Args:
        units: int >= 1, of the controller.
        num_slots, slot_dim: ints >= 1, the memory's size.
        num_read_heads, num_write_heads: ints >= 1.
        shift_range: int >= 0, how far a head may move in one step, either way.
        addressing: "content_and_location", or "content" alone: heads go where what they look for
            is, and can't go on from where they are.
        controller: "lstm" or "dense", a layer without a state.
        initial_memory: "constant", 1e-6 everywhere; "random", drawn once; or "learned". Training
            depends on it. By content alone, slots that are all the same can't be told apart.
        seed: int or None, of the initial memory.

    Call arguments:
        inputs: (batch, dim).
        states: list of those of the controller (h, and c of an LSTM), the memory (batch,
            num_slots * slot_dim), the heads' weights (batch, heads * num_slots), those that read
            before those that write, and what was read (batch, num_read_heads * slot_dim).

    Shapes:
        (batch, dim) -> (batch, units + num_read_heads * slot_dim): what the controller says, beside
        what was read; and the new states.

    Raises:
        ValueError: for sizes out of range, more shifts than slots, or other names.

    Example:
    >>> import keras
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> cell = layers.NTMCell(units=8, num_slots=6, slot_dim=4)
    >>> machine = keras.layers.RNN(cell, return_sequences=True)
    >>> tuple(machine(np.zeros((2, 5, 3), "float32")).shape)
    (2, 5, 12)

    Source: https://arxiv.org/abs/1410.5401 (Graves et al. 2014), section 3; initial memories:
    https://arxiv.org/abs/1807.08518 (Collier and Beel 2018), section 3.1.
    """

    def __init__(
        self,
        units=100,
        num_slots=128,
        slot_dim=20,
        num_read_heads=1,
        num_write_heads=1,
        shift_range=1,
        addressing="content_and_location",
        controller="lstm",
        initial_memory="constant",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check_name("addressing", addressing, ADDRESSING)
        _check_name("controller", controller, CONTROLLERS)
        _check_name("initial_memory", initial_memory, MEMORIES)
        sizes = dict(
            units=units,
            num_slots=num_slots,
            slot_dim=slot_dim,
            num_read_heads=num_read_heads,
            num_write_heads=num_write_heads,
        )
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}.")
        if not 0 <= 2 * shift_range < num_slots:
            raise ValueError(
                f"shift_range must be at least 0, and below half of the {num_slots} slots, got "
                f"{shift_range}."
            )
        self.units, self.num_slots, self.slot_dim = units, num_slots, slot_dim
        self.num_read_heads, self.num_write_heads = num_read_heads, num_write_heads
        self.shift_range, self.addressing = shift_range, addressing
        self.controller, self.initial_memory = controller, initial_memory
        self.seed = seed
        heads = num_read_heads + num_write_heads
        self.state_size = [units] * (2 if controller == "lstm" else 1) + [
            num_slots * slot_dim,
            heads * num_slots,
            num_read_heads * slot_dim,
        ]
        self.output_size = units + num_read_heads * slot_dim

    def build(self, input_shape):
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                f"A step's inputs must be (batch, dim) with a known dim, got {tuple(input_shape)}."
            )
        policy = self.dtype_policy
        width = input_shape[-1] + self.num_read_heads * self.slot_dim
        if self.controller == "lstm":
            self.body = keras.layers.LSTMCell(self.units, dtype=policy, name="controller")
        else:
            self.body = keras.layers.Dense(
                self.units, activation="tanh", dtype=policy, name="controller"
            )
        self.body.build((input_shape[0], width))
        heads = self.num_read_heads + self.num_write_heads
        self.sizes = [heads * self.slot_dim, heads]  # keys, strengths
        if self.addressing != "content":  # gates, shifts, powers
            self.sizes += [heads, heads * (2 * self.shift_range + 1), heads]
        self.sizes += [self.num_write_heads * self.slot_dim] * 2  # erase, add
        self.interface = keras.layers.Dense(sum(self.sizes), dtype=policy, name="interface")
        self.interface.build((input_shape[0], self.units))

        shape = (self.num_slots, self.slot_dim)
        if self.initial_memory == "constant":
            start = keras.initializers.Constant(EMPTY)
        else:
            start = keras.initializers.TruncatedNormal(
                stddev=0.5, seed=seeds.child(self.seed, "memory")
            )
        self.memory = self.add_weight(
            shape, start, name="memory", trainable=self.initial_memory == "learned"
        )
        # All heads begin near the first slot, or where training finds that they had better.
        first = np.zeros((heads, self.num_slots), "float32")
        first[:, 0] = np.log(self.num_slots) + 3
        self.places = self.add_weight(
            first.shape, lambda shape, dtype: ops.convert_to_tensor(first, dtype), name="places"
        )

    def get_initial_state(self, batch_size=None):
        """The states to begin with, those of the docstring."""
        states = [ops.zeros((batch_size, self.units), dtype=self.compute_dtype)]
        states *= len(self.state_size) - 3
        memory = ops.convert_to_tensor(self.memory)[None]  # (1, slots, width)
        weights = ops.softmax(ops.cast(self.places, "float32"), axis=-1)[None]
        reads = addressing.read(memory, weights[:, : self.num_read_heads])
        for x in (memory, weights, reads):
            x = ops.cast(ops.reshape(x, (1, -1)), self.compute_dtype)
            states.append(ops.broadcast_to(x, (batch_size, x.shape[1])))
        return states

    def call(self, inputs, states, training=False):
        *inner, memory, weights, reads = states
        memory = ops.reshape(memory, (-1, self.num_slots, self.slot_dim))
        seen = ops.concatenate([inputs, ops.cast(reads, inputs.dtype)], axis=-1)
        if self.controller == "lstm":
            hidden, inner = self.body(seen, inner, training=training)
        else:
            hidden = self.body(seen)
            inner = [hidden]

        said = ops.split(self.interface(hidden), np.cumsum(self.sizes)[:-1].tolist(), axis=-1)
        *where, erase, add = said
        weights = self._move(memory, weights, where)  # (batch, heads, slots)
        erase = ops.sigmoid(self._by_head(erase))
        add = ops.tanh(self._by_head(add))
        reads = addressing.read(memory, weights[:, : self.num_read_heads])
        memory = addressing.write(memory, weights[:, self.num_read_heads :], erase, add)

        reads = ops.reshape(reads, (-1, self.num_read_heads * self.slot_dim))
        after = [
            ops.reshape(memory, (-1, self.num_slots * self.slot_dim)),
            ops.cast(ops.reshape(weights, (-1, self.state_size[-2])), self.compute_dtype),
            reads,
        ]
        return ops.concatenate([hidden, ops.cast(reads, hidden.dtype)], axis=-1), [*inner, *after]

    def adds(self, said):
        """What the heads that write add to the memory, (batch, heads * slot_dim), of an output."""
        return ops.tanh(self.interface(said[:, : self.units])[:, -self.sizes[-1] :])

    def _by_head(self, x):
        return ops.reshape(x, (-1, x.shape[-1] // self.slot_dim, self.slot_dim))

    def _move(self, memory, previous, where):
        """The heads' new weights (batch, heads, slots)."""
        keys, *where = [where[0], *(ops.cast(x, "float32") for x in where[1:])]
        strengths = ops.softplus(where[0])
        found = addressing.by_content(memory, ops.tanh(self._by_head(keys)), strengths)
        if self.addressing == "content":
            return found
        heads = self.num_read_heads + self.num_write_heads
        _, gates, shifts, powers = where
        previous = ops.reshape(previous, (-1, heads, self.num_slots))
        shifts = ops.softmax(ops.reshape(shifts, (-1, heads, 2 * self.shift_range + 1)), axis=-1)
        weights = addressing.interpolate(found, previous, ops.sigmoid(gates))
        return addressing.sharpen(addressing.shift(weights, shifts), 1.0 + ops.softplus(powers))

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "num_slots": self.num_slots,
            "slot_dim": self.slot_dim,
            "num_read_heads": self.num_read_heads,
            "num_write_heads": self.num_write_heads,
            "shift_range": self.shift_range,
            "addressing": self.addressing,
            "controller": self.controller,
            "initial_memory": self.initial_memory,
            "seed": self.seed,
        }


def _check_name(name, value, known):
    if value not in known:
        raise ValueError(f"{name} must be one of {known}, got {value!r}.")
