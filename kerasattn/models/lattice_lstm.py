import keras

from kerasattn import layers
from kerasattn.models.settings import check_settings
from kerasattn.models.tagger import Tagger
from kerasattn.ops import seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class LatticeLSTMCRF(Tagger):
    """Tags characters, with the words of a lexicon that may be in the text: a lattice LSTM, a CRF.

    Where no word is found it is the character model `BiLSTMCRF`.

    Args:
        vocabulary_size: int, number of characters.
        num_words: int, of the lexicon; their ids are 1 to num_words.
        num_tags: int.
        max_word_length: int >= 2, characters of the longest word, as that of
            `data.tagging.Lexicon`.
        embedding_dim, word_dim: int, of a character and of a word.
        hidden_dim: int, even: both directions together.
        constraints: dict of what `layers.CRF` takes, as `TaggingScheme.constraints()` gives it.
        use_crf: bool; otherwise every character is tagged by itself.
        dropout: float in [0, 1), of the embeddings and of the hidden vectors.
        pad_id: int, id of padding.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length), characters.
        word_ids: int (batch, length, max_word_length - 1), what `Lexicon.ending_at` returns: the
            words by their last characters, 0 for none.
        padding_mask: bool (batch, length), True = real, by default token_ids != pad_id.

    Outputs are those of `Tagger`: hidden, token_logits, tags.

    Raises:
        ValueError: for sizes below 1 or an odd hidden_dim.

    Example:
    >>> from kerasattn.data.tagging import Lexicon
    >>> from kerasattn.models import LatticeLSTMCRF
    >>> lexicon = Lexicon(["南京", "南京市", "市长", "长江", "大桥"], max_word_length=3)
    >>> model = LatticeLSTMCRF(30, lexicon.num_words, num_tags=4, max_word_length=3,
    ...                        embedding_dim=4, word_dim=4, hidden_dim=6)
    >>> word_ids = lexicon.ending_at(["南京市长"])
    >>> tuple(model({"token_ids": [[5, 6, 7, 8]], "word_ids": word_ids})["tags"].shape)
    (1, 4)

    Source: https://arxiv.org/abs/1805.02023 (Zhang and Yang 2018), section 3.3.
    """

    def __init__(
        self,
        vocabulary_size,
        num_words,
        num_tags,
        max_word_length=4,
        embedding_dim=50,
        word_dim=50,
        hidden_dim=200,
        constraints=None,
        use_crf=True,
        dropout=0.5,
        pad_id=0,
        seed=None,
        dtype=None,
        name="lattice_lstm_crf",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        if hidden_dim % 2 or max_word_length < 2:
            raise ValueError(
                "hidden_dim is of two directions, it must be even, and max_word_length at least 2, "
                f"got {hidden_dim} and {max_word_length}."
            )
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Inputs ===
        slots = max_word_length - 1
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "word_ids": keras.Input((None, slots), dtype="int32", name="word_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask", optional=True),
        }
        real = layers.PaddingMask(pad_id, name="padding")(
            inputs["token_ids"], inputs["padding_mask"]
        )

        def embedded(key, size, dim, name):
            table = keras.layers.Embedding(size, dim, dtype=policy, name=f"{name}_embedding")
            return keras.layers.Dropout(
                dropout, seed=seeds.child(seed, name), dtype=policy, name=f"{name}_dropout"
            )(table(inputs[key]))

        # === Model ===
        characters = embedded("token_ids", vocabulary_size, embedding_dim, "token")
        words = embedded("word_ids", num_words + 1, word_dim, "word")
        word_mask = inputs["word_ids"] > 0  # (batch, length, slots)
        directions = [
            layers.LatticeLSTM(hidden_dim // 2, go_backwards, dtype=policy, name=name)(
                characters, words, word_mask, padding_mask=real
            )
            for go_backwards, name in ((False, "forward"), (True, "backward"))
        ]
        x = keras.layers.Concatenate(dtype=policy, name="hidden")(directions)
        super().__init__(config, policy, inputs, real, [characters, x])
        self._id_ranges = {"token_ids": vocabulary_size, "word_ids": num_words + 1}
