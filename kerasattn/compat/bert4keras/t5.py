"""bert4keras' T5: the encoder, the decoder, and both."""

import keras

from kerasattn import layers
from kerasattn.compat.bert4keras.normalization import ScaleOffset
from kerasattn.compat.bert4keras.transformer import Transformer, as_list
from kerasattn.compat.bert4keras.transformer_layers import Embedding

VERSIONS = ("t5.1.0", "t5.1.1", "mt5.1.1")


class T5_Base(Transformer):
    """What the encoder and the decoder share: pre-norm layers without biases.

    Args:
        version: "t5.1.0", "t5.1.1" or "mt5.1.1".
        **kwargs: of `Transformer`.
    """

    p_bias = "t5_relative"
    norm_options = dict(zero_mean=False, offset=False, epsilon=1e-6)
    attention_options = dict(use_bias=False, attention_scale=False)
    feed_forward_options = dict(use_bias=False)
    stack = None  # "Encoder" or "Decoder"

    def __init__(self, version="t5.1.0", **kwargs):
        super().__init__(**kwargs)
        if version not in VERSIONS:
            raise ValueError(f"version is one of {VERSIONS}, got {version!r}.")
        self.version = version

    def embed(self, token_ids):
        """The vectors of tokens, as wide as the layers."""
        x = self.apply(
            token_ids,
            Embedding,
            input_dim=self.vocab_size,
            output_dim=self.embedding_size,
            embeddings_initializer=self.initializer,
            mask_zero=True,
            name="Embedding-Token",
        )
        x = self.dropout(x, f"{self.stack}-Embedding-Dropout")
        if self.embedding_size != self.hidden_size:
            x = self.dense(x, self.hidden_size, f"{self.stack}-Embedding-Mapping")
        return x

    def distances(self, x, key=None):
        """The bias of all distances from x to a key, by default itself."""
        return self.apply(
            x,
            layers.RelativePositionBias,
            {} if key is None else {"key": key},
            num_heads=self.num_attention_heads,
            bidirectional=self.stack == "Encoder",
            embeddings_initializer=self.initializer,
            name=f"{self.stack}-Embedding-Relative-Position",
        )

    def pre_norm(self, x, name, part):
        """A part over the norm of x, added to x."""
        return self.add(x, part(self.norm(x, f"{name}-Norm"), name), name)

    def finish_stack(self, x):
        """The norm after the last layer."""
        x = self.norm(x, f"{self.stack}-Output-Norm")
        return self.dropout(x, f"{self.stack}-Output-Dropout")

    # === Weights ===
    def load_variable(self, checkpoint, name):
        value = super().load_variable(checkpoint, name)
        if name == "shared/embedding":
            return self.load_embeddings(value)
        if name == "decoder/logits/kernel":
            return self.load_embeddings(value.T).T
        return value

    def variable_mapping(self):
        gated = self.version != "t5.1.0"
        mapping = {"Embedding-Token": ["shared/embedding"]}
        if gated:
            mapping["Decoder-Output-LM"] = ["decoder/logits/kernel"]
        for stack, parts in (
            ("Encoder", ("SelfAttention",)),
            ("Decoder", ("SelfAttention", "EncDecAttention")),
        ):
            theirs = stack.lower()
            mapping[f"{stack}-Embedding-Relative-Position"] = [
                f"{theirs}/block_000/layer_000/SelfAttention/relative_attention_bias"
            ]
            mapping[f"{stack}-Output-Norm"] = [f"{theirs}/final_layer_norm/scale"]
            for i in range(self.num_hidden_layers):
                block = f"{theirs}/block_{i:03}"
                for number, part in enumerate(parts):
                    kind = part.replace("EncDec", "Cross")
                    ours = f"{stack}-Transformer-{i}-MultiHead{kind}"
                    prefix = f"{block}/layer_{number:03}"
                    mapping[ours] = [f"{prefix}/{part}/{letter}" for letter in "qkvo"]
                    mapping[f"{ours}-Norm"] = [f"{prefix}/layer_norm/scale"]
                ours, prefix = (
                    f"{stack}-Transformer-{i}-FeedForward",
                    f"{block}/layer_{len(parts):03}",
                )
                kernels = ("wi_0", "wi_1", "wo") if gated else ("wi", "wo")
                mapping[ours] = [f"{prefix}/DenseReluDense/{k}/kernel" for k in kernels]
                mapping[f"{ours}-Norm"] = [f"{prefix}/layer_norm/scale"]
        if self.version == "mt5.1.1":
            mapping = {
                layer: [
                    name.replace("final_layer_norm", "rms_norm").replace("layer_norm", "rms_norm")
                    for name in names
                ]
                for layer, names in mapping.items()
            }
        return mapping


class T5_Encoder(T5_Base):
    """T5's encoder. Its input is the token ids; args as `T5_Base`."""

    stack = "Encoder"

    def get_inputs(self):
        """The token ids."""
        return self.input_ids("Encoder-Input-Token")

    def apply_embeddings(self, inputs):
        self.start(inputs)
        return self.embed(inputs)

    def compute_attention_bias(self, inputs=None):
        if self.attention_bias is None and self.given:
            self.attention_bias = self.attention_mask("Encoder-Attention-Mask", self.given[0])
        return self.attention_bias

    def compute_position_bias(self, inputs=None):
        if self.position_bias is None:
            self.position_bias = self.distances(inputs)
        return self.position_bias

    def apply_main_layers(self, inputs, index):
        prefix = f"Encoder-Transformer-{index}"
        mask, positions = self.compute_attention_bias(index), self.compute_position_bias(inputs)

        def attention(x, name):
            return self.attend(x, name, mask=mask, positions=positions)

        x = self.pre_norm(inputs, f"{prefix}-MultiHeadSelfAttention", attention)
        return self.pre_norm(x, f"{prefix}-FeedForward", self.feed_forward)

    def apply_final_layers(self, inputs):
        return self.finish_stack(inputs)


