import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.recurrent import RecurrentEncoderDecoder, RecurrentParts

ATTENTIONS = {"global": None, "local-m": "monotonic", "local-p": "predictive"}


@keras.saving.register_keras_serializable(package="kerasattn")
class Luong(RecurrentEncoderDecoder):
    """Deep LSTMs, of which the one that writes attends to the text after each step.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers: int, of each LSTM.
        hidden_dim: int, of each layer and of the attentional vectors.
        embedding_dim: int, of the tokens' vectors.
        cell: "lstm", "peephole_lstm" or "gru".
        attention: "global"; "local-m", within a window around the decoder's own place; "local-p",
            around a place that it predicts: see `LocalAttention`.
        score: of `SoftAttention`: "dot", "bilinear" (the paper's general), "concat", "location", or
            another.
        window: int >= 1, of the local ones: they look at 2 window + 1 tokens.
        max_source_length: int >= 1, the longest text, needed for the score "location" alone.
        readout: "tanh", logits are made of tanh(W [context; hidden]); "plain", of [context; hidden]
            as they are.
        input_feeding: bool, whether the decoder reads beside each token the attentional vector of
            the step before; with the readout "tanh" alone.
        reverse_input: bool, whether the text is read from its end. Places are those of the text.
        dropout: float in [0, 1), of the tokens' vectors and of what layers hand on.
        initializer_range: float > 0, kernels start uniform within it; None for Glorot's uniform
            one. Recurrent ones are orthogonal.
        share_embeddings, pad_id, start_id, end_id, seed: as `RNNEncoderDecoder`.

    Inputs, outputs: as `RNNEncoderDecoder`; `hidden` is (batch, decoder length, hidden_dim), or
        twice as wide with the readout "plain".

    Raises:
        ValueError: for another attention or readout, numbers that no model can be built of, texts
            longer than max_source_length, or bad inputs.

    Example:
    >>> from kerasattn.models import Luong
    >>> model = Luong(30, num_layers=2, hidden_dim=8, embedding_dim=4, attention="local-p")
    >>> inputs = {"token_ids": [[7, 8, 2]], "decoder_token_ids": [[1, 9]]}
    >>> model.attention_weights(inputs)["cross_attention"].shape
    (1, 1, 1, 2, 3)

    Source: https://arxiv.org/abs/1508.04025 (Luong, Pham, Manning 2015), sections 3 and 4.1.
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers=4,
        hidden_dim=1000,
        embedding_dim=1000,
        cell="lstm",
        attention="global",
        score="bilinear",
        window=10,
        max_source_length=None,
        readout="tanh",
        input_feeding=True,
        reverse_input=True,
        dropout=0.2,
        initializer_range=0.1,
        share_embeddings=False,
        pad_id=0,
        start_id=1,
        end_id=2,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        if attention not in ATTENTIONS:
            raise ValueError(f"attention must be one of {tuple(ATTENTIONS)}, got {attention!r}.")
        if readout not in ("tanh", "plain"):
            raise ValueError(f'readout is "tanh" or "plain", got {readout!r}.')

        def initializer():
            if initializer_range is None:
                return keras.initializers.GlorotUniform()
            return keras.initializers.RandomUniform(-initializer_range, initializer_range)

        # === Layers ===
        make = RecurrentParts(config, initializer)
        table = make.table("token_embedding")
        decoder_table = table if share_embeddings else make.table("decoder_token_embedding")
        drop = make.dropout("embedding_dropout")
        reader = make.deep_reader(cell, reverse_input)
        options = dict(
            max_length=max_source_length,
            kernel_initializer=initializer(),
            dtype=make.policy,
            name="attention",
        )
        if attention == "global":
            looking = layers.SoftAttention(score, **options)
        else:
            looking = layers.LocalAttention(score, ATTENTIONS[attention], window, **options)
        decoder = make.decoder(
            num_layers=num_layers,
            cell=cell,
            attention=looking,
            readout_dim=hidden_dim if readout == "tanh" else None,
            input_feeding=input_feeding,
            dropout=dropout,
            seed=seed,
        )
        head = make.head()

        # === Parts ===
        def read(token_ids, real):
            hidden, states = reader(drop(table(token_ids)), real)  # (batch, length, hidden)
            return hidden, states, hidden

        def embed(token_ids):
            return drop(decoder_table(token_ids))

        def tell(told, x):
            if readout == "tanh":  # made within the step, which may be fed with it
                return told["hidden"]
            return ops.concatenate([told["context"], told["hidden"]], axis=-1)

        self._assemble(config, make.policy, read, embed, decoder, tell, head, name)
        self.max_source_length = max_source_length
