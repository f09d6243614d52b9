import functools

import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import check_even
from kerasattn.models.recurrent import RecurrentEncoderDecoder, RecurrentParts
from kerasattn.models.vectors import WordVectors


@keras.saving.register_keras_serializable(package="kerasattn")
class CoVe(WordVectors, RecurrentEncoderDecoder):
    """A translator whose encoder gives context vectors to other tasks: the MT-LSTM.

    LSTMs read pretrained word vectors both ways, one pair above the other; a deep LSTM writes, and
    attends to them after each step. What was learned so is handed on by `encoder` and `features`:
    of each word its vector beside what the LSTMs make of it, [GloVe; CoVe].

    Args:
        vocabulary_size: int, number of tokens; of two languages, of the one that has more.
        num_layers: int, pairs of LSTMs that read, and LSTMs that write.
        hidden_dim: int, even: of each layer, both directions together.
        embedding_dim: int, of the tokens' vectors.
        trainable_embeddings: bool, whether the vectors that are read are trained too.
        dropout: float in [0, 1), of the tokens' vectors and of what layers hand on.
        initializer_range: float > 0, kernels start uniform within it; None for Glorot's uniform
            one. Recurrent ones are orthogonal.
        pad_id, start_id, end_id, seed: as `RNNEncoderDecoder`.

    Inputs, outputs: as `RNNEncoderDecoder`; `encoder_hidden` is (batch, length, hidden_dim): CoVe.

    Raises:
        ValueError: for numbers that no model can be built of, or bad inputs.

    Example: vectors of other words, for which nothing has to be trained again.

    >>> import numpy as np
    >>> from kerasattn.models import CoVe
    >>> model = CoVe(30, hidden_dim=8, embedding_dim=4)
    >>> model.load_vectors([7, 8], np.ones((2, 4)))  # then compile and fit on pairs of texts
    >>> tuple(model.encoder([[7, 8, 2]])["hidden"].shape)
    (1, 3, 12)
    >>> tuple(model.features(np.ones((100, 4)))([[7, 99, 0]])["hidden"].shape)
    (1, 3, 12)

    Source: https://arxiv.org/abs/1708.00107 (McCann et al. 2017), sections 3 and 4. The decoder
    starts with the encoder's last states, which the paper leaves open.
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers=2,
        hidden_dim=600,
        embedding_dim=300,
        trainable_embeddings=False,
        dropout=0.2,
        initializer_range=0.1,
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
        check_even(hidden_dim)
        table, decoder_table = make.table("token_embedding"), make.table("decoder_token_embedding")
        table.trainable = trainable_embeddings
        drop = make.dropout("embedding_dropout")
        one_way = RecurrentParts({**config, "hidden_dim": hidden_dim // 2}, initializer)
        pairs = [
            (
                one_way.reader("lstm", f"forward_{i}"),
                one_way.reader("lstm", f"backward_{i}", go_backwards=True),
            )
            for i in range(num_layers)
        ]
        drops = [make.dropout(f"encoder_dropout_{i}") for i in range(num_layers)]
        attention = layers.SoftAttention(
            "bilinear",
            kernel_initializer=initializer(),
            use_bias=True,
            dtype=make.policy,
            name="attention",
        )
        decoder = make.decoder(
            num_layers=num_layers,
            attention=attention,
            readout_dim=hidden_dim,
            readout_bias=True,
            input_feeding=True,
            dropout=dropout,
            seed=seed,
        )
        head = make.head()

        # === Parts ===
        def contextualize(x, real, drops=(lambda x: x,) * num_layers):
            """What each pair of LSTMs makes of word vectors, and the states of all."""
            told, states = [], []
            for (forward, backward), drop_told in zip(pairs, drops, strict=True):
                (left, ends), (right, starts) = forward(x, real), backward(x, real)
                x = drop_told(ops.concatenate([left, right], axis=-1))  # (batch, length, hidden)
                states += [
                    ops.concatenate(both, axis=-1) for both in zip(ends, starts, strict=True)
                ]
                told.append(x)
            return told, states

        def read(token_ids, real):
            told, states = contextualize(drop(table(token_ids)), real, drops)
            return told[-1], states, told[-1]

        def embed(token_ids):
            return drop(decoder_table(token_ids))

        def tell(told, x):
            return told["hidden"]

        self._assemble(config, make.policy, read, embed, decoder, tell, head, name)
        self._parts.table, self._parts.contextualize = table, contextualize

    @functools.cached_property  # past Keras' tracking, which would look for layers inside
    def encoder(self):
        """`features` of the model's own vectors."""
        return self.features()

    def features(self, vectors=None, name="cove_features"):
        """A model of [word vector; CoVe], made of the LSTMs that read; without dropout.

        It shares their weights: set its `trainable` to False, or train them with the task.

        Args:
            vectors: float (words, embedding_dim), those of another vocabulary, not to be trained;
                row pad_id is padding's. By default the model's own.
            name: str.

        Returns:
            a model of token_ids and padding_mask (batch, length), whose `hidden` is (batch, length,
            embedding_dim + hidden_dim); `hidden_states` has the vectors and every layer.

        Raises:
            ValueError: for vectors of another width.
        """
        config, table = self._config, self._parts.table
        if vectors is not None:
            vectors = ops.convert_to_tensor(vectors, "float32")
            if len(vectors.shape) != 2 or vectors.shape[1] != config["embedding_dim"]:
                raise ValueError(
                    f"vectors must be (words, {config['embedding_dim']}), got the shape "
                    f"{tuple(vectors.shape)}."
                )
            table = layers.TokenEmbedding(
                *vectors.shape, trainable=False, dtype=table.dtype_policy, name="word_embedding"
            )
            table.build()
            table.embeddings.assign(vectors)
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        padding_mask = keras.Input((None,), dtype="bool", name="padding_mask", optional=True)
        real = layers.PaddingMask(config["pad_id"], name="padding")(token_ids, padding_mask)
        x = table(token_ids)  # (batch, length, embedding)
        told, _ = self._parts.contextualize(x, real)
        model = BaseModel(
            {"token_ids": token_ids, "padding_mask": padding_mask},
            {"hidden": ops.concatenate([x, told[-1]], axis=-1)},
            name=name,
        )
        model._id_ranges, model._recurrent = {"token_ids": table.vocabulary_size}, True
        model._hidden = [x, *told]
        return model
