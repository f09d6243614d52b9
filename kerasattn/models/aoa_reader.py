import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import both_ways, check_even
from kerasattn.models.reader import Reader, reader_inputs
from kerasattn.models.settings import check_settings
from kerasattn.ops import reading, seeds
from kerasattn.training.losses import weighted_mean


@keras.saving.register_keras_serializable(package="kerasattn")
class AoAReader(Reader, BaseModel):
    """Attention-over-attention reader: tells the word that is missing, one of the document's.

    Args:
        vocabulary_size: int, number of tokens.
        embedding_dim: int, of a token, in document and query.
        hidden_dim: int, even: both directions together.
        dropout: float in [0, 1), of the embeddings.
        pad_id: int, id of padding.
        seed: int or None, of the dropout.

    Inputs:
        token_ids: int (batch, length), the document.
        query_ids: int (batch, query), the sentence with a gap, which a token of its own marks.
        padding_mask, query_padding_mask: bool, True = real token, by default those that are not
            pad_id.

    Outputs:
        hidden: (batch, length, hidden_dim), of the document.
        attention_weights: float32 (batch, length), what each place answers.
        token_probs: float32 (batch, length), the probability of the token that stands there: the
            sum over all places where it stands.
        query_weights: float32 (batch, query), how much each query word counted.

    Raises:
        ValueError: for sizes below 1 or an odd hidden_dim.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import AoAReader
    >>> model = AoAReader(30, embedding_dim=4, hidden_dim=6)
    >>> inputs = {"token_ids": np.array([[5, 6, 5, 7, 0]]), "query_ids": np.array([[8, 1, 9]])}
    >>> outputs = model(inputs)
    >>> bool(outputs["token_probs"][0, 0] == outputs["token_probs"][0, 2])  # both are token 5
    True
    >>> int(model.answer(inputs)[0]) in (5, 6, 7)  # after fit(inputs, answers)
    True

    Source: https://arxiv.org/abs/1607.04423 (Cui et al. 2017), section 3.
    """

    _recurrent = True

    def __init__(
        self,
        vocabulary_size,
        embedding_dim=384,
        hidden_dim=512,
        dropout=0.1,
        pad_id=0,
        seed=None,
        dtype=None,
        name="aoa_reader",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        check_even(hidden_dim)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, dtype=policy, name="token_embedding"
        )
        embedding_dropout = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "embedding_dropout"), dtype=policy
        )
        document_gru, query_gru = (
            both_ways(keras.layers.GRU, hidden_dim // 2, policy, f"{name}_gru")
            for name in ("document", "query")
        )
        attention = layers.AttentionOverAttention(dtype=policy, name="attention")

        # === Model ===
        inputs, real, real_query = reader_inputs(pad_id)
        token_ids = inputs["token_ids"]
        x = embedding_dropout(embedding(token_ids))  # (batch, length, embedding)
        hidden = document_gru(x, mask=real)  # (batch, length, hidden)
        query = embedding_dropout(embedding(inputs["query_ids"]))
        query = query_gru(query, mask=real_query)  # (batch, query, hidden)
        weights, query_weights, _ = attention(
            hidden, query, document_mask=real, query_mask=real_query, return_weights=True
        )
        outputs = {
            "hidden": hidden,
            "attention_weights": weights,
            "token_probs": reading.sum_over_occurrences(weights, token_ids, token_ids),
            "query_weights": query_weights,
        }
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._id_ranges = {"token_ids": vocabulary_size, "query_ids": vocabulary_size}
        self._hidden = [x, hidden]
        self._accuracy = keras.metrics.Mean(name="accuracy")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """-log p of the missing tokens, in nats, mean over the rows, unless `compile` had a loss.

        Args:
            x: dict of the inputs.
            y: int (batch,), the missing tokens. One that is not in the document costs 20.7 nats,
                and nothing can be learned of it.
            y_pred: dict of the outputs.
            sample_weight: (batch,), weights of rows.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None or len(y.shape) != 1:
            raise ValueError(f"{self.name} needs y, int (batch,), the missing tokens.")
        token_ids, weights = self._check_inputs(x)["token_ids"], y_pred["attention_weights"]
        sought = ops.cast(y, "int32")[:, None]
        probs = reading.sum_over_occurrences(weights, ops.cast(token_ids, "int32"), sought)[:, 0]
        losses = -ops.log(ops.maximum(probs, 1e-9))
        counts = ops.ones_like(losses) if sample_weight is None else sample_weight
        return weighted_mean(losses, counts) + sum(self.losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Those of `compile`, and how many of the missing tokens are told right."""
        if self._compile_loss is None:
            best = _likeliest(self._check_inputs(x)["token_ids"], y_pred["token_probs"])
            self._accuracy.update_state(ops.equal(best, ops.cast(y, best.dtype)), sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def answer(self, inputs, batch_size=32):
        """The likeliest token of each row: numpy int32 (batch,).

        Args:
            inputs: dict of arrays.
            batch_size: int.
        """
        probs = self.predict(inputs, batch_size=batch_size, verbose=0)["token_probs"]
        token_ids = np.asarray(inputs["token_ids"])
        return np.asarray(ops.convert_to_numpy(_likeliest(token_ids, probs)))


def _likeliest(token_ids, probs):
    """The token of the best place of each row: int32 (batch,)."""
    best = ops.argmax(probs, axis=1, keepdims=True)
    return ops.take_along_axis(ops.cast(token_ids, "int32"), best, axis=1)[:, 0]
