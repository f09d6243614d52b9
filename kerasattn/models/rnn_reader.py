import keras
from keras import ops

from kerasattn import heads
from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import Classifier
from kerasattn.models.reader import Reader, reader_inputs
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class RNNReader(Reader, Classifier, BaseModel):
    """Answers a question about a story by the last states of two LSTMs: a baseline of readers.

    Args:
        vocabulary_size: int, number of tokens.
        num_classes: int, answers to choose from; the vocabulary by default.
        embedding_dim: int, of a token, in story and question.
        hidden_dim: int, of each LSTM.
        dropout: float in [0, 1), of the embeddings and of the states.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length), the story.
        query_ids: int (batch, query), the question.
        padding_mask, query_padding_mask: bool, True = real token, by default those that are not
            pad_id.

    Outputs:
        hidden (batch, length, hidden_dim), of the story; pooled (batch, 2 hidden_dim);
        class_logits (batch, num_classes).

    Raises:
        ValueError: for sizes below 1.

    Example:
    >>> from kerasattn.models import RNNReader
    >>> model = RNNReader(30, embedding_dim=4, hidden_dim=6)
    >>> tuple(model({"token_ids": [[5, 6, 7, 0]], "query_ids": [[8, 9]]})["class_logits"].shape)
    (1, 30)

    Source: the LSTM of https://arxiv.org/abs/1502.05698 (Weston et al. 2015), section 5.
    """

    _recurrent = True

    def __init__(
        self,
        vocabulary_size,
        num_classes=None,
        embedding_dim=50,
        hidden_dim=50,
        dropout=0.0,
        pad_id=0,
        seed=None,
        dtype=None,
        name="rnn_reader",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, dtype=policy, name="token_embedding"
        )
        embedding_dropout = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "embedding_dropout"), dtype=policy
        )
        story_lstm, query_lstm = (
            keras.layers.LSTM(hidden_dim, return_sequences=True, dtype=policy, name=f"{name}_lstm")
            for name in ("story", "query")
        )
        head = heads.Classification(
            num_classes or vocabulary_size,
            dropout=dropout,
            seed=seeds.child(seed, "classifier"),
            dtype=policy,
            name="classifier",
        )

        # === Model ===
        inputs, real, real_query = reader_inputs(pad_id)
        x = embedding_dropout(embedding(inputs["token_ids"]))  # (batch, length, embedding)
        hidden = story_lstm(x, mask=real)  # (batch, length, hidden)
        asked = query_lstm(embedding_dropout(embedding(inputs["query_ids"])), mask=real_query)
        # Padding leaves a state as it is, so that the last one stands at the end.
        pooled = ops.concatenate([hidden[:, -1], asked[:, -1]], axis=-1)
        outputs = {"hidden": hidden, "pooled": pooled, "class_logits": head(pooled)}
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep_classes(config, policy, [x, hidden])
        self._id_ranges = {"token_ids": vocabulary_size, "query_ids": vocabulary_size}
