"""The layers of bert4keras' transformers, with its arguments, inputs and names of weights.

They are thin over `kerasattn.layers`: what bert4keras packs into one list of inputs is unpacked.
"""

import keras
from keras import ops

from kerasattn import layers
from kerasattn.compat.bert4keras.backend import get_activation
from kerasattn.compat.bert4keras.nodes import Nodes
from kerasattn.ops import activations, masks

register = keras.saving.register_keras_serializable(package="kerasattn.bert4keras")


@register
class Embedding(Nodes, layers.TokenEmbedding):
    """`layers.TokenEmbedding` that tells later layers where padding is.

    Args:
        input_dim, output_dim: int, rows and width of the table.
        embeddings_initializer: of the table.
        mask_zero: bool, whether id 0 is padding, but for the first position.

    Call arguments:
        inputs: ids (batch, length); with mode="dense" vectors (batch, length, output_dim).
        mode: "embedding", or "dense" for the logits of the same table.
    """

    def __init__(
        self, input_dim, output_dim, embeddings_initializer="uniform", mask_zero=False, **kwargs
    ):
        super().__init__(
            input_dim, output_dim, embeddings_initializer=embeddings_initializer, **kwargs
        )
        self.mask_zero = mask_zero

    def call(self, inputs, mode="embedding"):
        if mode == "dense":
            return super().call(inputs, reverse=True)
        return super().call(ops.cast(inputs, "int32"))

    def compute_output_spec(self, inputs, mode="embedding"):
        if mode == "dense":
            return super().compute_output_spec(inputs, reverse=True)
        return super().compute_output_spec(keras.KerasTensor(inputs.shape, "int32"))

    def compute_mask(self, inputs, previous_mask=None):
        if len(inputs.shape) != 2:  # vectors, for logits
            return previous_mask
        return real_tokens(inputs) if self.mask_zero else None

    def get_config(self):
        config = super().get_config()
        del config["vocabulary_size"], config["hidden_dim"], config["embedding_dim"]
        return {
            **config,
            "input_dim": self.vocabulary_size,
            "output_dim": self.hidden_dim,
            "mask_zero": self.mask_zero,
        }


def real_tokens(token_ids):
    """Where tokens are no padding, the first always counted as real: bool (batch, length)."""
    real = ops.not_equal(token_ids, 0)
    return ops.concatenate([ops.ones_like(real[:, :1]), real[:, 1:]], axis=1)


@register
class AttentionBias(keras.layers.Layer):
    """Which keys a query may attend to: no padding, and as much as the application allows.

    Args:
        application: "encoder", "lm" or "unilm", see `layers.AttentionMask`.
        mask_segments: bool, whether segment id 0 is padding too.

    Shapes:
        token ids and optionally segment ids, each (batch, length)
        -> bool (batch, 1 or length, length), True = may attend.
    """

    def __init__(self, application="encoder", mask_segments=False, **kwargs):
        super().__init__(**kwargs)
        self.application = application
        self.mask_segments = mask_segments

    def call(self, token_ids, segment_ids=None):
        mask = masks.keys(real_tokens(token_ids))  # (batch, 1, 1, length)
        if self.mask_segments:
            mask = mask & masks.keys(real_tokens(segment_ids))
        if self.application == "lm":
            mask = mask & masks.causal(token_ids)
        elif self.application == "unilm":
            mask = mask & masks.prefix(segment_ids)
        return mask[:, 0]

    def compute_output_spec(self, token_ids, segment_ids=None):
        batch, length = token_ids.shape
        queries = 1 if self.application == "encoder" else length
        return keras.KerasTensor((batch, queries, length), "bool")

    def get_config(self):
        return {
            **super().get_config(),
            "application": self.application,
            "mask_segments": self.mask_segments,
        }


@register
class FeedForward(Nodes, keras.layers.Layer):
    """Dense layers whose products a last one maps back: two in all, or gated ones.

    Args:
        units: int, the inner width.
        activation: of the inner layer, or a list, one for each of several inner layers.
        use_bias: bool.
        kernel_initializer: of the kernels.

    Shapes:
        (..., dim) -> (..., dim).
    """

    def __init__(
        self,
        units,
        activation="relu",
        use_bias=True,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        several = isinstance(activation, (list, tuple))
        self.units = units
        self.activation = [get_activation(a) for a in (activation if several else [activation])]
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        def dense(units, name, input_dim, activation=None):
            layer = keras.layers.Dense(
                units,
                activation=activation,
                use_bias=self.use_bias,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, input_dim))
            return layer

        width = input_shape[-1]
        for i, activation in enumerate(self.activation):
            setattr(self, f"i{i}_dense", dense(self.units, f"i{i}_dense", width, activation))
        self.o_dense = dense(width, "o_dense", self.units)

    def call(self, inputs):
        x = self.i0_dense(inputs)
        for i in range(1, len(self.activation)):
            x = x * getattr(self, f"i{i}_dense")(inputs)
        return self.o_dense(x)

    def compute_output_spec(self, inputs):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "activation": [activations.serialize(a) for a in self.activation],
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

    @classmethod
    def from_config(cls, config):
        functions = [
            keras.saving.deserialize_keras_object(a) if isinstance(a, dict) else activations.get(a)
            for a in config["activation"]
        ]
        return cls(**{**config, "activation": functions})


@register
class Sum(Nodes, keras.layers.Add):
    """The sum of tensors, which is masked where any of them is."""

    def compute_mask(self, inputs, mask=None):
        given = [m for m in mask or () if m is not None]
        if not given:
            return None
        joined = given[0]
        for more in given[1:]:
            joined = joined & more
        return joined


@register
class FirstToken(keras.layers.Layer):
    """The first vector of a sequence: (batch, length, dim) -> (batch, dim)."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        return inputs[:, 0]

    def compute_mask(self, inputs, previous_mask=None):
        return None


@register
class Unmasked(keras.layers.Layer):
    """The input without its Keras mask."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        return inputs + 0  # the tensor itself would keep its mask

    def compute_mask(self, inputs, previous_mask=None):
        return None
