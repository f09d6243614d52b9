"""bert4keras' MultiHeadAttention."""

import keras
from keras import ops

from kerasattn import layers
from kerasattn.compat.bert4keras.nodes import Nodes
from kerasattn.compat.bert4keras.rotation import SinusoidRotation

register = keras.saving.register_keras_serializable(package="kerasattn.bert4keras")


@register
class MultiHeadAttention(Nodes, layers.MultiHeadAttention):
    """`layers.MultiHeadAttention` with bert4keras' list of inputs.

    Args:
        heads, head_size: int, heads and the width of each one's values.
        out_dim: int, by default heads * head_size.
        key_size: int, width of each one's queries and keys, by default head_size.
        use_bias: bool, of the projections.
        attention_scale: bool, whether scores are divided by the root of key_size.
        attention_dropout: float in [0, 1), or None.
        return_attention_scores: bool, whether to return [output, scores].
        accumulate_scores: see `layers.MultiHeadAttention`.
        kernel_initializer: of the projections.

    Call arguments:
        inputs: list of query, key and value (batch, length, dim), and then what the next two
            arguments announce: a bias of the scores or a boolean mask, (batch, query, key) or
            (query, key); the positions. These are sinusoids (batch or 1, length, key_size) for
            "rotary"; one vector (query, key, key_size) for each pair, or one for keys and one for
            values, for "typical_relative"; a bias (1, heads, query, key) or (query, key, heads) for
            "t5_relative".
        a_bias: bool, whether there is a bias or a mask.
        p_bias: None, "rotary", "typical_relative" or "t5_relative".
        previous_scores: (batch, heads, query, key), scores of the layer below to be added.
        caches: pair of (batch, cached, dim), which stand before the keys and before the values and
            may be attended to.
    """

    def __init__(
        self,
        heads,
        head_size,
        out_dim=None,
        key_size=None,
        use_bias=True,
        attention_scale=True,
        attention_dropout=None,
        return_attention_scores=False,
        accumulate_scores=False,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        self._arguments = dict(
            heads=heads,
            head_size=head_size,
            out_dim=out_dim,
            key_size=key_size,
            use_bias=use_bias,
            attention_scale=attention_scale,
            attention_dropout=attention_dropout,
            return_attention_scores=return_attention_scores,
            accumulate_scores=accumulate_scores,
        )
        super().__init__(
            heads,
            head_dim=key_size or head_size,
            value_dim=head_size,
            output_dim=out_dim or heads * head_size,
            dropout=attention_dropout or 0.0,
            use_bias=use_bias,
            scale=None if attention_scale else 1.0,
            rotary=SinusoidRotation(),
            accumulate_scores=accumulate_scores,
            kernel_initializer=kernel_initializer,
            autocast=False,  # biases, scores and sinusoids stay float32; the projections cast
            **kwargs,
        )
        self.return_attention_scores = return_attention_scores

    def build(self, inputs_shape, previous_scores_shape=None, caches_shape=None):
        query, key, value = inputs_shape[:3]
        super().build(query, value, key)

    # The names under which bert4keras has the projections.
    q_dense = property(lambda self: self.query)
    k_dense = property(lambda self: self.key)
    v_dense = property(lambda self: self.value)
    o_dense = property(lambda self: self.output_dense)

    def call(
        self,
        inputs,
        a_bias=None,
        p_bias=None,
        previous_scores=None,
        caches=None,
        training=False,
        mask=None,
        inputs_mask=None,
    ):
        (query, key, value), more = inputs[:3], list(inputs[3:])
        options = {}
        if a_bias:
            bias = more.pop(0)
            bias = bias[None] if len(bias.shape) == 2 else bias  # the same for all of a batch
            bias = bias[:, None] if len(bias.shape) == 3 else bias
            is_mask = keras.backend.standardize_dtype(bias.dtype) == "bool"
            options["attention_mask" if is_mask else "bias"] = bias
        if p_bias == "rotary":
            options |= {"query_positions": more[0], "key_positions": more[0]}
        elif p_bias == "typical_relative":
            options |= {"relative_keys": more[0], "relative_values": more[-1]}
        elif p_bias == "t5_relative":
            bias = more[0] if len(more[0].shape) == 4 else ops.transpose(more[0], (2, 0, 1))[None]
            options["bias"] = bias + options.get("bias", 0.0)
        elif p_bias is not None:
            raise ValueError(
                f'p_bias is None, "rotary", "typical_relative" or "t5_relative", got {p_bias!r}.'
            )
        query_mask, _, value_mask, *_ = mask or inputs_mask or (None, None, None)
        if caches is not None:
            key, value = (ops.concatenate(pair, axis=1) for pair in zip(caches, (key, value)))
            if value_mask is not None:
                value_mask = after_real(caches[1], value_mask)
            if "attention_mask" in options:
                options["attention_mask"] = after_real(caches[1], options["attention_mask"])
        results = super().call(
            query,
            value,
            key,
            previous_scores=previous_scores,
            return_scores=self.return_attention_scores,
            training=training,
            query_mask=query_mask,
            value_mask=value_mask,
            **options,
        )
        return list(results) if self.return_attention_scores else results

    def compute_output_spec(self, inputs, *args, **kwargs):
        query, key = inputs[0].shape, inputs[1].shape
        output = keras.KerasTensor((*query[:-1], self.output_dim), self.compute_dtype)
        if not self.return_attention_scores:
            return output
        length, caches = key[1], kwargs.get("caches")
        if caches is not None:
            cached = caches[0].shape[1]
            length = None if None in (length, cached) else length + cached
        scores = (query[0], self.num_heads, query[1], length)
        return [output, keras.KerasTensor(scores, "float32")]

    def compute_mask(self, inputs, previous_mask=None):
        mask = previous_mask and previous_mask[0]
        return [mask, None] if self.return_attention_scores else mask

    def get_config(self):
        return {
            **keras.layers.Layer.get_config(self),
            **self._arguments,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def after_real(cache, mask):
    """A mask (batch, ..., key), put behind the keys of a cache (batch, cached, dim), all real."""
    real = ops.ones_like(cache[..., 0], dtype="bool")
    for _ in range(len(mask.shape) - 2):
        real = real[:, None]
    shape = (*ops.shape(mask)[:-1], ops.shape(cache)[1])
    return ops.concatenate([ops.broadcast_to(real, shape), mask], axis=-1)
