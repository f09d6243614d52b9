import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.encoder_decoder import EncoderDecoder, pair_inputs
from kerasattn.models.settings import check_settings
from kerasattn.models.steps import keep_weights
from kerasattn.ops import masks, seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class ConvS2S(EncoderDecoder):
    """An encoder-decoder of gated convolutions, each of whose decoder layers attends to the text.

    Sums of two are multiplied by sqrt(0.5), so that they vary as one does. Of the paper it has
    neither the weight normalization nor the scaled gradients of the encoder.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers: int, of the encoder.
        num_decoder_layers: int, of the decoder; by default as the encoder's.
        hidden_dim: int, channels of the convolutions.
        embedding_dim: int, of tokens and positions; by default hidden_dim.
        kernel_size: int, odd, tokens that a convolution sees.
        max_length: int, positions of either text.
        dropout: float in [0, 1), of embeddings, of the convolutions' inputs and before the logits.
        share_embeddings, pad_id, start_id, end_id, seed: as `Transformer`; the logits have a kernel
            of their own.

    Inputs, outputs: as `Transformer`; `hidden` and `encoder_hidden` are embedding_dim wide.

    Raises:
        ValueError: for texts longer than max_length, numbers that no model can be built of, or bad
            inputs.

    Example:
    >>> from kerasattn.models import ConvS2S
    >>> model = ConvS2S(30, num_layers=2, hidden_dim=8, max_length=20)
    >>> outputs = model({"token_ids": [[7, 8, 2]], "decoder_token_ids": [[1, 9]]})
    >>> tuple(outputs["lm_logits"].shape), model.generate([[7, 8, 2]], max_new_tokens=3).shape
    ((1, 2, 30), (1, 3))

    Source: https://arxiv.org/abs/1705.03122 (Gehring et al. 2017), section 3; sizes of section 4.2,
    for English and Romanian.
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers=20,
        num_decoder_layers=None,
        hidden_dim=512,
        embedding_dim=None,
        kernel_size=3,
        max_length=1024,
        dropout=0.1,
        share_embeddings=False,
        pad_id=0,
        start_id=1,
        end_id=2,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding_dim = embedding_dim or hidden_dim

        # === Layers ===
        def normal():
            return keras.initializers.RandomNormal(stddev=0.1)

        def linear():
            return keras.initializers.VarianceScaling(1.0, "fan_in", "untruncated_normal")

        def table(name):
            return layers.TokenEmbedding(
                vocabulary_size,
                embedding_dim,
                embeddings_initializer=normal(),
                dtype=policy,
                name=name,
            )

        def positions(name):
            return layers.LearnedPositionEmbedding(
                max_length, embeddings_initializer=normal(), dtype=policy, name=name
            )

        def dense(units, name):
            return keras.layers.Dense(units, kernel_initializer=linear(), dtype=policy, name=name)

        def convolutions(name, count):
            return [
                layers.GatedConvolution(
                    hidden_dim,
                    kernel_size,
                    causal=name == "decoder",
                    dropout=dropout,
                    seed=seeds.child(seed, f"{name}_convolution_{i}"),
                    dtype=policy,
                    name=f"{name}_convolution_{i}",
                )
                for i in range(count)
            ]

        tables = {"encoder": table("token_embedding")}
        tables["decoder"] = (
            tables["encoder"] if share_embeddings else table("decoder_token_embedding")
        )
        places = {side: positions(f"{side}_position_embedding") for side in tables}
        enter = {side: dense(hidden_dim, f"{side}_enter") for side in tables}
        leave = {side: dense(embedding_dim, f"{side}_leave") for side in tables}
        drop = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "dropout"), dtype=policy, name="dropout"
        )
        halve = keras.layers.Rescaling(0.5**0.5, dtype=policy, name="halve")
        encoder = convolutions("encoder", num_layers)
        decoder = convolutions("decoder", num_decoder_layers or num_layers)
        attentions = [
            layers.MultiStepAttention(linear(), dtype=policy, name=f"attention_{i}")
            for i in range(len(decoder))
        ]
        head = layers.LanguageModelHead(
            vocabulary_size=vocabulary_size, kernel_initializer=linear(), dtype=policy, name="head"
        )

        # === Parts ===
        def embed(side, token_ids, position_ids):
            x = tables[side](token_ids)  # (batch, length, embedding)
            return drop(places[side](x, position_ids=position_ids))

        def read(token_ids, real):
            source = embed("encoder", token_ids, masks.positions(token_ids))
            hidden = [enter["encoder"](source)]  # each (batch, length, hidden)
            for convolution in encoder:
                x = convolution(hidden[-1], padding_mask=real)
                hidden.append(halve(x + hidden[-1]))
            return source, hidden, leave["encoder"](hidden[-1])

        def write(token_ids, position_ids, read, caches=None, attention=None):
            """The decoder's layers, and their last inputs where `caches` has those before."""
            target = embed("decoder", token_ids, position_ids)
            hidden, weights, after = [enter["decoder"](target)], [], []
            for i, (convolution, look) in enumerate(zip(decoder, attentions, strict=True)):
                x, before = hidden[-1], None
                if caches is not None:
                    before = caches[i]
                    after.append(ops.concatenate([before, x], axis=1)[:, 1:])
                x = convolution(x, before=before)
                context, looked = look(x, target, **read, return_weights=True)
                weights.append(looked)  # (batch, length, source length)
                x = halve(x + context)
                hidden.append(halve(x + hidden[-1]))
            return hidden, drop(leave["decoder"](hidden[-1])), weights, after

        # === Model ===
        inputs, real, _ = pair_inputs(pad_id)
        source, read_hidden, context = read(inputs["token_ids"], real)
        decoder_token_ids = inputs["decoder_token_ids"]
        hidden, told, weights, _ = write(
            decoder_token_ids,
            masks.positions(decoder_token_ids),
            dict(value=context, source=source, attention_mask=masks.keys(real)),
        )
        outputs = {"hidden": told, "encoder_hidden": context, "lm_logits": head(told)}
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep(
            config,
            policy,
            [*read_hidden, *hidden],
            read=read,
            write=write,
            attentions=attentions,
            finish=head,
        )
        self.max_positions = max_length
        self._attention = {"cross_attention": [x[:, None] for x in weights]}

    # === Writing ===
    def initial_state(self, inputs, max_new_tokens):
        """The keys and values of the text, and what stands before each convolution's inputs.

        Args:
            inputs: dict of `token_ids` and `padding_mask` (batch, length).
            max_new_tokens: int; no room is needed for them.
        """
        source, hidden, context = self._parts.read(inputs["token_ids"], inputs["padding_mask"])
        before = ops.zeros_like(hidden[0][:, :1])  # (batch, 1, hidden)
        before = ops.repeat(before, self._config["kernel_size"] - 1, axis=1)
        first = self._parts.attentions[0]
        return {
            "caches": [before for _ in self._parts.attentions],
            "context": list(first.project_key_value(context, source)),
            "real": inputs["padding_mask"],
        }

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, the token's last vector (batch, embedding), the state)."""
        looks = dict(cache=state["context"], attention_mask=masks.keys(state["real"]))
        position_ids = ops.reshape(index, (1, 1))
        _, told, weights, caches = self._parts.write(
            token_ids[:, None], position_ids, looks, state["caches"]
        )
        if attention is not None:
            for looked in weights:
                keep_weights(attention, "cross_attention", looked[:, None])
        return self._parts.finish(told)[:, 0], told[:, 0], {**state, "caches": caches}
