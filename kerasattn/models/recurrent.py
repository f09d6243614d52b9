"""What recurrent encoder-decoders share, from Cho's to Luong's: an encoder, and how they write."""

import keras
from keras import ops

from kerasattn import layers
from kerasattn.layers.recurrent_decoder import recurrent_cell
from kerasattn.models.encoder_decoder import EncoderDecoder, pair_inputs
from kerasattn.models.settings import check_settings
from kerasattn.models.steps import keep_weights
from kerasattn.ops import seeds


class RecurrentEncoderDecoder(EncoderDecoder):
    """A recurrent network that reads one text, and another that writes a text step by step.

    A subclass makes its layers, and of them functions, and calls `_assemble`:

        read(token_ids, real): what the encoder makes of a text: the hidden vectors (batch, length,
            dim), the decoder's first states, and the `values` that each step looks at, or None;
        embed(decoder_token_ids): what the decoder is fed (batch, length, dim);
        tell(told, x): of what the decoder tells and of what it was fed, that of which the head
            makes logits (batch, length, dim);

    beside `decoder`, a `RecurrentDecoder`, and `head`.
    """

    _recurrent = True

    def _assemble(self, config, policy, read, embed, decoder, tell, head, name):
        inputs, real, _ = pair_inputs(config["pad_id"])
        context, states, values = read(inputs["token_ids"], real)
        x = embed(inputs["decoder_token_ids"])  # (batch, decoder length, embedding)
        looks = decoder.attention is not None
        told = decoder(x, states, values, real if looks else None)
        hidden = tell(told, x)  # (batch, decoder length, hidden)
        outputs = {"hidden": hidden, "encoder_hidden": context, "lm_logits": head(hidden)}
        super().__init__(inputs, outputs, name=name)

        self._keep(
            config,
            policy,
            [context, hidden],
            read=read,
            embed=embed,
            decoder=decoder,
            tell=tell,
            finish=head,
        )
        if looks:
            self._attention = {"cross_attention": [told["weights"][:, None]]}

    # === Writing ===
    def initial_state(self, inputs, max_new_tokens):
        """The decoder's states, and what every step looks at.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, length).
            max_new_tokens: int; no room is needed for them.
        """
        parts, real = self._parts, inputs["padding_mask"]
        _, states, values = parts.read(inputs["token_ids"], real)
        return {
            "states": parts.decoder.first(states),
            "memory": parts.decoder.remember(values, real),
        }

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, what the head made them of (batch, hidden), the state)."""
        parts = self._parts
        x = parts.embed(token_ids[:, None])  # (batch, 1, embedding)
        place = ops.cast(ops.reshape(index, (1, 1)), "float32")
        told, states = parts.decoder.step(x[:, 0], state["states"], state["memory"], place)
        if attention is not None and "weights" in told:
            keep_weights(attention, "cross_attention", told["weights"][:, None, None])
        hidden = parts.tell({name: told[name][:, None] for name in told}, x)  # (batch, 1, hidden)
        return parts.finish(hidden)[:, 0], hidden[:, 0], {**state, "states": states}

    def reorder(self, state, rows):
        """The state of other beams of the same texts: what was read is the same for all."""
        return {**state, "states": [ops.take(leaf, rows, axis=0) for leaf in state["states"]]}


class RecurrentParts:
    """Makes the layers of recurrent encoder-decoders, with the settings of the constructor.

    Args:
        config: dict of the arguments of the model's constructor.
        initializer: function without arguments that makes the initializer of kernels.
    """

    def __init__(self, config, initializer):
        check_settings(config)
        self.config = config
        self.policy = keras.dtype_policies.get(config["dtype"] or keras.config.dtype_policy())
        self.initializer = initializer

    def table(self, name, size=None):
        """A vector for each token."""
        return layers.TokenEmbedding(
            size or self.config["vocabulary_size"],
            self.config["embedding_dim"],
            embeddings_initializer=self.initializer(),
            dtype=self.policy,
            name=name,
        )

    def dense(self, units, name, **options):
        return keras.layers.Dense(
            units, kernel_initializer=self.initializer(), dtype=self.policy, name=name, **options
        )

    def dropout(self, name):
        seed = seeds.child(self.config["seed"], name)
        return keras.layers.Dropout(self.config["dropout"], seed=seed, dtype=self.policy, name=name)

    def decoder(self, **options):
        config = self.config
        return layers.RecurrentDecoder(
            config["hidden_dim"],
            kernel_initializer=self.initializer(),
            dtype=self.policy,
            name="decoder",
            **options,
        )

    def head(self, use_bias=True):
        """Logits from a kernel of their own."""
        return layers.LanguageModelHead(
            vocabulary_size=self.config["vocabulary_size"],
            use_bias=use_bias,
            kernel_initializer=self.initializer(),
            dtype=self.policy,
            name="head",
        )

    def reader(self, cell, name, go_backwards=False):
        """One recurrent layer: called as reader(x, real), the hidden vectors and the last states.

        Padding changes no state. A layer that goes backwards has its vectors in the text's order.
        """
        recurrent = keras.layers.RNN(
            recurrent_cell(
                cell, self.config["hidden_dim"], self.initializer(), dtype=self.policy, name="cell"
            ),
            return_sequences=True,
            return_state=True,
            go_backwards=go_backwards,
            dtype=self.policy,
            name=name,
        )

        def read(x, real):
            hidden, *states = recurrent(x, mask=real)
            return (ops.flip(hidden, axis=1) if go_backwards else hidden), states

        return read

    def deep_reader(self, cell, reverse):
        """All layers, one above the other: called as the reader of one, with the states of all.

        Args:
            cell: str, see `RecurrentDecoder`.
            reverse: bool, whether the text is read from its end.
        """
        count = self.config["num_layers"]
        readers = [self.reader(cell, f"encoder_{i}", reverse) for i in range(count)]
        drops = [self.dropout(f"encoder_dropout_{i}") for i in range(count)]

        def read(x, real):
            states = []
            for reader, drop in zip(readers, drops, strict=True):
                x, last = reader(x, real)
                x = drop(x)
                states += last
            return x, states

        return read
