import functools

import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.settings import check_settings
from kerasattn.ops.compiled import compiled
from kerasattn.training.losses import token_weights, weighted_mean


@keras.saving.register_keras_serializable(package="kerasattn")
class NeuralTuringMachine(BaseModel):
    """A recurrent network beside a memory that it reads and writes by attention.

    It learns algorithms such as copying from examples, and runs them on longer sequences too.
    Trained with bits as targets `y` and, as `sample_weight`, which steps count, its loss is the
    cross-entropy in nats a bit of those steps.

    Args:
        input_dim, output_dim: ints >= 1, numbers that come in and bits that go out at each step.
        units, num_slots, slot_dim, num_read_heads, num_write_heads, shift_range, addressing,
            controller, initial_memory, seed: as those of `layers.NTMCell`.

    Inputs:
        sequences: float (batch, length, input_dim).

    Outputs:
        hidden (batch, length, units + num_read_heads * slot_dim); bit_logits (batch, length,
        output_dim), float32.

    Raises:
        ValueError: for sizes out of range or other names.

    Example:

    >>> from kerasattn.data import copy_task
    >>> from kerasattn.models import NeuralTuringMachine
    >>> inputs, bits, counts = copy_task(4, lengths=(1, 3), num_bits=2, seed=0)
    >>> model = NeuralTuringMachine(inputs.shape[-1], 2, units=8, num_slots=6, slot_dim=4)
    >>> model.compile("adam")  # then model.fit(inputs, bits, sample_weight=counts)
    >>> trace = model.trace(inputs)
    >>> trace["memory"].shape, trace["read_weights"].shape
    ((4, 7, 6, 4), (4, 7, 1, 6))

    Source: https://arxiv.org/abs/1410.5401 (Graves et al. 2014).
    """

    _xla_on_cpu = False  # the gradient of a loop with so many states takes it long to compile
    _recurrent = True

    def __init__(
        self,
        input_dim,
        output_dim,
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
        dtype=None,
        name="neural_turing_machine",
    ):
        of_cell = dict(
            units=units,
            num_slots=num_slots,
            slot_dim=slot_dim,
            num_read_heads=num_read_heads,
            num_write_heads=num_write_heads,
            shift_range=shift_range,
            addressing=addressing,
            controller=controller,
            initial_memory=initial_memory,
            seed=seed,
        )
        config = dict(input_dim=input_dim, output_dim=output_dim, **of_cell, name=name)
        check_settings(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        cell = layers.NTMCell(**of_cell, dtype=policy, name="cell")
        machine = keras.layers.RNN(cell, return_sequences=True, dtype=policy, name="machine")
        readout = keras.layers.Dense(output_dim, dtype=policy, name="readout")
        to_float32 = keras.layers.Activation("linear", dtype="float32", name="bit_logits")

        # === Model ===
        sequences = keras.Input((None, input_dim), name="sequences")
        hidden = machine(sequences)  # (batch, length, units + num_read_heads * slot_dim)
        logits = to_float32(readout(hidden))  # (batch, length, output_dim)
        outputs = {"hidden": hidden, "bit_logits": logits}
        super().__init__({"sequences": sequences}, outputs, name=name)

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._hidden = [sequences, hidden]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The cross-entropy of the bits that count, unless `compile` was given a loss.

        Args:
            x: dict of the inputs.
            y: (batch, length, output_dim) of 0 and 1.
            y_pred: dict of the outputs.
            sample_weight: (batch, length), how much each step counts, or (batch,), each sequence;
                None for all alike.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None:
            raise ValueError(f"{self.name} needs bits y, (batch, length, output_dim).")
        logits = y_pred["bit_logits"]
        losses = ops.binary_crossentropy(ops.cast(y, "float32"), logits, from_logits=True)
        losses = ops.mean(losses, axis=-1)  # (batch, length)
        if sample_weight is None:
            return ops.mean(losses) + sum(self.losses)
        return weighted_mean(losses, token_weights(sample_weight, losses)) + sum(self.losses)

    def trace(self, sequences):
        """What happens at each step: the memory, and where the heads are.

        Args:
            sequences: float (batch, length, input_dim).

        Returns:
            dict of numpy arrays: `bits` (batch, length, output_dim), how likely each is 1;
            `memory` (batch, length, num_slots, slot_dim), after each step; `read_weights` and
            `write_weights` (batch, length, heads, num_slots); `reads` (batch, length,
            num_read_heads, slot_dim); `adds`, what is added to the memory, likewise by heads that
            write.

        Raises:
            ValueError: for sequences of another width.
        """
        sequences = ops.convert_to_tensor(self._check_inputs(sequences)["sequences"], "float32")
        wanted = self._config["input_dim"]
        if sequences.shape[2] != wanted:
            raise ValueError(
                f"sequences take the shape (batch, length, {wanted}), got {tuple(sequences.shape)}."
            )
        states = self.get_layer("machine").get_initial_state(int(sequences.shape[0]))
        steps = []
        for step in range(sequences.shape[1]):
            bits, adds, states = self._step(sequences[:, step], states)
            found = (bits, adds, *states[-3:])
            steps.append([ops.convert_to_numpy(x).astype("float32") for x in found])
        bits, adds, memory, weights, reads = (np.stack(x, axis=1) for x in zip(*steps))
        config = self._config
        slots, reading = config["num_slots"], config["num_read_heads"]
        by = lambda x, width: x.reshape(*x.shape[:2], -1, width)
        weights = by(weights, slots)
        return {
            "bits": bits,
            "memory": by(memory, config["slot_dim"]),
            "read_weights": weights[:, :, :reading],
            "write_weights": weights[:, :, reading:],
            "reads": by(reads, config["slot_dim"]),
            "adds": by(adds, config["slot_dim"]),
        }

    @functools.cached_property
    def _step(self):
        cell, readout = self.get_layer("machine").cell, self.get_layer("readout")

        def step(inputs, states):
            said, states = cell(ops.cast(inputs, cell.compute_dtype), states)
            bits = ops.sigmoid(ops.cast(readout(said), "float32"))
            return bits, cell.adds(said), states

        return compiled(step, lambda: self.variables)
