import keras
from keras import ops

from kerasattn import heads, layers
from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import Classifier, both_ways, check_even
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class HAN(Classifier, BaseModel):
    """Hierarchical attention network: words make sentences, sentences make the document.

    Documents are padded to one number of sentences of one number of words each
    (`data.pad_documents`). A sentence without a real word is padding.

    Args:
        vocabulary_size: int, number of tokens.
        num_classes: int.
        embedding_dim: int, of a word.
        hidden_dim: int, even: both directions together, of words and of sentences.
        attention_dim: int, width of both attentions.
        dropout: float in [0, 1), of the embeddings and of the document's vector.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, sentences, words).
        padding_mask: bool (batch, sentences, words), True = real word, by default token_ids !=
            pad_id.

    Outputs:
        hidden: (batch, sentences, hidden_dim), of sentences among the others.
        pooled: (batch, hidden_dim), of the document.
        class_logits: (batch, num_classes).
        word_weights: float32 (batch, sentences, words), which sum to 1 in each real sentence.
        sentence_weights: float32 (batch, sentences).

    Raises:
        ValueError: for sizes below 1 or an odd hidden_dim.

    Example:
    >>> from kerasattn.models import HAN
    >>> model = HAN(30, num_classes=3, embedding_dim=4, hidden_dim=6, attention_dim=5)
    >>> outputs = model([[[5, 6, 7], [8, 0, 0], [0, 0, 0]]])  # a document of two sentences
    >>> tuple(outputs["class_logits"].shape), float(outputs["sentence_weights"][0, 2])
    ((1, 3), 0.0)

    Source: Yang et al. 2016, https://aclanthology.org/N16-1174.
    """

    _recurrent = True

    def __init__(
        self,
        vocabulary_size,
        num_classes,
        embedding_dim=200,
        hidden_dim=100,
        attention_dim=100,
        dropout=0.0,
        pad_id=0,
        seed=None,
        dtype=None,
        name="han",
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
        word_gru = layers.SentenceWise(
            both_ways(keras.layers.GRU, hidden_dim // 2, policy, "gru"), name="word_gru"
        )
        word_attention = layers.AttentionPooling(attention_dim, dtype=policy, name="word_attention")
        sentence_gru = both_ways(keras.layers.GRU, hidden_dim // 2, policy, "sentence_gru")
        sentence_attention = layers.AttentionPooling(
            attention_dim, dtype=policy, name="sentence_attention"
        )
        head = heads.Classification(
            num_classes,
            dropout=dropout,
            seed=seeds.child(seed, "classifier"),
            dtype=policy,
            name="classifier",
        )

        # === Model ===
        token_ids = keras.Input((None, None), dtype="int32", name="token_ids")
        padding_mask = keras.Input((None, None), dtype="bool", name="padding_mask", optional=True)
        real = layers.PaddingMask(pad_id, name="padding")(token_ids, padding_mask)
        real_sentences = ops.any(real, axis=2)  # (batch, sentences)
        x = embedding_dropout(embedding(token_ids))  # (batch, sentences, words, embedding)
        words = word_gru(x, padding_mask=real)  # (batch, sentences, words, hidden)
        sentences, word_weights = word_attention(words, padding_mask=real, return_weights=True)
        hidden = sentence_gru(sentences, mask=real_sentences)  # (batch, sentences, hidden)
        pooled, sentence_weights = sentence_attention(
            hidden, padding_mask=real_sentences, return_weights=True
        )
        outputs = {
            "hidden": hidden,
            "pooled": pooled,
            "class_logits": head(pooled),
            "word_weights": word_weights,
            "sentence_weights": sentence_weights,
        }
        inputs = {"token_ids": token_ids, "padding_mask": padding_mask}
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep_classes(config, policy, [sentences, hidden])
        self._id_ranges = {"token_ids": vocabulary_size}
