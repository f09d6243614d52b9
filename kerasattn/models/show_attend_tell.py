import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.captioner import Captioner, caption_inputs, check_pictures, picture_encoder
from kerasattn.models.settings import check_settings
from kerasattn.models.steps import keep_weights
from kerasattn.ops import seeds


@keras.saving.register_keras_serializable(package="kerasattn")
class ShowAttendTell(Captioner):
    """Writes captions by an LSTM that looks at the picture's places before each word.

    Args:
        vocabulary_size: int, number of tokens.
        image_shape: ints (height, width, channels).
        filters: ints, of the convolutions of which each halves the picture; the last makes the
            grid that is looked at.
        embedding_dim: int, of a word.
        hidden_dim: int, of the LSTM.
        attention_dim: int, width of the scores.
        attention: "soft"; or hard, learned by "reinforce" or "gumbel", see
            `layers.HardAttention`.
        doubly_stochastic: float >= 0, weight of the loss that wants each place looked at about once
            in all; of soft attention.
        reward_weight, entropy_weight: floats >= 0, of `layers.ReinforceLoss`, whose reward is the
            log-probability of the caption; with attention="reinforce".
        temperature: float > 0, with attention="gumbel".
        dropout: float in [0, 1), of what the LSTM reads and of what words are told from.
        pad_id, start_id, end_id: ints, ids of padding and of where captions start and end.
        seed: int or None, of dropouts and draws.

    Inputs:
        token_ids: int (batch, length), captions from start_id on.
        images: float (batch, height, width, channels).

    Outputs:
        hidden: (batch, length, hidden_dim).
        lm_logits: (batch, length, vocabulary_size), of each next token.
        attention_weights: float32 (batch, length, places), rows of the grid one after the other;
            `grid_shape` has its height and width.
        caption_log_probs: float32 (batch,), of the words behind the first.

    Raises:
        ValueError: for sizes below 1, pictures too small for so many filters, or another attention.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import ShowAttendTell
    >>> model = ShowAttendTell(12, (16, 16, 1), filters=(4, 8), embedding_dim=6, hidden_dim=8,
    ...                        attention_dim=5)
    >>> captions, images = np.array([[1, 5, 6, 2]]), np.zeros((1, 16, 16, 1), "float32")
    >>> outputs = model({"token_ids": captions, "images": images})
    >>> tuple(outputs["attention_weights"].shape), model.grid_shape
    ((1, 4, 16), (4, 4))

    Source: https://arxiv.org/abs/1502.03044 (Xu et al. 2015), sections 3 and 4.
    """

    def __init__(
        self,
        vocabulary_size,
        image_shape,
        filters=(32, 64, 128),
        embedding_dim=256,
        hidden_dim=256,
        attention_dim=128,
        attention="soft",
        doubly_stochastic=1.0,
        reward_weight=1.0,
        entropy_weight=0.002,
        temperature=1.0,
        dropout=0.0,
        pad_id=0,
        start_id=1,
        end_id=2,
        seed=None,
        dtype=None,
        name="show_attend_tell",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        check_pictures(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        encode = picture_encoder(filters, policy)
        as_places = keras.layers.Reshape((-1, filters[-1]), dtype=policy, name="places")
        embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, dtype=policy, name="token_embedding"
        )
        drop_in, drop_out = (
            keras.layers.Dropout(dropout, seed=seeds.child(seed, place), dtype=policy)
            for place in ("read", "told")
        )
        lstm = layers.AttendingLSTM(
            hidden_dim,
            attention_dim,
            attention,
            temperature,
            seed=seeds.child(seed, "lstm"),
            dtype=policy,
            name="lstm",
        )
        from_hidden, from_seen = (
            keras.layers.Dense(embedding_dim, dtype=policy, name=f"told_by_{what}")
            for what in ("state", "picture")
        )
        head = keras.layers.Dense(vocabulary_size, dtype=policy, name="head")

        def tell(words, hidden, seen):
            """Logits of the next words, by the last ones, the state and what was seen."""
            return head(drop_out(words + from_hidden(hidden) + from_seen(seen)))

        # === Model ===
        inputs = caption_inputs(image_shape)
        token_ids = inputs["token_ids"]
        grid = encode(inputs["images"])  # (batch, height, width, filters)
        words = embedding(token_ids)  # (batch, length, embedding)
        hidden, seen, weights, drawn_log_probs, entropies = lstm(drop_in(words), as_places(grid))
        logits = ops.cast(tell(words, hidden, seen), "float32")  # (batch, length, vocabulary)

        next_ids = token_ids[:, 1:]
        asked = ops.not_equal(next_ids, pad_id)  # (batch, length - 1)
        if attention == "soft":
            asked_here = ops.pad(asked, [[0, 0], [0, 1]])
            weights = layers.DoublyStochastic(doubly_stochastic, name="doubly_stochastic")(
                weights, padding_mask=asked_here
            )
        log_probs = ops.log_softmax(logits[:, :-1])
        log_probs = ops.take_along_axis(log_probs, next_ids[..., None], axis=-1)[..., 0]
        told = ops.sum(ops.where(asked, log_probs, 0.0), axis=1)  # (batch,)
        if attention == "reinforce":
            told = layers.ReinforceLoss(
                reward_weight=reward_weight, entropy_weight=entropy_weight, name="reinforce"
            )(told, drawn_log_probs[:, :-1], entropies[:, :-1], asked)
        outputs = {
            "hidden": hidden,
            "lm_logits": logits,
            "attention_weights": weights,
            "caption_log_probs": told,
        }
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._keep(
            config,
            policy,
            [words, hidden],
            look=lambda images: as_places(encode(images)),
            embedding=embedding,
            lstm=lstm,
            tell=tell,
        )
        self.grid_shape = tuple(grid.shape[1:3])

    def initial_state(self, inputs, max_new_tokens):
        """The LSTM's states, which the picture is one of.

        Args:
            inputs: dict of `images`.
            max_new_tokens: int.
        """
        return {"states": self._parts.lstm.initial_state(self._parts.look(inputs["images"]))}

    def hidden_step(self, token_ids, index, state, attention=None):
        """As `step`: (logits, the LSTM's hidden vector (batch, hidden_dim), the state)."""
        words = self._parts.embedding(token_ids)  # (batch, embedding)
        hidden, seen, weights, states = self._parts.lstm.step(words, state["states"])
        if attention is not None:
            keep_weights(attention, "cross_attention", weights[:, None, None])
        return self._parts.tell(words, hidden, seen), hidden, {"states": states}

    def reorder(self, state, rows):
        """The state of other beams of the same pictures: the picture is the same for all."""
        hidden, cell, *picture = state["states"]
        hidden, cell = (ops.take(x, rows, axis=0) for x in (hidden, cell))
        return {"states": [hidden, cell, *picture]}
