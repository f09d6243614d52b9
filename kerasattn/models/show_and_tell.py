import keras
from keras import ops

from kerasattn.models.captioner import Captioner, caption_inputs, check_pictures, picture_encoder
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds

SHOWN = ("once", "every_step")


@keras.saving.register_keras_serializable(package="kerasattn")
class ShowAndTell(Captioner):
    """Writes captions by an LSTM that is shown the picture as one vector.

    Args:
        vocabulary_size: int, number of tokens.
        image_shape: ints (height, width, channels).
        filters: ints, of the convolutions of which each halves the picture.
        embedding_dim: int, of a word, and of the picture where it is shown as one.
        hidden_dim: int, of the LSTM.
        shown: "once", in the place of a word before the first, or "every_step", beside each word
            through a matrix of its own.
        dropout: float in [0, 1), of what the LSTM reads and of its states before the words.
        pad_id, start_id, end_id: ints, ids of padding and of where captions start and end.
        seed: int or None, of the dropouts.

    Inputs:
        token_ids: int (batch, length), captions from start_id on.
        images: float (batch, height, width, channels).

    Outputs:
        hidden (batch, length, hidden_dim); lm_logits (batch, length, vocabulary_size), of each next
        token.

    Raises:
        ValueError: for sizes below 1, pictures too small for so many filters, or another `shown`.

    Example:
    >>> import numpy as np
    >>> from kerasattn import decoding
    >>> from kerasattn.models import ShowAndTell
    >>> model = ShowAndTell(12, (16, 16, 1), filters=(4, 8), embedding_dim=6, hidden_dim=8)
    >>> images = np.zeros((2, 16, 16, 1), "float32")  # fit({"token_ids": ..., "images": images})
    >>> model.generate(images, decoding.Beam(2), max_new_tokens=3, jit=False).shape
    (2, 3)

    Source: https://arxiv.org/abs/1411.4555 (Vinyals et al. 2015), section 3; every step:
    https://arxiv.org/abs/1412.2306, section 3.2.
    """

    attention_step = None  # one vector: there is nothing to choose from

    def __init__(
        self,
        vocabulary_size,
        image_shape,
        filters=(32, 64, 128),
        embedding_dim=256,
        hidden_dim=256,
        shown="once",
        dropout=0.0,
        pad_id=0,
        start_id=1,
        end_id=2,
        seed=None,
        dtype=None,
        name="show_and_tell",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        check_pictures(config)
        if shown not in SHOWN:
            raise ValueError(f"shown must be one of {SHOWN}, got {shown!r}.")
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        encode = picture_encoder(filters, policy)
        flatten = keras.layers.Flatten(dtype=policy, name="flatten")
        projection = keras.layers.Dense(embedding_dim, dtype=policy, name="picture")
        embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, dtype=policy, name="token_embedding"
        )
        drop_in, drop_out = (
            keras.layers.Dropout(dropout, seed=seeds.child(seed, place), dtype=policy)
            for place in ("read", "told")
        )
        lstm = keras.layers.LSTM(hidden_dim, return_sequences=True, dtype=policy, name="lstm")
        head = keras.layers.Dense(vocabulary_size, dtype=policy, name="head")

        # === Model ===
        inputs = caption_inputs(image_shape)
        picture = projection(flatten(encode(inputs["images"])))  # (batch, embedding)
        words = embedding(inputs["token_ids"])  # (batch, length, embedding)
        if shown == "once":
            x = ops.concatenate([picture[:, None], words], axis=1)
            hidden = lstm(drop_in(x))[:, 1:]  # (batch, length, hidden)
        else:
            beside = picture[:, None] + ops.zeros_like(words)  # one for each word
            hidden = lstm(drop_in(ops.concatenate([words, beside], axis=-1)))
        logits = ops.cast(head(drop_out(hidden)), "float32")  # (batch, length, vocabulary)
        super().__init__(inputs, {"hidden": hidden, "lm_logits": logits}, name=name)

        # === Config ===
        self._keep(
            config,
            policy,
            [words, hidden],
            look=lambda images: projection(flatten(encode(images))),
            embedding=embedding,
            lstm=lstm,
            head=head,
        )

    def initial_state(self, inputs, max_new_tokens):
        """The LSTM's states once it has seen the picture, or the picture for all steps.

        Args:
            inputs: dict of `images`.
            max_new_tokens: int.
        """
        picture = self._parts.look(inputs["images"])
        cell = self._parts.lstm.cell
        states = cell.get_initial_state(ops.shape(picture)[0])
        if self._config["shown"] == "once":
            _, states = cell(picture, states)
            return {"states": states}
        return {"states": states, "picture": picture}

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, the LSTM's hidden vector (batch, hidden_dim), the state)."""
        x = self._parts.embedding(token_ids)  # (batch, embedding)
        if "picture" in state:
            x = ops.concatenate([x, state["picture"]], axis=-1)
        hidden, states = self._parts.lstm.cell(x, state["states"])
        return self._parts.head(hidden), hidden, {**state, "states": states}
