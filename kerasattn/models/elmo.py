import keras
import numpy as np
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.settings import check_settings
from kerasattn.ops import seeds
from kerasattn.training.losses import label_loss
from kerasattn.weights.tables import elmo as tables

NUM_CHARACTERS = 262  # 0 fills texts up, 1 to 256 are bytes
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, FILLED = range(257, 262)
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


@keras.saving.register_keras_serializable(package="kerasattn")
class ELMo(BaseModel):
    """Vectors of words in their context: a language model in both directions over characters.

    Words are read by their characters, by LSTMs from the left and by others from the right, and
    what each layer says is mixed. The ends of a sentence are read beside its words, and left out of
    what is told. Every text begins anew: AllenNLP keeps states from one batch to the next.

    Args:
        max_characters: int, ids of a word.
        character_dim: int, width of a character.
        filters: pairs of ints, of `CharacterFilters`.
        activation: "relu" or "tanh", of the filters' maxima.
        num_highways: int >= 0, highway layers on a word.
        num_layers: int, LSTMs of each direction.
        hidden_dim: int, the width of an LSTM's cell state.
        projection_dim: int, of what one direction tells, and of a word.
        cell_clip, projection_clip: float or None, limits of `ProjectedLSTMCell`.
        skip_connections: bool, whether an LSTM above the first adds what it reads.
        normalize: bool, of `ScalarMix`.
        vocabulary_size: int, words that a head tells before and after each place, to train the
            model with; None for no head.
        dropout: float in [0, 1), of what each LSTM and the head read.
        seed: int or None, of the dropout.

    Inputs:
        character_ids: int (batch, length, max_characters), of `tokenizers.elmo_characters`.
        padding_mask: bool (batch, length), True = real word, by default those with ids above 0.

    Outputs:
        hidden: (batch, length, 2 projection_dim), the mix. `hidden_states` gives its parts.
        lm_logits, backward_lm_logits: (batch, length, vocabulary_size) float32, with a head: each
            word told by those before it, and by those after it.

    Raises:
        ValueError: for sizes below 1, filters wider than a word, or another activation.

    Example: `freeze_reader` leaves the mix alone to be trained with a task's layers.

    >>> from kerasattn.models import ELMo
    >>> from kerasattn.tokenizers import elmo_characters
    >>> model = ELMo(filters=[(1, 4), (2, 4)], hidden_dim=8, projection_dim=6)
    >>> model.freeze_reader()
    >>> ids = elmo_characters([["Hello", "world"], ["Hi"]])
    >>> tuple(model(ids)["hidden"].shape), [w.path for w in model.trainable_weights]
    ((2, 2, 12), ['scalar_mix/scalars', 'scalar_mix/gamma'])

    Source: https://arxiv.org/abs/1802.05365 (Peters et al. 2018), sections 3.1 to 3.4.
    """

    formats = tables.FORMATS
    _recurrent = True

    def __init__(
        self,
        max_characters=50,
        character_dim=16,
        filters=FILTERS,
        activation="relu",
        num_highways=2,
        num_layers=2,
        hidden_dim=4096,
        projection_dim=512,
        cell_clip=3.0,
        projection_clip=3.0,
        skip_connections=True,
        normalize=False,
        vocabulary_size=None,
        dropout=0.0,
        seed=None,
        dtype=None,
        name="elmo",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        _check(config)
        config["filters"] = [list(pair) for pair in filters]
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        characters = layers.CharacterFilters(
            NUM_CHARACTERS, character_dim, filters, activation, dtype=policy, name="characters"
        )
        highways = [layers.Highway(dtype=policy, name=f"highway_{i}") for i in range(num_highways)]
        projection = keras.layers.Dense(projection_dim, dtype=policy, name="projection")
        mix = layers.ScalarMix(normalize, dtype=policy, name="scalar_mix")

        def lstm(direction, i):
            cell = layers.ProjectedLSTMCell(
                hidden_dim, projection_dim, cell_clip, projection_clip, dtype=policy, name="cell"
            )
            return keras.layers.RNN(
                cell,
                return_sequences=True,
                go_backwards=direction == "backward",
                dtype=policy,
                name=f"{direction}_{i}",
            )

        def drop(x, name):
            noise = keras.layers.Dropout(
                dropout, seed=seeds.child(seed, name), dtype=policy, name=f"{name}_dropout"
            )
            return noise(x)

        def read(x, direction):
            """What each LSTM of one direction tells, the lowest first."""
            told = []
            for i in range(num_layers):
                y = lstm(direction, i)(drop(x, f"{direction}_{i}"), mask=read_mask)
                y = ops.flip(y, axis=1) if direction == "backward" else y
                x = y + x if skip_connections and i else y
                told.append(x)
            return told

        # === Model ===
        character_ids = keras.Input((None, max_characters), dtype="int32", name="character_ids")
        padding_mask = keras.Input((None,), dtype="bool", name="padding_mask", optional=True)
        inputs = {"character_ids": character_ids, "padding_mask": padding_mask}
        real = layers.PaddingMask(name="padding")(ops.max(character_ids, axis=-1), padding_mask)
        # The end stands behind all padding, which no LSTM sees: to each text it is next to its end.
        edge, seen = ops.zeros_like(character_ids[:, :1]), ops.ones_like(real[:, :1])
        start, end = (
            edge + np.array(_boundary(i, max_characters), "int32")
            for i in (SENTENCE_START, SENTENCE_END)
        )
        read_mask = ops.concatenate([seen, real, seen], axis=1)  # (batch, length + 2)
        x = characters(ops.concatenate([start, character_ids, end], axis=1))
        for highway in highways:
            x = highway(x)
        if num_highways or x.shape[-1] != projection_dim:
            x = projection(x)  # (batch, length + 2, projection)
        forward, backward = read(x, "forward"), read(x, "backward")
        both = [
            ops.concatenate(pair, axis=-1)[:, 1:-1]
            for pair in zip([x, *forward], [x, *backward], strict=True)
        ]  # each (batch, length, 2 projection)
        outputs = {"hidden": mix(both)}
        if vocabulary_size is not None:
            head = layers.LanguageModelHead(
                vocabulary_size=vocabulary_size, use_bias=True, dtype=policy, name="head"
            )
            # Of the words before, and of those after.
            before, after = drop(forward[-1], "forward"), drop(backward[-1], "backward")
            outputs["lm_logits"] = head(before[:, :-2])
            outputs["backward_lm_logits"] = head(after[:, 2:])
        super().__init__(inputs, outputs, name=name)

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._id_ranges = {"character_ids": NUM_CHARACTERS}
        self._hidden = both

    def freeze_reader(self):
        """Leaves the weights of the mix alone to be trained; call it before `compile`."""
        for layer in self.layers:
            layer.trainable = layer.name == "scalar_mix"

    def _check_labels(self, x, y):
        super()._check_labels(x, y if isinstance(y, dict) else {"lm_logits": y})

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """-log p of the words, in nats each, the mean of both directions; with a head.

        Args:
            x: dict of the inputs.
            y: int (batch, length), the words that stand there; -100 where nothing is asked, as at
                padding.
            y_pred: dict of the outputs.
            sample_weight: (batch,) or (batch, length), weights of texts or words.
            training: bool.
        """
        if self._compile_loss is not None or "lm_logits" not in y_pred:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None:
            raise ValueError(f"{self.name} needs words y, int (batch, length).")
        losses = [
            label_loss(y, y_pred[name], sample_weight)
            for name in ("lm_logits", "backward_lm_logits")
        ]
        return sum(losses) / 2 + sum(self.losses)


def _boundary(i, max_characters):
    """The ids of an end of a sentence."""
    code = [WORD_START, i, WORD_END]
    return code + [FILLED] * (max_characters - len(code))


def _check(config):
    needed = {k: v for k, v in config.items() if k != "vocabulary_size" or v is not None}
    check_settings({**needed, "num_highways": config["num_highways"] + 1})
    if config["max_characters"] < 3:
        raise ValueError(f"max_characters must be at least 3, got {config['max_characters']}.")
    if config["activation"] not in ("relu", "tanh"):
        raise ValueError(f'activation is "relu" or "tanh", got {config["activation"]!r}.')
