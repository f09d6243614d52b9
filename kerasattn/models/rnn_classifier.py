import keras
from keras import ops

from kerasattn import heads, layers
from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import Classifier, both_ways, check_even
from kerasattn.models.settings import check_settings
from kerasattn.ops import masks, seeds

POOLINGS = ("attention", "last")


@keras.saving.register_keras_serializable(package="kerasattn")
class RNNClassifier(Classifier, BaseModel):
    """Classifies a text by an LSTM in both directions, with attention or by its last states.

    Args:
        vocabulary_size: int, number of tokens.
        num_classes: int.
        embedding_dim: int, of a token.
        hidden_dim: int, even: both directions together.
        pooling: "attention", the mean of all words by what they matter, or "last", the last state
            of each direction.
        attention_dim: int, width of the attention; with pooling="attention".
        dropout: float in [0, 1), of the embeddings and of the text's vector.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length).
        padding_mask: bool (batch, length), True = real token, by default token_ids != pad_id.

    Outputs:
        hidden (batch, length, hidden_dim); pooled (batch, hidden_dim); class_logits (batch,
        num_classes); with attention also attention_weights, float32 (batch, length).

    Raises:
        ValueError: for sizes below 1, an odd hidden_dim, or another pooling.

    Example:
    >>> from kerasattn.models import RNNClassifier
    >>> model = RNNClassifier(30, num_classes=3, embedding_dim=4, hidden_dim=6)
    >>> outputs = model([[5, 6, 7, 0]])
    >>> tuple(outputs["class_logits"].shape), float(outputs["attention_weights"][0, 3])
    ((1, 3), 0.0)

    Source: the attention is that of https://aclanthology.org/N16-1174, equations 5 to 7.
    """

    _recurrent = True

    def __init__(
        self,
        vocabulary_size,
        num_classes,
        embedding_dim=100,
        hidden_dim=100,
        pooling="attention",
        attention_dim=100,
        dropout=0.0,
        pad_id=0,
        seed=None,
        dtype=None,
        name="rnn_classifier",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        check_even(hidden_dim)
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {POOLINGS}, got {pooling!r}.")
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, dtype=policy, name="token_embedding"
        )
        embedding_dropout = keras.layers.Dropout(
            dropout, seed=seeds.child(seed, "embedding_dropout"), dtype=policy
        )
        lstm = both_ways(keras.layers.LSTM, hidden_dim // 2, policy, "lstm")
        head = heads.Classification(
            num_classes,
            dropout=dropout,
            seed=seeds.child(seed, "classifier"),
            dtype=policy,
            name="classifier",
        )

        # === Model ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        padding_mask = keras.Input((None,), dtype="bool", name="padding_mask", optional=True)
        real = layers.PaddingMask(pad_id, name="padding")(token_ids, padding_mask)
        x = embedding_dropout(embedding(token_ids))  # (batch, length, embedding)
        hidden = lstm(x, mask=real)  # (batch, length, hidden)
        outputs = {"hidden": hidden}
        if pooling == "attention":
            attention = layers.AttentionPooling(attention_dim, dtype=policy, name="attention")
            pooled, outputs["attention_weights"] = attention(
                hidden, padding_mask=real, return_weights=True
            )
        else:
            place = masks.positions(token_ids)
            last = ops.max(ops.where(real, place, -1), axis=1, keepdims=True)
            first = ops.min(ops.where(real, place, 2**30), axis=1, keepdims=True)
            at = lambda where: ops.cast(ops.equal(place, where), hidden.dtype)[..., None]
            forward, backward = ops.split(hidden, 2, axis=-1)
            ends = [ops.sum(forward * at(last), axis=1), ops.sum(backward * at(first), axis=1)]
            pooled = ops.concatenate(ends, axis=-1)
        outputs |= {"pooled": pooled, "class_logits": head(pooled)}
        inputs = {"token_ids": token_ids, "padding_mask": padding_mask}
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep_classes(config, policy, [x, hidden])
        self._id_ranges = {"token_ids": vocabulary_size}
