"""What all models of bert4keras share: how they are put together, layer by named layer.

A model is a builder: it makes each layer once by `apply`, under bert4keras' name, and runs
`apply_embeddings`, `apply_main_layers` for every layer, and `apply_final_layers` over its inputs. A
subclass that overrides one of them is another model.
"""

import inspect

import keras

from kerasattn.compat.bert4keras.attention import MultiHeadAttention
from kerasattn.compat.bert4keras.backend import get_activation
from kerasattn.compat.bert4keras.checkpoints import Checkpoints
from kerasattn.compat.bert4keras.checks import check_compound, check_kept, check_sizes
from kerasattn.compat.bert4keras.normalization import LayerNormalization
from kerasattn.compat.bert4keras.transformer_layers import (
    AttentionBias,
    FeedForward,
    Sum,
)


class Transformer(Checkpoints):
    """Builds a model of bert4keras, of which `model` is the `keras.Model`.

    Args:
        vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size: int.
        hidden_act: name of the activation, or a list of them for gated feed-forward parts.
        dropout_rate, attention_dropout_rate: float in [0, 1), or None.
        embedding_size: int, width of the embeddings, by default hidden_size.
        attention_head_size: int, by default hidden_size / num_attention_heads.
        attention_key_size: int, width of a head's queries and keys, by default that of its values.
        sequence_length: int, the length of all inputs, or None for any.
        keep_tokens: ids of the checkpoint's tokens that are kept, in their new order.
        compound_tokens: for each further token the ids, after `keep_tokens`, whose mean its vector
            is, or a tuple of ids and weights.
        residual_attention_scores: True adds the scores of each layer to those of the next;
            "accumulate" adds all of those below (RealFormer).
        ignore_invalid_weights: bool, whether a checkpoint may lack tensors.
        autoresize_weights: bool, whether tensors of another shape are cut or repeated to fit.
        layers: dict of layers by name, to be shared with another model.
        prefix: str before the name of each layer.
        name: str, of the model.

    Attributes:
        model, inputs, outputs, input, output: as those of a `keras.Model`, once built.
        layers: dict of layers by name.
    """

    application = "encoder"  # "lm" and "unilm" see less, see `AttentionBias`
    norm_options = {}  # of every `LayerNormalization`
    has_conditions = True  # whether norms depend on a condition, if there is one
    attention_options = {}  # of every `MultiHeadAttention`
    feed_forward_options = {}
    p_bias = None  # the kind of positions that attention gets

    def __init__(
        self,
        vocab_size,
        hidden_size,
        num_hidden_layers,
        num_attention_heads,
        intermediate_size,
        hidden_act,
        dropout_rate=None,
        attention_dropout_rate=None,
        embedding_size=None,
        attention_head_size=None,
        attention_key_size=None,
        sequence_length=None,
        keep_tokens=None,
        compound_tokens=None,
        residual_attention_scores=False,
        ignore_invalid_weights=False,
        autoresize_weights=False,
        layers=None,
        prefix=None,
        name=None,
        **kwargs,
    ):
        given = dict(locals())
        check_sizes(**{name: given[name] for name in given.keys() - {"self", "kwargs"}})
        if keep_tokens is not None:
            check_kept(keep_tokens)
            vocab_size = len(keep_tokens)
        if compound_tokens is not None:
            check_compound(compound_tokens)
        self.vocab_size = vocab_size + len(compound_tokens or ())
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.intermediate_size = intermediate_size
        several = isinstance(hidden_act, (list, tuple))
        self.hidden_act = (
            [*map(get_activation, hidden_act)] if several else get_activation(hidden_act)
        )
        self.dropout_rate = dropout_rate or 0
        self.attention_dropout_rate = attention_dropout_rate or 0
        self.embedding_size = embedding_size or hidden_size
        self.attention_head_size = attention_head_size or hidden_size // num_attention_heads
        self.attention_key_size = attention_key_size or self.attention_head_size
        self.sequence_length = sequence_length
        self.keep_tokens = keep_tokens
        self.compound_tokens = compound_tokens
        self.residual_attention_scores = residual_attention_scores
        self.ignore_invalid_weights = ignore_invalid_weights
        self.autoresize_weights = autoresize_weights
        self.layers = {} if layers is None else layers
        self.prefix = prefix or ""
        self.name = name
        self.attention_caches = {}
        self.layer_norm_conds = [None, None, "linear"]
        self.model = None
        self.start(())

    # === Building ===
    def build(
        self,
        attention_caches=None,
        layer_norm_cond=None,
        layer_norm_cond_hidden_size=None,
        layer_norm_cond_hidden_act=None,
        additional_input_layers=None,
        **kwargs,
    ):
        """Makes `model`, once.

        Args:
            attention_caches: dict from names of attentions to pairs of symbolic vectors (batch,
                cached, hidden_size), which stand before the keys and before the values.
            layer_norm_cond: symbolic (batch, dim), a condition that every norm depends on.
            layer_norm_cond_hidden_size: int, width of a dense layer that it passes first.
            layer_norm_cond_hidden_act: activation of that layer.
            additional_input_layers: further inputs of the model, or a list of them.
        """
        if self.model is not None:
            return
        inputs = self.get_inputs()
        self.inputs = as_list(inputs) + as_list(additional_input_layers)
        self.attention_caches = attention_caches or {}
        self.layer_norm_conds = [
            layer_norm_cond,
            layer_norm_cond_hidden_size,
            layer_norm_cond_hidden_act or "linear",
        ]
        self.outputs = as_list(self.call(inputs))
        self.finish()

    def finish(self):
        """The `keras.Model` of the inputs and outputs; a lone one of either stands for itself."""
        self.input, self.output = one_or_all(self.inputs), one_or_all(self.outputs)
        self.model = keras.Model(self.input, self.output, name=self.name)

    def call(self, inputs):
        """Runs all layers over inputs: the outputs."""
        self.start(inputs)
        x = self.apply_embeddings(inputs)
        for i in range(self.num_hidden_layers):
            x = self.apply_main_layers(x, i)
        return self.apply_final_layers(x)

    def start(self, inputs):
        """Forgets what follows from inputs given before."""
        self.given = as_list(inputs)
        self.attention_bias = self.position_bias = None
        self.attention_scores = {}  # of the last layer, by the end of its name

    def prefixed(self, name):
        """The full name of a layer."""
        return None if name is None else self.prefix + name

    def apply(self, inputs=None, layer=None, arguments=None, **kwargs):
        """Calls the layer of a name, which is made if there is none yet.

        Args:
            inputs: of the layer; None returns the layer itself.
            layer: its class. A `Dropout` of rate 0 is left out.
            arguments: dict of further arguments of the call.
            **kwargs: of the class, `name` among them.
        """
        if layer is keras.layers.Dropout and not kwargs.get("rate", self.dropout_rate):
            return inputs
        if layer is keras.layers.Add:
            layer = Sum  # Keras 3 has no mask where one of two tensors has none
        if layer is MultiHeadAttention and self.residual_attention_scores:
            kwargs["return_attention_scores"] = True
            kwargs["accumulate_scores"] = self.residual_attention_scores == "accumulate"
        arguments = dict(arguments or {})
        if layer is keras.layers.Lambda:
            kwargs["arguments"], arguments = arguments, {}
        name = self.prefixed(kwargs.pop("name", None))
        if name not in self.layers:
            kwargs = {
                key: FunctionInitializer(value)
                if key.endswith("initializer") and inspect.ismethod(value)
                else value
                for key, value in kwargs.items()
            }
            made = layer(name=name, **kwargs)
            name = made.name
            self.layers[name] = made
        made = self.layers[name]
        if inputs is None:
            return made
        if name in self.attention_caches:
            arguments["caches"] = list(self.attention_caches[name])
        if isinstance(made, MultiHeadAttention) and made.return_attention_scores:
            kind = name.rpartition("-")[2]  # of self- and cross-attention there are two
            if kind in self.attention_scores:
                arguments["previous_scores"] = self.attention_scores[kind]
            output, self.attention_scores[kind] = made(inputs, **arguments)
            return output
        return made(inputs, **arguments)

    # === What a family says ===
    def get_inputs(self):
        """The inputs of the model, a list or a lone one."""
        raise NotImplementedError(f"{type(self).__name__} does not say its inputs.")

    def apply_embeddings(self, inputs):
        """From the inputs to the vectors that the first layer reads."""
        raise NotImplementedError(f"{type(self).__name__} does not say its embeddings.")

    def apply_main_layers(self, inputs, index):
        """Layer `index`."""
        raise NotImplementedError(f"{type(self).__name__} does not say its layers.")

    def apply_final_layers(self, inputs):
        """From the vectors of the last layer to the outputs, one or a list."""
        raise NotImplementedError(f"{type(self).__name__} does not say its outputs.")

    def compute_attention_bias(self, inputs=None):
        """What may be attended to: bool (batch, 1 or length, length); the same for all layers."""
        return self.attention_bias

    def compute_position_bias(self, inputs=None):
        """What attention is told of positions; the same for all layers."""
        return self.position_bias

    # === Parts ===
    def simplify(self, inputs):
        """What is not None of a list: one thing, or a list."""
        return one_or_all([x for x in inputs if x is not None])

    @property
    def initializer(self):
        """Of kernels and tables. A new one each time: one object would give equal kernels."""
        return keras.initializers.TruncatedNormal(stddev=0.02)

    def input_ids(self, name):
        """An input of ids (batch, length)."""
        return self.apply(
            layer=keras.Input, shape=(self.sequence_length,), dtype="int32", name=name
        )

    def attention_mask(self, name, token_ids, segment_ids=None, **options):
        """The layer `AttentionBias` of a name, over ids; options are its arguments."""
        more = {} if segment_ids is None else {"segment_ids": segment_ids}
        return self.apply(token_ids, AttentionBias, more, **options, name=name)

    def norm(self, x, name, **options):
        """`LayerNormalization`, which depends on the condition if there is one."""
        condition, units, activation = self.layer_norm_conds
        options = {**self.norm_options, **options}
        if condition is not None and self.has_conditions:
            x = [x, condition]
            options |= dict(
                conditional=True,
                hidden_units=units,
                hidden_activation=activation,
                hidden_initializer=self.initializer,
            )
        return self.apply(x, LayerNormalization, **options, name=name)

    def dropout(self, x, name):
        """Dropout at the model's rate."""
        return self.apply(x, keras.layers.Dropout, rate=self.dropout_rate, name=name)

    def dense(self, x, units, name, **options):
        """A dense layer."""
        return self.apply(
            x,
            keras.layers.Dense,
            units=units,
            kernel_initializer=self.initializer,
            **options,
            name=name,
        )

    def add(self, x, y, name):
        """What a part made of x, through dropout, added to x."""
        return self.apply([x, self.dropout(y, f"{name}-Dropout")], Sum, name=f"{name}-Add")

    def attend(self, x, name, context=None, mask=None, positions=None):
        """Multi-head attention from x to itself or to a context.

        Args:
            x: (batch, length, hidden_size).
            name: str, of the layer.
            context: (batch, context, hidden_size), by default x.
            mask: as of `compute_attention_bias`, or None.
            positions: as of `compute_position_bias`, a tensor or a list; None for none.
        """
        context = x if context is None else context
        inputs, arguments = [x, context, context], {}
        if mask is not None:
            inputs.append(mask)
            arguments["a_bias"] = True
        if positions is not None:
            inputs += as_list(positions)
            arguments["p_bias"] = self.p_bias
        return self.apply(
            inputs,
            MultiHeadAttention,
            arguments,
            heads=self.num_attention_heads,
            head_size=self.attention_head_size,
            out_dim=self.hidden_size,
            key_size=self.attention_key_size,
            attention_dropout=self.attention_dropout_rate,
            kernel_initializer=self.initializer,
            **self.attention_options,
            name=name,
        )

    def feed_forward(self, x, name):
        """The feed-forward part."""
        return self.apply(
            x,
            FeedForward,
            units=self.intermediate_size,
            activation=self.hidden_act,
            kernel_initializer=self.initializer,
            **self.feed_forward_options,
            name=name,
        )


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class FunctionInitializer(keras.initializers.Initializer):
    """An initializer that is a model's method `initializer(shape, dtype=None)`.

    It is saved without the method: what is saved has its weights.
    """

    def __init__(self, function=None):
        self.function = function or keras.initializers.TruncatedNormal(stddev=0.02)

    def __call__(self, shape, dtype=None):
        return self.function(shape, dtype=dtype)

    def clone(self):
        """Itself, which has no seed."""
        return self

    def get_config(self):
        return {}


def as_list(x):
    """A list of what is one thing, several, or None."""
    if x is None:
        return []
    return list(x) if isinstance(x, (list, tuple)) else [x]


def one_or_all(x):
    """The only element of a list, or the list."""
    return x[0] if len(x) == 1 else list(x)
