import keras
from keras import ops

from kerasattn.ops import activations


@keras.saving.register_keras_serializable(package="kerasattn")
class Classification(keras.layers.Layer):
    """Logits of classes: for a vector, for every vector of a sequence, or for its first one.

    Args:
        num_classes: int >= 1.
        activation: of a dense layer before the logits, as wide as its input; None for no such
            layer. It has a dropout of its own.
        first: bool, whether a sequence is judged by its first vector; otherwise every vector is.
        dropout: float in [0, 1), before each dense layer.
        kernel_initializer: of the dense layers.
        seed: int or None, of the dropouts.

    Shapes:
        (batch, dim) -> (batch, num_classes); (batch, length, dim) -> (batch, num_classes) if
        `first`, else (batch, length, num_classes); float32 in every policy.

    Raises:
        ValueError: if num_classes is less than 1.

    Example:
    >>> import numpy as np
    >>> from kerasattn import heads
    >>> hidden = np.ones((2, 5, 8), "float32")
    >>> tuple(heads.Classification(3, activation="tanh", first=True)(hidden).shape)
    (2, 3)
    >>> tuple(heads.Classification(3)(hidden).shape)
    (2, 5, 3)

    Source: https://arxiv.org/abs/1810.04805, sections 4.1 and 5.3.
    """

    def __init__(
        self,
        num_classes,
        activation=None,
        first=False,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_classes < 1:
            raise ValueError(f"num_classes must be at least 1, got {num_classes}.")
        self.num_classes = num_classes
        self.activation = None if activation is None else activations.get(activation)
        self.first = first
        self.dropout = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed

    def build(self, input_shape):
        def dense(units, activation, name):
            layer = keras.layers.Dense(
                units,
                activation=activation,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build(input_shape)
            return layer

        # `output` is a property of every Keras layer, hence the longer attributes.
        self.inner_dense = None
        if self.activation is not None:
            self.inner_dense = dense(input_shape[-1], self.activation, "dense")
        self.output_dense = dense(self.num_classes, None, "output")

    def call(self, x, training=False):
        if self.first:
            x = ops.sum(x[:, :1], axis=1)  # zeros for a text without a token
        x = self.dropout(x, training=training)
        if self.inner_dense is not None:
            x = self.dropout(self.inner_dense(x), training=training)
        return ops.cast(self.output_dense(x), "float32")

    def compute_output_spec(self, x, training=False):
        sequence = x.shape[:1] if self.first else x.shape[:-1]
        return keras.KerasTensor((*sequence, self.num_classes), "float32")

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "activation": self.activation and activations.serialize(self.activation),
            "first": self.first,
            "dropout": self.dropout.rate,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }


@keras.saving.register_keras_serializable(package="kerasattn")
class Span(Classification):
    """Logits of where an answer begins and where it ends.

    Args:
        **kwargs: as `Classification`, but for num_classes.

    Shapes:
        (batch, length, dim) -> a pair of (batch, length), of the first and the last token.

    Example:
    >>> import numpy as np
    >>> from kerasattn import heads
    >>> start, end = heads.Span()(np.ones((2, 5, 8), "float32"))
    >>> tuple(start.shape), tuple(end.shape)
    ((2, 5), (2, 5))

    Source: https://arxiv.org/abs/1810.04805, section 4.2.
    """

    def __init__(self, num_classes=2, **kwargs):
        super().__init__(num_classes, **kwargs)

    def call(self, x, training=False):
        logits = super().call(x, training=training)  # (batch, length, 2)
        return logits[..., 0], logits[..., 1]

    def compute_output_spec(self, x, training=False):
        return tuple(keras.KerasTensor(x.shape[:-1], "float32") for _ in range(2))


@keras.saving.register_keras_serializable(package="kerasattn")
class TokenDetection(Classification):
    """One logit a token: whether it was replaced, as ELECTRA's discriminator tells.

    Args:
        **kwargs: as `Classification`, but for num_classes.

    Shapes:
        (batch, length, dim) -> (batch, length).

    Example:
    >>> import numpy as np
    >>> from kerasattn import heads
    >>> tuple(heads.TokenDetection(activation="gelu")(np.ones((2, 5, 8), "float32")).shape)
    (2, 5)

    Source: https://arxiv.org/abs/2003.10555, section 2.
    """

    def __init__(self, num_classes=1, **kwargs):
        super().__init__(num_classes, **kwargs)

    def call(self, x, training=False):
        return super().call(x, training=training)[..., 0]

    def compute_output_spec(self, x, training=False):
        return keras.KerasTensor(x.shape[:-1], "float32")
