import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.recurrent import RecurrentEncoderDecoder, RecurrentParts


@keras.saving.register_keras_serializable(package="kerasattn")
class Bahdanau(RecurrentEncoderDecoder):
    """GRUs that read a text both ways, and one that attends to it before each step (RNNsearch).

    Logits are made of the state after the step, as in the paper's equation 4. The GRUs reset their
    states before the product; Keras' update gate z is 1 - z of the paper's.

    Args:
        vocabulary_size: int, number of tokens.
        hidden_dim: int, of each of the three GRUs.
        embedding_dim: int, of the tokens' vectors.
        attention_dim: int, the width of v in the score v · tanh(W s + U h).
        readout_dim: int, maxout units of two pieces each, of which logits are made.
        dropout: float in [0, 1), of the tokens' vectors and of the readout.
        initializer_range: float > 0, standard deviation of the kernels at the start, a tenth of it
            of those of the attention; None for Glorot's uniform one. Recurrent ones are orthogonal.
        share_embeddings, pad_id, start_id, end_id, seed: as `RNNEncoderDecoder`.

    Inputs, outputs: as `RNNEncoderDecoder`; `encoder_hidden` is (batch, length, 2 hidden_dim), what
        the forward and the backward GRU make of each token.

    Raises:
        ValueError: for numbers that no model can be built of, or bad inputs.

    Example: where each step looked, of one layer and one head.

    >>> from kerasattn.models import Bahdanau
    >>> sizes = dict(hidden_dim=8, embedding_dim=4, attention_dim=8, readout_dim=6)
    >>> model = Bahdanau(30, **sizes)
    >>> inputs = {"token_ids": [[7, 8, 2]], "decoder_token_ids": [[1, 9]]}
    >>> model.attention_weights(inputs)["cross_attention"].shape
    (1, 1, 1, 2, 3)

    Source: https://arxiv.org/abs/1409.0473 (Bahdanau, Cho, Bengio 2015), section 3, appendix A.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim=1000,
        embedding_dim=620,
        attention_dim=1000,
        readout_dim=500,
        dropout=0.0,
        initializer_range=0.01,
        share_embeddings=False,
        pad_id=0,
        start_id=1,
        end_id=2,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}

        def initializer(share=1.0):
            if initializer_range is None:
                return keras.initializers.GlorotUniform()
            return keras.initializers.RandomNormal(stddev=share * initializer_range)

        # === Layers ===
        make = RecurrentParts(config, initializer)
        table = make.table("token_embedding")
        decoder_table = table if share_embeddings else make.table("decoder_token_embedding")
        drop = make.dropout("embedding_dropout")
        forward = make.reader("gru", "forward")
        backward = make.reader("gru", "backward", go_backwards=True)
        start = make.dense(hidden_dim, "start", activation="tanh")
        attention = layers.SoftAttention(
            "additive",
            attention_dim,
            kernel_initializer=initializer(0.1),
            dtype=make.policy,
            name="attention",
        )
        decoder = make.decoder(cell="gru", attention=attention, looks="before")
        readout = layers.Maxout(
            readout_dim, kernel_initializer=initializer(), dtype=make.policy, name="readout"
        )
        drop_readout = make.dropout("readout_dropout")
        head = make.head()

        # === Parts ===
        def read(token_ids, real):
            x = drop(table(token_ids))
            (left, _), (right, [first]) = forward(x, real), backward(x, real)
            hidden = ops.concatenate([left, right], axis=-1)  # (batch, length, 2 hidden)
            return hidden, [start(first)], hidden  # `first`: of the first token, which is read last

        def embed(token_ids):
            return drop(decoder_table(token_ids))

        def tell(told, x):
            seen = [told["hidden"], x, told["context"]]
            return drop_readout(readout(ops.concatenate(seen, axis=-1)))

        self._assemble(config, make.policy, read, embed, decoder, tell, head, name)
