import keras

from kerasattn.ops import activations


@keras.saving.register_keras_serializable(package="kerasattn")
class FeedForward(keras.layers.Layer):
    """The position-wise network of a transformer: the same two dense layers at every position.

    Plain: output(activation(intermediate(x))). Gated, which is GLU, GEGLU, SwiGLU, ... by its
    activation: output(activation(gate(x)) * intermediate(x)).

    Args:
        intermediate_dim: int >= 1, the inner width.
        output_dim: int >= 1 or None, the output width. None: as wide as the input.
        activation: a name ("gelu" is the exact erf form, "gelu_tanh" its approximation, else as in
            `keras.activations`), a callable, or None for the identity.
        gated: bool, whether a third dense layer gates the inner one.
        use_bias: bool, whether the dense layers have biases.
        dropout: float in [0, 1), the share of inner units that is dropped while training.
        kernel_initializer: initializer of every kernel. Each kernel has its own draw.
        seed: int or None, of the dropout.

    Shapes:
        (..., input_dim) -> (..., output_dim). A Keras mask of the input is kept.

    Raises:
        ValueError: if a width is not positive, dropout is out of range or the activation unknown.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> layer = layers.FeedForward(32, activation="silu", gated=True)
    >>> tuple(layer(np.ones((2, 5, 8))).shape)
    (2, 5, 8)

    Source: https://arxiv.org/abs/1706.03762, equation 2; gated: https://arxiv.org/abs/2002.05202,
    equation 6.
    """

    def __init__(
        self,
        intermediate_dim,
        output_dim=None,
        activation="gelu",
        gated=False,
        use_bias=True,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if intermediate_dim < 1 or (output_dim is not None and output_dim < 1):
            raise ValueError(
                "intermediate_dim and output_dim must be at least 1, got "
                f"intermediate_dim={intermediate_dim}, output_dim={output_dim}."
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout}.")
        self.intermediate_dim = intermediate_dim
        self.output_dim = output_dim
        self.activation = activations.get(activation)
        self.gated = gated
        self.use_bias = use_bias
        self.dropout_rate = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.supports_masking = True

    def _dense(self, units, name):
        return keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            # One instance would give kernels of one shape the same draw.
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape):
        # `output` is a property of every Keras layer, hence the longer attribute.
        self.intermediate = self._dense(self.intermediate_dim, "intermediate")
        self.gate = self._dense(self.intermediate_dim, "gate") if self.gated else None
        self.output_dense = self._dense(self.output_dim or input_shape[-1], "output")
        self.dropout = keras.layers.Dropout(
            self.dropout_rate, seed=self.seed, dtype=self.dtype_policy, name="dropout"
        )
        inner_shape = (*input_shape[:-1], self.intermediate_dim)
        self.intermediate.build(input_shape)
        if self.gated:
            self.gate.build(input_shape)
        self.output_dense.build(inner_shape)

    def call(self, x, training=False):
        inner = self.intermediate(x)  # (..., intermediate_dim)
        if self.gated:
            inner = self.activation(self.gate(x)) * inner
        else:
            inner = self.activation(inner)
        inner = self.dropout(inner, training=training)
        return self.output_dense(inner)  # (..., output_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "output_dim": self.output_dim,
            "activation": activations.serialize(self.activation),
            "gated": self.gated,
            "use_bias": self.use_bias,
            "dropout": self.dropout_rate,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }
