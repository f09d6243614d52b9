import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.settings import check_settings
from kerasattn.models.tagger import Tagger
from kerasattn.ops import seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class BiLSTMCRF(Tagger):
    """Tags words or characters: embeddings, LSTMs in both directions, a CRF.

    Args:
        vocabulary_size: int, number of tokens.
        num_tags: int.
        embedding_dim: int, of a token.
        hidden_dim: int, even: both directions together.
        num_layers: int, of LSTMs.
        character_vocabulary_size: int, number of characters, for a convolution over the characters
            of each token; None for none.
        character_dim, character_filters: int, width of a character and of what the convolution
            makes of a token.
        num_features: int, number of sparse features, whose scores are added to those of the LSTMs
            (`data.tagging.CharacterFeatures`); None for none.
        constraints: dict of what `layers.CRF` takes, as `TaggingScheme.constraints()` gives it.
        use_crf: bool; otherwise every token is tagged by itself.
        trainable_embeddings: bool.
        dropout: float in [0, 1), of the embeddings and of the hidden vectors.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length).
        character_ids: int (batch, length, characters), 0 is padding; with a vocabulary of them.
        feature_ids: int (batch, length, features of a token), 0 for none; with num_features.
        padding_mask: bool (batch, length), True = real token, by default token_ids != pad_id.

    Outputs are those of `Tagger`: hidden, token_logits, tags.

    Raises:
        ValueError: for sizes below 1 or an odd hidden_dim.

    Example:
    >>> import numpy as np
    >>> from kerasattn.data.tagging import TaggingScheme
    >>> from kerasattn.models import BiLSTMCRF
    >>> scheme = TaggingScheme("BIOES", ["PER"])
    >>> model = BiLSTMCRF(30, scheme.num_tags, embedding_dim=4, hidden_dim=6,
    ...                   constraints=scheme.constraints())
    >>> model.load_vectors([5, 6], np.ones((2, 4)))
    >>> tags = model([[5, 6, 7, 0]])["tags"]
    >>> scheme.is_valid(scheme.decode([int(tag) for tag in tags[0, :3]]))
    True

    Source: https://arxiv.org/abs/1508.01991; characters https://arxiv.org/abs/1603.01354.
    """

    _recurrent = True

    def __init__(
        self,
        vocabulary_size,
        num_tags,
        embedding_dim=100,
        hidden_dim=200,
        num_layers=1,
        character_vocabulary_size=None,
        character_dim=30,
        character_filters=30,
        num_features=None,
        constraints=None,
        use_crf=True,
        trainable_embeddings=True,
        dropout=0.5,
        pad_id=0,
        seed=None,
        dtype=None,
        name="bilstm_crf",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        if hidden_dim % 2:
            raise ValueError(f"hidden_dim is of two directions, it must be even: {hidden_dim}.")
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Inputs ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        inputs = {"token_ids": token_ids}
        for wanted, key in (
            (character_vocabulary_size, "character_ids"),
            (num_features, "feature_ids"),
        ):
            if wanted is not None:
                inputs[key] = keras.Input((None, None), dtype="int32", name=key)
        inputs["padding_mask"] = keras.Input(
            (None,), dtype="bool", name="padding_mask", optional=True
        )
        real = layers.PaddingMask(pad_id, name="padding")(token_ids, inputs["padding_mask"])

        # === Embeddings ===
        embedding = keras.layers.Embedding(
            vocabulary_size,
            embedding_dim,
            trainable=trainable_embeddings,
            dtype=policy,
            name="token_embedding",
        )
        x = embedding(token_ids)  # (batch, length, embedding)
        if character_vocabulary_size is not None:
            convolution = layers.CharacterConvolution(
                character_vocabulary_size,
                character_dim,
                character_filters,
                dtype=policy,
                name="characters",
            )
            x = ops.concatenate([x, convolution(inputs["character_ids"])], axis=-1)
        x = keras.layers.Dropout(
            dropout,
            seed=seeds.child(seed, "embedding_dropout"),
            dtype=policy,
            name="embedding_dropout",
        )(x)

        # === LSTMs ===
        hidden = [x]
        for i in range(num_layers):
            lstm = keras.layers.LSTM(hidden_dim // 2, return_sequences=True, dtype=policy)
            both = keras.layers.Bidirectional(lstm, dtype=policy, name=f"lstm_{i}")
            hidden.append(both(hidden[-1], mask=real))  # (batch, length, hidden)

        # === Tags ===
        more_scores = None
        if num_features is not None:
            more_scores = layers.FeatureScores(
                num_features, num_tags, dtype=policy, name="feature_scores"
            )(inputs["feature_ids"])
        super().__init__(config, policy, inputs, real, hidden, more_scores)
        self._id_ranges = {
            "token_ids": vocabulary_size,
            "character_ids": character_vocabulary_size,
            "feature_ids": None if num_features is None else num_features + 1,
        }
