import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import both_ways, row_weights
from kerasattn.models.reader import Reader, reader_inputs
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds, spans
from kerasattn.training.losses import label_loss


@keras.saving.register_keras_serializable(package="kerasattn")
class BiDAF(Reader, BaseModel):
    """Bidirectional attention flow: finds the span of a text that answers a question.

    Args:
        vocabulary_size: int, number of words.
        embedding_dim: int, of a word.
        hidden_dim: int, of one direction of each LSTM.
        character_vocabulary_size: int, number of characters, for a convolution over those of each
            word; None for none.
        character_dim, character_filters: int, width of a character and of what the convolution
            makes of a word.
        kernel_size: odd int, characters that a filter sees.
        num_highways: int >= 0, highway layers on what a word is made of.
        dropout: float in [0, 1), of what each LSTM and each output reads.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length), the text.
        query_ids: int (batch, query), the question.
        character_ids, query_character_ids: int (batch, length, characters) and (batch, query,
            characters), 0 is padding; with a vocabulary of them.
        padding_mask, query_padding_mask: bool, True = real word, by default those that are not
            pad_id.

    Outputs:
        hidden: (batch, length, 2 hidden_dim), of the text after the attention.
        start_logits, end_logits: float32 (batch, length), -1e30 at padding.
        query_weights: float32 (batch, length, query), where each word of the text looks.
        attention_weights: float32 (batch, length), what in the text matters to the question.

    Raises:
        ValueError: for sizes below 1 or an even kernel_size.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import BiDAF
    >>> model = BiDAF(30, embedding_dim=4, hidden_dim=3)
    >>> inputs = {"token_ids": np.array([[5, 6, 7, 0]]), "query_ids": np.array([[8, 9]])}
    >>> outputs = model(inputs)  # after fit(inputs, spans), answer(inputs): first and last words
    >>> tuple(outputs["start_logits"].shape), tuple(outputs["end_logits"].shape)
    ((1, 4), (1, 4))

    Source: https://arxiv.org/abs/1611.01603 (Seo et al. 2017), section 2.
    """

    _recurrent = True

    def __init__(
        self,
        vocabulary_size,
        embedding_dim=100,
        hidden_dim=100,
        character_vocabulary_size=None,
        character_dim=16,
        character_filters=100,
        kernel_size=5,
        num_highways=2,
        dropout=0.2,
        pad_id=0,
        seed=None,
        dtype=None,
        name="bidaf",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings({**config, "num_highways": num_highways + 1})
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, dtype=policy, name="token_embedding"
        )
        characters = None
        if character_vocabulary_size is not None:
            characters = layers.CharacterConvolution(
                character_vocabulary_size,
                character_dim,
                character_filters,
                kernel_size,
                dtype=policy,
                name="characters",
            )
        highways = [layers.Highway(dtype=policy, name=f"highway_{i}") for i in range(num_highways)]
        lstm = lambda name: both_ways(keras.layers.LSTM, hidden_dim, policy, name)
        context_lstm, end_lstm = lstm("context_lstm"), lstm("end_lstm")
        modelling = [lstm(f"modelling_lstm_{i}") for i in range(2)]
        flow = layers.BidirectionalAttentionFlow(dtype=policy, name="attention_flow")
        start_dense, end_dense = (
            keras.layers.Dense(1, use_bias=False, dtype=policy, name=f"{name}_scores")
            for name in ("start", "end")  # a softmax does not feel a bias
        )

        def drop(x, name):
            noise = keras.layers.Dropout(
                dropout, seed=seeds.child(seed, name), dtype=policy, name=f"{name}_dropout"
            )
            return noise(x)

        def read(which, real):
            """Words in their context: (batch, words, 2 hidden_dim)."""
            x = embedding(inputs[f"{which or 'token_'}ids"])
            if characters is not None:
                x = ops.concatenate([characters(inputs[f"{which}character_ids"]), x], axis=-1)
            for highway in highways:
                x = highway(x)
            return context_lstm(drop(x, f"{which or 'token_'}words"), mask=real)

        # === Model ===
        more = () if characters is None else ("character_ids", "query_character_ids")
        inputs, real, real_query = reader_inputs(pad_id, more)
        context, query = read("", real), read("query_", real_query)
        mixed, query_weights, weights = flow(
            context, query, context_mask=real, query_mask=real_query, return_weights=True
        )  # (batch, length, 8 hidden_dim)
        hidden = mixed
        for i, layer in enumerate(modelling):
            hidden = layer(drop(hidden, f"modelling_{i}"), mask=real)
        ending = end_lstm(drop(hidden, "end_lstm"), mask=real)  # (batch, length, 2 hidden_dim)

        def scores(dense, x, name):
            x = dense(drop(ops.concatenate([mixed, x], axis=-1), name))[..., 0]
            return ops.where(real, ops.cast(x, "float32"), -1e30)

        outputs = {
            "hidden": hidden,
            "start_logits": scores(start_dense, hidden, "start"),
            "end_logits": scores(end_dense, ending, "end"),
            "query_weights": query_weights,
            "attention_weights": weights,
        }
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._id_ranges = {"token_ids": vocabulary_size, "query_ids": vocabulary_size}
        self._id_ranges |= dict.fromkeys(more, character_vocabulary_size)
        self._hidden = [context, hidden]
        self._exact = keras.metrics.Mean(name="exact_match")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """-log p of the first word and of the last, in nats, their sum, mean over the rows.

        Args:
            x: dict of the inputs.
            y: int (batch, 2), the first and the last word of each answer; -100 and -100 for a
                question that counts for nothing.
            y_pred: dict of the outputs.
            sample_weight: (batch,), weights of rows.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None or len(y.shape) != 2 or y.shape[1] not in (None, 2):
            raise ValueError(f"{self.name} needs y, int (batch, 2): first and last words.")
        loss = label_loss(y[:, 0], y_pred["start_logits"], sample_weight)
        return loss + label_loss(y[:, 1], y_pred["end_logits"], sample_weight) + sum(self.losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Those of `compile`, and how many spans are told exactly."""
        if self._compile_loss is None:
            found = ops.stack(spans.best(y_pred["start_logits"], y_pred["end_logits"])[:2], axis=1)
            same = ops.all(ops.equal(found, ops.cast(y, found.dtype)), axis=1)
            self._exact.update_state(same, row_weights(y[:, 0], sample_weight))
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def answer(self, inputs, max_tokens=None, batch_size=32):
        """The likeliest span of each row, from start to end: numpy int32 (batch, 2).

        Args:
            inputs: dict of arrays.
            max_tokens: int, the longest span; None for any.
            batch_size: int.
        """
        outputs = self.predict(inputs, batch_size=batch_size, verbose=0)
        logits, found = (outputs["start_logits"], outputs["end_logits"]), []
        for begin in range(0, len(logits[0]), batch_size):  # scores of all pairs take much room
            few = (x[begin : begin + batch_size] for x in logits)
            best = spans.best(*few, max_tokens=max_tokens)[:2]
            found.append(np.stack([ops.convert_to_numpy(x) for x in best], axis=1))
        return np.concatenate(found)
