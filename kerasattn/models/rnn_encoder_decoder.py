import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.recurrent import RecurrentEncoderDecoder, RecurrentParts


@keras.saving.register_keras_serializable(package="kerasattn")
class RNNEncoderDecoder(RecurrentEncoderDecoder):
    """A GRU that reads a text into one vector, and a GRU that sees this vector at every step.

    The GRUs reset their states before the product, also in the decoder, where the paper does after
    it; and Keras' update gate z is 1 - z of the paper's.

    Args:
        vocabulary_size: int, number of tokens.
        hidden_dim: int, of the GRUs and of the vector.
        embedding_dim: int, of the tokens' vectors.
        readout_dim: int, maxout units of two pieces each, of which logits are made.
        dropout: float in [0, 1), of the tokens' vectors and of the readout.
        initializer_range: float > 0, standard deviation of the kernels at the start; None for
            Glorot's uniform one. Recurrent ones are orthogonal.
        share_embeddings: bool, whether both texts have one table of token vectors.
        pad_id, start_id, end_id: int, of padding, of what the decoder starts with, of the end.
        seed: int or None, of the dropouts.

    Inputs: a dict of `token_ids` (batch, length), which is read, and `decoder_token_ids` (batch,
        decoder length); `padding_mask` and `decoder_padding_mask`, True = real token. By default
        the first is token_ids != pad_id; the last changes nothing.

    Outputs: a dict of `hidden` (batch, decoder length, readout_dim), `lm_logits` (batch, decoder
        length, vocabulary_size) float32 and `encoder_hidden` (batch, length, hidden_dim).

    Raises:
        ValueError: for numbers that no model can be built of, or bad inputs.

    Example:
    >>> from kerasattn.models import RNNEncoderDecoder
    >>> model = RNNEncoderDecoder(30, hidden_dim=8, embedding_dim=4, readout_dim=6)
    >>> outputs = model({"token_ids": [[7, 8, 2]], "decoder_token_ids": [[1, 9]]})
    >>> tuple(outputs["lm_logits"].shape), model.generate([[7, 8, 2]], max_new_tokens=3).shape
    ((1, 2, 30), (1, 3))

    Source: https://arxiv.org/abs/1406.1078 (Cho et al. 2014), section 2.2 and appendix A.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim=1000,
        embedding_dim=100,
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

        def initializer():
            if initializer_range is None:
                return keras.initializers.GlorotUniform()
            return keras.initializers.RandomNormal(stddev=initializer_range)

        # === Layers ===
        make = RecurrentParts(config, initializer)
        table = make.table("token_embedding")
        decoder_table = table if share_embeddings else make.table("decoder_token_embedding")
        drop = make.dropout("embedding_dropout")
        reader = make.reader("gru", "encoder")
        summary = make.dense(hidden_dim, "summary", activation="tanh")
        start = make.dense(hidden_dim, "start", activation="tanh")
        decoder = make.decoder(cell="gru")
        readout = layers.Maxout(
            readout_dim, kernel_initializer=initializer(), dtype=make.policy, name="readout"
        )
        drop_readout = make.dropout("readout_dropout")
        head = make.head()

        # === Parts ===
        def read(token_ids, real):
            hidden, [last] = reader(drop(table(token_ids)), real)  # (batch, length, hidden)
            vector = summary(last)  # (batch, hidden): all that the decoder knows of the text
            return hidden, [start(vector)], vector

        def embed(token_ids):
            return drop(decoder_table(token_ids))

        def tell(told, x):
            seen = [told["hidden"], x, told["context"]]  # the context is the vector at every step
            return drop_readout(readout(ops.concatenate(seen, axis=-1)))

        self._assemble(config, make.policy, read, embed, decoder, tell, head, name)
