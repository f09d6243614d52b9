import keras
from keras import ops

from kerasattn.ops import hard_attention, scores
from kerasattn.ops.attention import as_mask, masked_softmax

GRADIENTS = ("reinforce", "gumbel")


@keras.saving.register_keras_serializable(package="kerasattn")
class HardAttention(keras.layers.Layer):
    """Looks at one position, drawn by additive scores in training, and the likeliest otherwise.

    With gradient="reinforce" the scores learn from `ReinforceLoss`, which is given the
    log-probabilities of the draws: without bias, with much noise. With "gumbel" they learn from
    the gradient of a softmax in the draw's place, with little noise and a bias, which
    docs/reading.md measures. A query with nothing to look at gives zeros.

    Args:
        units: int >= 1, width of the additive scores v · tanh(W query + U key).
        gradient: "reinforce" or "gumbel".
        temperature: float > 0, of the softmax of "gumbel": the lower, the less bias and the more
            noise.
        kernel_initializer: of W, U and v.
        seed: int or None, of the draws.

    Shapes:
        query (batch, query, query_dim), value (batch, key, dim), key (batch, key, key_dim), by
        default the values, and a boolean attention_mask, (query, key), (batch, query, key) or
        (batch, 1, query, key), True = may attend -> (batch, query, dim); with return_weights=True
        also the probabilities of the positions, float32 (batch, query, key); with
        return_log_probs=True also the log-probabilities of those drawn and the entropies, in nats,
        float32 (batch, query) each.

    Raises:
        ValueError: for numbers out of range, another gradient, or a mask that is not boolean or
            does not fit.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> attention = layers.HardAttention(units=4, seed=0)
    >>> query, value = np.ones((1, 2, 3), "float32"), np.arange(5.0).reshape(1, 5, 1)
    >>> mixed, log_probs, entropies = attention(query, value, return_log_probs=True, training=True)
    >>> set(np.array(mixed).ravel().tolist()) <= {0.0, 1.0, 2.0, 3.0, 4.0}
    True

    Source: https://arxiv.org/abs/1502.03044, section 4.1; "gumbel" https://arxiv.org/abs/1611.01144,
    section 2.2.
    """

    def __init__(
        self,
        units,
        gradient="reinforce",
        temperature=1.0,
        kernel_initializer="glorot_uniform",
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"units must be at least 1, got {units}.")
        check_gradient(gradient, temperature)
        self.units, self.gradient, self.temperature = units, gradient, float(temperature)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, query_shape, value_shape, key_shape=None, attention_mask_shape=None):
        for name, shape in (("query", query_shape), ("value", value_shape), ("key", key_shape)):
            if shape is not None and len(shape) != 3:
                raise ValueError(f"{name} must be (batch, length, dim), got {tuple(shape)}.")

        def dense(name, shape, use_bias):
            layer = keras.layers.Dense(
                self.units,
                use_bias=use_bias,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build(shape)
            return layer

        self.query_dense = dense("query", query_shape, True)
        self.key_dense = dense("key", value_shape if key_shape is None else key_shape, False)
        initializer = self.kernel_initializer.clone()
        self.vector = self.add_weight((self.units, 1), initializer, name="vector")

    def call(
        self,
        query,
        value,
        key=None,
        attention_mask=None,
        return_weights=False,
        return_log_probs=False,
        training=False,
    ):
        keys = self.key_dense(value if key is None else key)  # (batch, key, units)
        found = scores.additive(self.query_dense(query), keys, self.vector[:, 0])
        if attention_mask is not None:
            batch, length, size = found.shape
            attention_mask = as_mask(attention_mask, (batch, 1, length, size))[:, 0]
        noise = ops.zeros_like(found)
        if training:
            uniforms = keras.random.uniform(ops.shape(found), seed=self.seed_generator)
            noise = hard_attention.gumbel(uniforms)
        temperature = self.temperature if self.gradient == "gumbel" and training else None
        drawn = hard_attention.draw(found, noise, attention_mask, temperature)
        results = [ops.matmul(ops.cast(drawn, value.dtype), value)]
        if return_weights:
            results.append(masked_softmax(found, attention_mask))
        if return_log_probs:
            results += hard_attention.log_prob(found, drawn, attention_mask)
        return tuple(results) if len(results) > 1 else results[0]

    def compute_mask(self, *inputs, **masks):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "gradient": self.gradient,
            "temperature": self.temperature,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }


def check_gradient(gradient, temperature):
    """Refuses a gradient of hard attention, or a temperature, that there is not.

    Raises:
        ValueError: naming what is taken.
    """
    if gradient not in GRADIENTS:
        raise ValueError(f"gradient must be one of {GRADIENTS}, got {gradient!r}.")
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}.")