class T5_Decoder(T5_Base):
    """T5's decoder. Its inputs are the encoder's vectors and the token ids.

    Args:
        with_lm: whether the probabilities of tokens are the output; a str is their activation,
            True is "softmax".
        cross_position_bias: bool, whether attention to the context has the bias of distances, as
            in bert4keras. T5's own checkpoints were trained without.
        scale_output: bool, whether vectors are divided by the root of their width before the
            logits also where these have a kernel of their own, as in bert4keras.
        context_mask: bool, whether a third input tells which vectors of the context are real;
            bool (batch, context). Without, all are.
        **kwargs: of `T5_Base`.
    """

    stack = "Decoder"

    def __init__(
        self,
        with_lm=True,
        cross_position_bias=True,
        scale_output=True,
        context_mask=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.with_lm = with_lm
        self.cross_position_bias = cross_position_bias
        self.scale_output = scale_output
        self.context_mask = context_mask

    def get_inputs(self):
        """The context, the token ids, and the context's mask if it is asked for."""
        length = self.sequence_length
        context = self.apply(
            layer=keras.Input, shape=(length, self.hidden_size), name="Input-Context"
        )
        inputs = [context, self.input_ids("Decoder-Input-Token")]
        if self.context_mask:
            inputs.append(
                self.apply(
                    layer=keras.Input, shape=(length,), dtype="bool", name="Input-Context-Mask"
                )
            )
        return inputs

    def apply_embeddings(self, inputs):
        self.start(inputs)
        context, token_ids, *mask = as_list(inputs)
        self.context_bias = mask[0] if mask else None
        if mask and len(mask[0].shape) == 2:
            self.context_bias = keras.ops.expand_dims(mask[0], 1)  # (batch, 1, context)
        return [context, self.embed(token_ids)]

    def compute_attention_bias(self, inputs=None):
        if self.attention_bias is None and self.given:
            self.attention_bias = self.attention_mask(
                "Attention-LM-Mask", self.given[1], application="lm"
            )
        return self.attention_bias

    def compute_position_bias(self, inputs=None):
        """The bias of distances from x to x and, if it is asked for, to the context."""
        if self.position_bias is None:
            x, context = inputs
            own = self.distances(x)
            cross = self.distances(x, context) if self.cross_position_bias else None
            self.position_bias = (own, cross)
        return self.position_bias

    def apply_main_layers(self, inputs, index):
        context, x = inputs
        prefix = f"Decoder-Transformer-{index}"
        mask, positions = (
            self.compute_attention_bias(index),
            self.compute_position_bias([x, context]),
        )

        def self_attention(x, name):
            return self.attend(x, name, mask=mask, positions=positions[0])

        def cross_attention(x, name):
            return self.attend(x, name, context, self.context_bias, positions[1])

        x = self.pre_norm(x, f"{prefix}-MultiHeadSelfAttention", self_attention)
        x = self.pre_norm(x, f"{prefix}-MultiHeadCrossAttention", cross_attention)
        return [context, self.pre_norm(x, f"{prefix}-FeedForward", self.feed_forward)]

    def apply_final_layers(self, inputs):
        x = self.finish_stack(inputs[1])
        tied = self.version == "t5.1.0"
        if tied or self.scale_output:
            x = self.apply(
                x,
                ScaleOffset,
                scale=self.hidden_size**-0.5,
                offset=False,
                name="Decoder-Output-Scale",
            )
        if not self.with_lm:
            return x
        if self.embedding_size != self.hidden_size:
            x = self.dense(x, self.embedding_size, "Decoder-Output-Mapping")
        activation = "softmax" if self.with_lm is True else self.with_lm
        if tied:
            x = self.apply(x, Embedding, {"mode": "dense"}, name="Embedding-Token")
            return self.apply(
                x,
                keras.layers.Activation,
                activation=activation,
                dtype="float32",
                name="Decoder-Output-LM-Activation",
            )
        return self.dense(
            x,
            self.vocab_size,
            "Decoder-Output-LM",
            activation=activation,
            use_bias=False,
            dtype="float32",
        )


class T5(T5_Base):
    """T5's encoder and decoder, which are also models of their own, `encoder` and `decoder`.

    Args: as `T5_Decoder`.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        shared = {**kwargs, "layers": self.layers}
        prefix = f"{self.name}_" if self.name else ""
        self._encoder = T5_Encoder(**{**shared, "name": f"{prefix}Encoder"})
        self._decoder = T5_Decoder(**{**shared, "name": f"{prefix}Decoder"})

    def build(self, **kwargs):
        """Makes `encoder`, `decoder` and `model`; arguments as `Transformer.build`."""
        if self.model is not None:
            return
        self._encoder.build(**kwargs)
        self._decoder.build(**kwargs)
        self.layer_norm_conds = self._decoder.layer_norm_conds
        self.encoder, self.decoder = self._encoder.model, self._decoder.model
        token_ids = self._decoder.inputs[1]
        self.inputs = [*self._encoder.inputs, token_ids]  # those of a condition are the encoder's
        context_mask = self._encoder.compute_attention_bias()
        context = self._encoder.output
        self.outputs = as_list(self._decoder.call([context, token_ids, context_mask]))
        self.finish()
