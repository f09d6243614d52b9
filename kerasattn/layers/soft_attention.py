import keras
from keras import ops

from kerasattn.ops import scores
from kerasattn.ops.attention import attend, hide_keys

SCORES = ("dot", "scaled_dot", "bilinear", "additive", "concat", "location")


@keras.saving.register_keras_serializable(package="kerasattn")
class SoftAttention(keras.layers.Layer):
    """Attention of one head: a mean of the values, weighted by the softmax of any score.

    Args:
        score: of a query q and a key k:

            - "dot": q · k; "scaled_dot": q · k / sqrt(dim); both of one width
            - "bilinear": q · W k, Luong's general; with use_bias (W^T q + b) · k
            - "additive": v · tanh(W q + U k), Bahdanau's
            - "concat": v · tanh(W [q; k]), Luong's, which is the same: W's columns for q and for k
              are the two matrices of "additive"
            - "location": W q, a number for each place, whatever the key there
        units: int >= 1, the width of v in "additive" and "concat"; by default that of the query.
        max_length: int >= 1, the most keys that "location" has numbers for; needed there alone.
        kernel_initializer: of the matrices and of v.
        use_bias: bool, see "bilinear"; for that alone.

    Call arguments:
        query: (batch, query, query_dim).
        value: (batch, key, value_dim), by default the query.
        key: (batch, key, key_dim), by default the value.
        attention_mask: bool, True = may attend, (query, key), (batch, query, key) or
            (batch, 1, 1 or query, key), as those of `ops.masks`. Keras' masks of value and key hide
            keys too.
        cache: the pair of `project_key_value`, for which `value` and `key` are not looked at.
        query_positions: of `LocalAttention`; not looked at here.
        return_weights: bool, whether to return the weights.

    Returns:
        (batch, query, value_dim), zeros where there is nothing to attend to; with return_weights a
        tuple of it and the weights (batch, query, key) float32.

    Raises:
        ValueError: for another score, widths that do not go together, more keys than max_length, or
            a mask of another dtype or shape.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> query, value = np.ones((2, 3, 4), "float32"), np.ones((2, 5, 6), "float32")
    >>> mixed, weights = layers.SoftAttention("additive", units=8)(
    ...     query, value, return_weights=True
    ... )
    >>> tuple(mixed.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Source: https://arxiv.org/abs/1409.0473, equations 5 and 6; https://arxiv.org/abs/1508.04025,
    section 3.1.
    """

    def __init__(
        self,
        score="additive",
        units=None,
        max_length=None,
        kernel_initializer="glorot_uniform",
        use_bias=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if score not in SCORES:
            raise ValueError(f"score must be one of {SCORES}, got {score!r}.")
        if units is not None and units < 1:
            raise ValueError(f"units must be at least 1, got {units}.")
        if (score == "location") != (max_length is not None) or (max_length or 1) < 1:
            raise ValueError(
                f'max_length of at least 1 is needed for score="location" alone, got {max_length} '
                f"for {score!r}."
            )
        if use_bias and score != "bilinear":
            raise ValueError(f'use_bias is for score="bilinear" alone, got {score!r}.')
        self.use_bias = use_bias
        self.score = score
        self.units = units
        self.max_length = max_length
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, query_shape, value_shape=None, key_shape=None):
        key_shape = key_shape or value_shape or query_shape
        for name, shape in (("query", query_shape), ("key", key_shape)):
            if len(shape) != 3:
                raise ValueError(f"{name} must be (batch, length, dim), got {tuple(shape)}.")
        query_dim, key_dim = query_shape[-1], key_shape[-1]
        units = self.units or query_dim

        def weight(name, *shape):
            # Each its own: one initializer object would give equal matrices.
            return self.add_weight(shape, self.kernel_initializer.clone(), name=name)

        if self.score in ("dot", "scaled_dot") and query_dim != key_dim:
            raise ValueError(
                f'score="{self.score}" needs queries as wide as keys, got {query_dim} and '
                f'{key_dim}; "bilinear" takes any.'
            )
        if self.score == "bilinear":
            self.kernel = weight("kernel", query_dim, key_dim)
            if self.use_bias:
                self.bias = self.add_weight((key_dim,), "zeros", name="bias")
        elif self.score == "location":
            self.kernel = weight("kernel", query_dim, self.max_length)
        elif self.score in ("additive", "concat"):
            self.query_kernel = weight("query_kernel", query_dim, units)
            self.key_kernel = weight("key_kernel", key_dim, units)
            # As a matrix of one column, for which initializers know what to do.
            self.vector = weight("vector", units, 1)

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        cache=None,
        query_positions=None,
        return_weights=False,
        mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
    ):
        implicit = [mask if mask is not None else query_mask]
        if value is not None or key is not None:
            implicit = [value_mask, key_mask]
        if cache is None:
            keys, values = self.project_key_value(query if value is None else value, key)
        else:
            (keys, values), implicit = cache, []
        found = self.compare(query, keys)  # (batch, query, key)
        attention_mask = hide_keys(attention_mask, implicit, (found.shape[0], 1, *found.shape[1:]))
        attention_mask, factor = self.focus(query, found, attention_mask, query_positions)
        mixed, weights = attend(found, values, attention_mask, factor)
        return (mixed, weights) if return_weights else mixed

    def project_key_value(self, value, key=None):
        """Keys as the score multiplies them, and values: computed once, used at every step."""
        key = value if key is None else key
        if self.score == "bilinear" and not self.use_bias:
            return ops.matmul(key, ops.transpose(self.kernel)), value  # (batch, key, query_dim)
        if self.score in ("additive", "concat"):
            return ops.matmul(key, self.key_kernel), value  # (batch, key, units)
        return key, value

    def compare(self, query, keys):
        """(batch, query, query_dim), keys of `project_key_value` -> (batch, query, key) float32."""
        if self.use_bias:
            return scores.dot(scores.project(query, self.kernel) + self.bias, keys)
        if self.score in ("additive", "concat"):
            query = scores.project(query, self.query_kernel)
            return scores.additive(query, keys, self.vector[:, 0])
        if self.score == "location":
            length = ops.shape(keys)[1]
            if isinstance(length, int) and length > self.max_length:
                raise ValueError(
                    f"There are {length} keys, and max_length = {self.max_length} numbers for them."
                )
            return scores.location(query, self.kernel[:, :length])
        scale = query.shape[-1] ** -0.5 if self.score == "scaled_dot" else 1.0
        return scores.dot(query, keys, scale)

    def focus(self, query, found, attention_mask, query_positions):
        """The mask, and a factor of the weights or None, for layers that look at a part alone."""
        return attention_mask, None

    def compute_output_spec(
        self, query, value=None, key=None, cache=None, return_weights=False, **kwargs
    ):
        values = cache[1] if cache is not None else query if value is None else value
        mixed = keras.KerasTensor((*query.shape[:2], values.shape[-1]), self.compute_dtype)
        weights = keras.KerasTensor((*query.shape[:2], values.shape[1]), "float32")
        return (mixed, weights) if return_weights else mixed

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "score": self.score,
            "units": self.units,
            "max_length": self.max_length,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
