import keras

from kerasattn.models.recurrent import RecurrentEncoderDecoder, RecurrentParts


@keras.saving.register_keras_serializable(package="kerasattn")
class Sutskever(RecurrentEncoderDecoder):
    """A deep LSTM that reads a text from its end, and another that goes on from its states.

    All that the decoder knows of the text are the encoder's last states, layer by layer.

    Args:
        vocabulary_size: int, number of tokens.
        num_layers: int, of each LSTM.
        hidden_dim: int, of each layer.
        embedding_dim: int, of the tokens' vectors.
        cell: "lstm", "peephole_lstm" or "gru".
        reverse_input: bool, whether the text is read from its end, so that its first words are the
            last ones read and near to where they are told.
        dropout: float in [0, 1), of the tokens' vectors and of what layers hand on.
        initializer_range: float > 0, kernels start uniform within it; None for Glorot's uniform
            one. Recurrent ones are orthogonal.
        share_embeddings, pad_id, start_id, end_id, seed: as `RNNEncoderDecoder`.

    Inputs, outputs: as `RNNEncoderDecoder`; `hidden` is (batch, decoder length, hidden_dim).

    Raises:
        ValueError: for numbers that no model can be built of, or bad inputs.

    Example:
    >>> from kerasattn.models import Sutskever
    >>> model = Sutskever(30, num_layers=2, hidden_dim=8, embedding_dim=4)
    >>> outputs = model({"token_ids": [[7, 8, 2]], "decoder_token_ids": [[1, 9]]})
    >>> tuple(outputs["lm_logits"].shape)  # model.generate([[7, 8, 2]]) writes
    (1, 2, 30)

    Source: https://arxiv.org/abs/1409.3215 (Sutskever, Vinyals, Le 2014), sections 2 and 3.
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers=4,
        hidden_dim=1000,
        embedding_dim=1000,
        cell="lstm",
        reverse_input=True,
        dropout=0.0,
        initializer_range=0.08,
        share_embeddings=False,
        pad_id=0,
        start_id=1,
        end_id=2,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}

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
        decoder = make.decoder(num_layers=num_layers, cell=cell, dropout=dropout, seed=seed)
        head = make.head()

        # === Parts ===
        def read(token_ids, real):
            hidden, states = reader(drop(table(token_ids)), real)  # (batch, length, hidden)
            return hidden, states, None

        def embed(token_ids):
            return drop(decoder_table(token_ids))

        def tell(told, x):
            return told["hidden"]

        self._assemble(config, make.policy, read, embed, decoder, tell, head, name)
