import keras
from keras import ops

from kerasattn.ops import activations


@keras.saving.register_keras_serializable(package="kerasattn")
class LanguageModelHead(keras.layers.Layer):
    """Logits over the vocabulary, from the token table or from a kernel of its own.

    With an activation it is BERT's masked-LM head: dense `transform`, activation, layer `norm`,
    then the table and a `bias`; without, only the table and the `bias`. A tied table stays one in
    `.keras` files; `keras.models.clone_model` gives the head a copy of its own.

    Args:
        embedding: a TokenEmbedding whose table is used (tied), or None for an own `kernel`.
        activation: name or callable (see FeedForward) of the transform, or None for no transform.
        layer_norm_epsilon: float > 0, of the transform's norm.
        use_bias: bool, whether each word has a bias.
        vocabulary_size: int >= 1, needed if and only if embedding is None.
        kernel_initializer: initializer of the transform and the own kernel, None for
            TruncatedNormal(stddev=0.02).

    Shapes:
        (..., hidden_dim) -> logits (..., vocabulary_size), float32 in every policy. A Keras mask of
        the input is kept.

    Raises:
        ValueError: if not exactly one of embedding and vocabulary_size is given, or the input is
            not as wide as the table and there is no transform to make it so.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> embedding = layers.TokenEmbedding(vocabulary_size=100, hidden_dim=8)
    >>> head = layers.LanguageModelHead(embedding, activation="gelu")
    >>> tuple(head(embedding(np.array([[1, 2, 3]]))).shape)
    (1, 3, 100)

    Source: https://arxiv.org/abs/1810.04805, section 3.1; https://arxiv.org/abs/1608.05859.
    """

    def __init__(
        self,
        embedding=None,
        activation=None,
        layer_norm_epsilon=1e-12,
        use_bias=True,
        vocabulary_size=None,
        kernel_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if (embedding is None) == (vocabulary_size is None):
            raise ValueError(
                "Give either embedding (a tied TokenEmbedding) or vocabulary_size (an own kernel), "
                f"got embedding={embedding}, vocabulary_size={vocabulary_size}."
            )
        if embedding is not None and not embedding.built:
            # Not in `build`, where the table's path would start with this layer's name.
            embedding.build()
        self.embedding = embedding
        self.activation = None if activation is None else activations.get(activation)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.use_bias = use_bias
        self.vocabulary_size = vocabulary_size
        self.kernel_initializer = keras.initializers.get(
            kernel_initializer or keras.initializers.TruncatedNormal(stddev=0.02)
        )
        self.supports_masking = True

    def build(self, input_shape):
        input_dim = input_shape[-1]
        width = input_dim if self.embedding is None else self.embedding.table_dim
        if self.activation is not None:
            self.transform = keras.layers.Dense(
                width,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name="transform",
            )
            self.norm = keras.layers.LayerNormalization(
                epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
            )
            self.transform.build(input_shape)
            self.norm.build((*input_shape[:-1], width))
        elif width != input_dim:
            raise ValueError(
                f"The tied table is {width} wide, the input {input_dim}: give the head an "
                f"activation (its transform changes the width) or inputs of width {width}."
            )
        size = self.vocabulary_size
        if self.embedding is None:
            self.kernel = self.add_weight(
                shape=(width, size), initializer=self.kernel_initializer.clone(), name="kernel"
            )
        else:
            size = self.embedding.vocabulary_size
        if self.use_bias:
            # Added to float32 logits, so kept out of the policy's compute dtype.
            self.bias = self.add_weight(
                shape=(size,), initializer="zeros", autocast=False, name="bias"
            )

    def call(self, x):
        if self.activation is not None:
            x = self.norm(self.activation(self.transform(x)))  # (..., table's width)
        if self.embedding is None:
            logits = ops.cast(ops.matmul(x, self.kernel), "float32")
        else:
            logits = self.embedding(x, reverse=True)
        if self.use_bias:
            logits = logits + ops.cast(self.bias, "float32")
        return logits  # (..., vocabulary_size)

    def compute_output_spec(self, x):
        # Said rather than traced, which would take a fifth of the time that building a model takes.
        size = self.vocabulary_size if self.embedding is None else self.embedding.vocabulary_size
        return keras.KerasTensor((*x.shape[:-1], size), "float32")

    def get_config(self):
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "activation": self.activation and activations.serialize(self.activation),
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "use_bias": self.use_bias,
            "vocabulary_size": self.vocabulary_size,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

    @classmethod
    def from_config(cls, config):
        embedding = keras.saving.deserialize_keras_object(config["embedding"])
        return cls(**{**config, "embedding": embedding})
