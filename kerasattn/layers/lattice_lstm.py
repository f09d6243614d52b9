import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class LatticeLSTM(keras.layers.Layer):
    """An LSTM over characters into which words of a lexicon flow at their last characters.

    Each word that ends at a character has a cell of its own, which starts from the state after the
    word's first character. The character's cell is then the sum of its candidate and of the words'
    cells, weighted by gates that are normalized to 1. Where no word ends it is the LSTM's own cell,
    so that without words the layer is `keras.layers.LSTM`. A row's words stand in slots by their
    length, so that all rows run as one batch.

    Args:
        units: int >= 1.
        go_backwards: bool, whether the text is read from its end; words then flow in at their first
            characters. The outputs stand in the text's order all the same.

    Call arguments:
        characters: float (batch, length, dim).
        words: float (batch, length, slots, word_dim): slot s is the word of s + 2 characters that
            ends there.
        word_mask: bool (batch, length, slots), where there is a word. Words with padding in them
            are left out.
        padding_mask: bool (batch, length), True = real; padding changes no state.

    Shapes:
        -> (batch, length, units).

    Raises:
        ValueError: for units below 1, or inputs of other ranks.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> characters = np.random.normal(size=(1, 4, 3))
    >>> words = np.random.normal(size=(1, 4, 2, 5))  # of two and of three characters
    >>> word_mask = np.zeros((1, 4, 2), bool)
    >>> word_mask[0, 2, 0] = True  # characters 1 and 2 are a word
    >>> tuple(layers.LatticeLSTM(6)(characters, words, word_mask).shape)
    (1, 4, 6)

    Source: https://arxiv.org/abs/1805.02023 (Zhang and Yang 2018), equations 11 to 15.
    """

    def __init__(self, units, go_backwards=False, **kwargs):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"units must be at least 1, got {units}.")
        self.units = units
        self.go_backwards = go_backwards

    def build(self, characters_shape, words_shape, word_mask_shape=None):
        if len(characters_shape) != 3 or len(words_shape) != 4:
            raise ValueError(
                "characters must be (batch, length, dim) and words (batch, length, slots, "
                f"word_dim), got {tuple(characters_shape)} and {tuple(words_shape)}."
            )
        dim, (slots, word_dim) = characters_shape[-1], words_shape[-2:]

        def weight(name, shape, initializer="glorot_uniform"):
            return self.add_weight(shape, initializer, name=name)

        def forget_bias(shape, dtype=None):  # as keras.layers.LSTM starts
            part = ops.arange(4 * self.units) // self.units
            return ops.cast(ops.equal(part, 1), dtype)

        self.kernel = weight("kernel", (dim, 4 * self.units))
        self.bias = weight("bias", (4 * self.units,), forget_bias)
        self.word_kernel = weight("word_kernel", (word_dim, 3 * self.units))
        self.word_bias = weight("word_bias", (3 * self.units,), "zeros")
        self.gate_kernel = weight("gate_kernel", (dim, self.units))
        self.gate_bias = weight("gate_bias", (self.units,), "zeros")
        self.cell = LatticeLSTMCell(self.units, slots, dtype=self.dtype_policy, name="cell")
        self.recurrent = keras.layers.RNN(
            self.cell,
            return_sequences=True,
            go_backwards=self.go_backwards,
            dtype=self.dtype_policy,
            name="recurrent",
        )
        width = (5 + 4 * slots) * self.units
        self.recurrent.build((characters_shape[0], characters_shape[1], width))

    def call(self, characters, words, word_mask, padding_mask=None):
        # What does not depend on the states is one product for all steps.
        gates = ops.matmul(characters, self.kernel) + self.bias  # (batch, length, 4 units)
        word_gate = ops.matmul(characters, self.gate_kernel) + self.gate_bias
        words = ops.matmul(words, self.word_kernel) + self.word_bias  # (..., slots, 3 units)
        if padding_mask is not None:
            word_mask = word_mask & _within(padding_mask, word_mask.shape[2])
        there = ops.cast(word_mask, words.dtype)[..., None]
        there = ops.repeat(there, self.units, axis=-1)  # (batch, length, slots, units)
        words = ops.concatenate([words, there], axis=-1)
        if self.go_backwards:
            words = _by_first_character(words)
        shape = ops.shape(words)
        words = ops.reshape(words, (*shape[:2], words.shape[2] * words.shape[3]))
        steps = ops.concatenate([gates, word_gate, words], axis=-1)
        hidden = self.recurrent(steps, mask=padding_mask)
        return ops.flip(hidden, axis=1) if self.go_backwards else hidden

    def compute_output_spec(self, characters, words, word_mask, padding_mask=None):
        return keras.KerasTensor((*characters.shape[:2], self.units), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "go_backwards": self.go_backwards,
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class LatticeLSTMCell(keras.layers.Layer):
    """One step of `LatticeLSTM`.

    Its states are the last hidden vector; the cells of as many last characters as there are slots,
    the latest first; and what words make of the hidden vectors after all but the last of these.

    Args:
        units: int.
        slots: int, lengths of words.
    """

    def __init__(self, units, slots, **kwargs):
        super().__init__(**kwargs)
        self.units, self.slots = units, slots
        self.state_size = [units] * (1 + slots) + [3 * units] * (slots - 1)
        self.output_size = units

    def build(self, input_shape):
        units = self.units

        def recurrent(name, columns):
            return self.add_weight((units, columns * units), "orthogonal", name=name)

        self.recurrent_kernel = recurrent("recurrent_kernel", 4)
        self.word_recurrent_kernel = recurrent("word_recurrent_kernel", 3)
        self.gate_recurrent_kernel = recurrent("gate_recurrent_kernel", 1)

    def call(self, step, states, training=False):
        units, slots = self.units, self.slots
        hidden, cells, read = states[0], states[1 : 1 + slots], states[1 + slots :]
        widths = np.cumsum([4, 1, *[3, 1] * slots])[:-1] * units
        gates, word_gate, *words = ops.split(step, widths.tolist(), axis=-1)

        # === The character's own LSTM ===
        gates = gates + ops.matmul(hidden, self.recurrent_kernel)
        enter, forget, candidate, leave = ops.split(gates, 4, axis=-1)
        enter, forget, leave = map(ops.sigmoid, (enter, forget, leave))
        candidate = ops.tanh(candidate)
        plain = forget * cells[0] + enter * candidate

        # === The words that end here: that of slot s began at the character s + 1 before ===
        read = [ops.matmul(hidden, self.word_recurrent_kernel), *read]
        own = ops.exp(enter)
        total, mixed, any_there = own, own * candidate, 0.0
        for slot in range(slots):
            word, there = words[2 * slot] + read[slot], words[2 * slot + 1]
            word_enter, word_forget, word_candidate = ops.split(word, 3, axis=-1)
            word_cell = ops.sigmoid(word_forget) * cells[slot]
            word_cell = word_cell + ops.sigmoid(word_enter) * ops.tanh(word_candidate)
            share = word_gate + ops.matmul(word_cell, self.gate_recurrent_kernel)
            share = there * ops.exp(ops.sigmoid(share))
            total, mixed = total + share, mixed + share * word_cell
            any_there = any_there + there

        cell = ops.where(any_there > 0, mixed / total, plain)
        hidden = leave * ops.tanh(cell)
        return hidden, [hidden, cell, *cells[:-1], *read[:-1]]

    def get_config(self):
        return {**super().get_config(), "units": self.units, "slots": self.slots}


def _within(real, slots):
    """Whether all characters of a word are real: bool (batch, length, slots)."""
    real = ops.cast(real, "int32")
    length = ops.shape(real)[1]
    whole, words = real, []
    for slot in range(slots):  # one more character, in front
        whole = whole * ops.pad(real, [[0, 0], [slot + 1, 0]])[:, :length]
        words.append(whole)
    return ops.stack(words, axis=2) > 0


def _by_first_character(words):
    """Moves words (batch, length, slots, dim) from their last characters to their first ones."""
    moved = []
    for slot in range(words.shape[2]):
        one = words[:, :, slot]
        behind = ops.pad(one, [[0, 0], [0, slot + 1], [0, 0]])
        moved.append(behind[:, slot + 1 :])
    return ops.stack(moved, axis=2)
