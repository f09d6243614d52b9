import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class PeepholeLSTMCell(keras.layers.Layer):
    """An LSTM cell whose gates see the cell state, each unit its own, for `keras.layers.RNN`.

    The gates of the input and of forgetting see the state before the step, that of the output the
    state after it:

        i = sigmoid(W_i x + U_i h + p_i · c + b_i)
        f = sigmoid(W_f x + U_f h + p_f · c + b_f), or 1 - i where they are coupled
        c' = f · c + i · tanh(W_c x + U_c h + b_c)
        o = sigmoid(W_o x + U_o h + p_o · c' + b_o)
        h' = o · tanh(c')

    With peepholes of zero it is `keras.layers.LSTMCell`, and its weights lie as there.

    Args:
        units: int >= 1.
        coupled: bool, whether what is forgotten is what enters: f = 1 - i.
        unit_forget_bias: bool, whether b_f starts at 1.
        kernel_initializer, recurrent_initializer: of the matrices W and U.
        peephole_initializer: of the vectors p.

    Shapes:
        inputs (batch, dim), states [h, c] each (batch, units) -> (batch, units) and the new states.

    Raises:
        ValueError: for units below 1.

    Example:
    >>> import keras
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> lstm = keras.layers.RNN(layers.PeepholeLSTMCell(4), return_sequences=True)
    >>> tuple(lstm(np.ones((2, 3, 5), "float32")).shape)
    (2, 3, 4)

    Source: Gers, Schraudolph, Schmidhuber, 2002, Learning Precise Timing with LSTM Recurrent
    Networks, equations 10 to 14; coupled gates https://arxiv.org/abs/1503.04069, section 5.
    """

    def __init__(
        self,
        units,
        coupled=False,
        unit_forget_bias=True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        peephole_initializer="zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"units must be at least 1, got {units}.")
        self.units = units
        self.coupled = coupled
        self.unit_forget_bias = unit_forget_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.peephole_initializer = keras.initializers.get(peephole_initializer)
        self.state_size = [units, units]
        self.output_size = units

    def build(self, input_shape):
        if len(input_shape) != 2:
            raise ValueError(
                f"The cell takes one step (batch, dim), got the shape {tuple(input_shape)}; "
                "keras.layers.RNN(cell) takes sequences."
            )
        parts = 3 if self.coupled else 4

        def bias(shape, dtype=None):
            part = ops.arange(shape[0]) // self.units
            forget = not self.coupled and self.unit_forget_bias
            return ops.cast(ops.equal(part, 1), dtype) * float(forget)

        columns = parts * self.units
        self.kernel = self.add_weight(
            (input_shape[-1], columns), self.kernel_initializer, name="kernel"
        )
        self.recurrent_kernel = self.add_weight(
            (self.units, columns), self.recurrent_initializer, name="recurrent_kernel"
        )
        self.bias = self.add_weight((columns,), bias, name="bias")
        self.peepholes = self.add_weight(  # of the gates in their order, the output's last
            (parts - 1, self.units), self.peephole_initializer, name="peepholes"
        )

    def call(self, inputs, states, training=False):
        hidden, cell = states
        z = ops.matmul(inputs, self.kernel) + ops.matmul(hidden, self.recurrent_kernel) + self.bias
        *gates, candidate, leave = ops.split(z, 3 if self.coupled else 4, axis=-1)
        gates = [ops.sigmoid(g + self.peepholes[i] * cell) for i, g in enumerate(gates)]
        enter, forget = gates[0], 1 - gates[0] if self.coupled else gates[1]
        cell = forget * cell + enter * ops.tanh(candidate)
        leave = ops.sigmoid(leave + self.peepholes[-1] * cell)
        hidden = leave * ops.tanh(cell)
        return hidden, [hidden, cell]

    def get_initial_state(self, batch_size=None):
        """Zeros for the hidden vectors and the cell states."""
        return [ops.zeros((batch_size, self.units), self.compute_dtype) for _ in range(2)]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "coupled": self.coupled,
            "unit_forget_bias": self.unit_forget_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
            "peephole_initializer": keras.initializers.serialize(self.peephole_initializer),
        }
