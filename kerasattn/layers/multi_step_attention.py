import keras
from keras import ops

from kerasattn.ops import scores
from kerasattn.ops.attention import as_mask, attend, hide_keys


@keras.saving.register_keras_serializable(package="kerasattn")
class MultiStepAttention(keras.layers.Layer):
    """What a layer of a convolutional decoder reads, which looks by its word's vector too.

    A query is W h + b + g, of the layer's output h and the vector g of the word before; the keys
    are the encoder's outputs z, the values z + e, with the vectors e of what was read. The result
    is multiplied by the root of the number of keys, since a mean of m vectors shrinks by it.

    Args:
        kernel_initializer: of the projections.

    Call arguments:
        query: h, (batch, query, dim).
        target: g, (batch, query, embedding_dim).
        value: z, (batch, key, embedding_dim).
        source: e, (batch, key, embedding_dim).
        attention_mask: as that of `SoftAttention`.
        cache: the pair of `project_key_value`, for which `value` and `source` are not looked at.
        return_weights: bool, whether to return the weights.

    Returns:
        (batch, query, dim), to be added to h, and with return_weights a tuple of it and the weights
        (batch, query, key) float32. Where embedding_dim is not dim, a second projection leads back.

    Raises:
        ValueError: for other ranks, widths that do not go together, or a mask of another dtype or
            shape.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> hidden, target = np.ones((2, 3, 8), "float32"), np.ones((2, 3, 4), "float32")
    >>> read = np.ones((2, 5, 4), "float32")
    >>> tuple(layers.MultiStepAttention()(hidden, target, read, read).shape)
    (2, 3, 8)

    Source: https://arxiv.org/abs/1705.03122, equations 1 and 2, section 3.4.
    """

    def __init__(self, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, query_shape, target_shape, value_shape=None, source_shape=None):
        dim, embedding_dim = query_shape[-1], target_shape[-1]
        shapes = dict(query=query_shape, target=target_shape)
        read = {k: x for k, x in dict(value=value_shape, source=source_shape).items() if x}
        for name, shape in (shapes | read).items():
            if len(shape) != 3:
                raise ValueError(f"{name} must be (batch, length, dim), got {tuple(shape)}.")
        for name, shape in read.items():
            if shape[-1] != embedding_dim:
                raise ValueError(
                    f"{name} must be as wide as target, {embedding_dim}, got {tuple(shape)}."
                )

        def dense(units, name, input_width):
            layer = keras.layers.Dense(
                units,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, None, input_width))
            return layer

        self.query = dense(embedding_dim, "query", dim)
        self.output_dense = None
        if dim != embedding_dim:
            self.output_dense = dense(dim, "output", embedding_dim)

    def call(
        self,
        query,
        target,
        value=None,
        source=None,
        attention_mask=None,
        cache=None,
        return_weights=False,
        mask=None,
        query_mask=None,
        target_mask=None,
        value_mask=None,
        source_mask=None,
    ):
        implicit = [value_mask, source_mask]
        if cache is None:
            cache = self.project_key_value(value, source)
        else:
            implicit = []
        found = scores.dot(self.query(query) + target, cache[0])  # (batch, query, key)
        shape = (found.shape[0], 1, *found.shape[1:])
        attention_mask = hide_keys(attention_mask, implicit, shape)
        mixed, weights = attend(found, cache[1], attention_mask)
        seen = ops.ones_like(found[:1, :1])  # (1, 1, key), for masks that have one key for all
        if attention_mask is not None:
            seen = seen * ops.cast(as_mask(attention_mask, shape)[:, 0], "float32")
        seen = ops.sum(seen, axis=-1, keepdims=True)  # (batch or 1, query or 1, 1)
        mixed = mixed * ops.cast(ops.sqrt(seen), mixed.dtype)
        if self.output_dense is not None:
            mixed = self.output_dense(mixed)
        return (mixed, weights) if return_weights else mixed

    def project_key_value(self, value, source):
        """Keys and values: computed once, used at every step, the same for every layer."""
        return value, value + source

    def compute_output_spec(
        self, query, target, value=None, source=None, cache=None, return_weights=False, **kwargs
    ):
        keys = value if cache is None else cache[0]
        mixed = keras.KerasTensor(query.shape, self.compute_dtype)
        weights = keras.KerasTensor((*query.shape[:2], keys.shape[1]), "float32")
        return (mixed, weights) if return_weights else mixed

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
