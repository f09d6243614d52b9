import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class ProjectedLSTMCell(keras.layers.Layer):
    """An LSTM cell that tells less than it keeps, for `keras.layers.RNN`: LSTMP.

        i, f, c~, o = W x + U h + b
        c' = clip(sigmoid(f) · c + sigmoid(i) · tanh(c~))
        h' = clip(P (sigmoid(o) · tanh(c')))

    What is told, h, is fed back. Kernel, recurrent kernel and bias lie as those of
    `keras.layers.LSTMCell`.

    Args:
        units: int >= 1, the width of the cell state c.
        projection_dim: int >= 1, the width of h.
        cell_clip, projection_clip: float > 0, the most that a number of c, or of h, may be from 0;
            None for no limit.
        unit_forget_bias: bool, whether the bias of f starts at 1.
        kernel_initializer, recurrent_initializer: of W and P, and of U.

    Shapes:
        inputs (batch, dim), states [h (batch, projection_dim), c (batch, units)]
        -> (batch, projection_dim) and the new states.

    Raises:
        ValueError: for sizes below 1, or limits that are not above 0.

    Example:
    >>> import keras
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> lstm = keras.layers.RNN(layers.ProjectedLSTMCell(8, 4), return_sequences=True)
    >>> tuple(lstm(np.ones((2, 3, 5), "float32")).shape)
    (2, 3, 4)

    Source: https://arxiv.org/abs/1402.1128 (Sak, Senior, Beaufays 2014), section 2; limits as in
    ELMo's, https://arxiv.org/abs/1802.05365.
    """

    def __init__(
        self,
        units,
        projection_dim,
        cell_clip=None,
        projection_clip=None,
        unit_forget_bias=True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if min(units, projection_dim) < 1:
            raise ValueError(
                f"units and projection_dim must be at least 1, got {units} and {projection_dim}."
            )
        for name, limit in (("cell_clip", cell_clip), ("projection_clip", projection_clip)):
            if limit is not None and not limit > 0:
                raise ValueError(f"{name} must be above 0 or None, got {limit!r}.")
        self.units, self.projection_dim = units, projection_dim
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        self.unit_forget_bias = unit_forget_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.state_size = [projection_dim, units]
        self.output_size = projection_dim

    def build(self, input_shape):
        if len(input_shape) != 2:
            raise ValueError(
                f"The cell takes one step (batch, dim), got the shape {tuple(input_shape)}; "
                "keras.layers.RNN(cell) takes sequences."
            )

        def bias(shape, dtype=None):
            forget = ops.equal(ops.arange(shape[0]) // self.units, 1)
            return ops.cast(forget, dtype) * float(self.unit_forget_bias)

        columns = 4 * self.units
        self.kernel = self.add_weight(
            (input_shape[-1], columns), self.kernel_initializer, name="kernel"
        )
        self.recurrent_kernel = self.add_weight(
            (self.projection_dim, columns), self.recurrent_initializer, name="recurrent_kernel"
        )
        self.bias = self.add_weight((columns,), bias, name="bias")
        self.projection_kernel = self.add_weight(
            (self.units, self.projection_dim),
            self.kernel_initializer.clone(),
            name="projection_kernel",
        )

    def call(self, inputs, states, training=False):
        hidden, cell = states
        z = ops.matmul(inputs, self.kernel) + ops.matmul(hidden, self.recurrent_kernel) + self.bias
        enter, forget, candidate, leave = ops.split(z, 4, axis=-1)
        cell = ops.sigmoid(forget) * cell + ops.sigmoid(enter) * ops.tanh(candidate)
        cell = _clip(cell, self.cell_clip)
        hidden = ops.matmul(ops.sigmoid(leave) * ops.tanh(cell), self.projection_kernel)
        hidden = _clip(hidden, self.projection_clip)
        return hidden, [hidden, cell]

    def get_initial_state(self, batch_size=None):
        """Zeros for the hidden vectors and the cell states."""
        return [ops.zeros((batch_size, width), self.compute_dtype) for width in self.state_size]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "projection_dim": self.projection_dim,
            "cell_clip": self.cell_clip,
            "projection_clip": self.projection_clip,
            "unit_forget_bias": self.unit_forget_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
        }


def _clip(x, limit):
    return x if limit is None else ops.clip(x, -limit, limit)
