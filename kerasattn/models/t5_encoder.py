import keras

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.t5 import T5Parts
from kerasattn.weights.tables import t5 as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class T5Encoder(BaseModel):
    """The encoder of `T5` alone; of folders of whole models it leaves the decoder out.

    Args:
        vocabulary_size, num_layers, num_heads, head_dim, hidden_dim, intermediate_dim, activation,
            gated, num_buckets, max_distance, dropout, layer_norm_epsilon, initializer_factor,
            pad_id, seed: as `T5`.

    Inputs:
        token_ids: int (batch, length).
        padding_mask: bool (batch, length), True = real token, by default token_ids != pad_id.

    Outputs:
        hidden: (batch, length, hidden_dim).

    Example:
    >>> from kerasattn.models import T5Encoder
    >>> model = T5Encoder(30, num_layers=2, num_heads=2, head_dim=8, hidden_dim=16,
    ...                   intermediate_dim=32)
    >>> tuple(model([[7, 8, 1]])["hidden"].shape)
    (1, 3, 16)

    Source: https://arxiv.org/abs/1910.10683, section 2.1.
    """

    formats = tables.ENCODER_FORMATS

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        num_heads=12,
        head_dim=64,
        hidden_dim=768,
        intermediate_dim=2048,
        activation="gelu_tanh",
        gated=True,
        num_buckets=32,
        max_distance=128,
        dropout=0.1,
        layer_norm_epsilon=1e-6,
        initializer_factor=1.0,
        pad_id=0,
        seed=None,
        dtype=None,
        name=None,
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}

        # === Layers ===
        make = T5Parts(config)
        read, blocks = make.reader(make.table(), make.dropout())

        # === Model ===
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask", optional=True),
        }
        real = layers.PaddingMask(pad_id, name="padding")(*inputs.values())
        hidden = read(inputs["token_ids"], real)  # each (batch, length, hidden)
        super().__init__(inputs, {"hidden": hidden[-1]}, name=name)

        # === Config ===
        self._config = {**config, "dtype": make.policy.name}
        self._id_ranges = {"token_ids": vocabulary_size}
        self._hidden = hidden
        self._form = self.formats[0 if gated else 2]  # that it is saved in
        make.shrink_queries(blocks)

    def save_pretrained(self, folder):
        """Writes the weights and the config; whether it is gated tells under which names."""
        self._form.save(self, self._config, folder)


@keras.saving.register_keras_serializable(package="kerasattn")
class MT5Encoder(T5Encoder):
    """The encoder of `MT5` alone: `T5Encoder` with folders of its own name.

    Example:
    >>> from kerasattn.models import MT5Encoder
    >>> model = MT5Encoder(30, num_layers=1, num_heads=2, head_dim=8, hidden_dim=16,
    ...                    intermediate_dim=32)
    >>> tuple(model([[7, 8, 1]])["hidden"].shape)
    (1, 3, 16)

    Source: https://arxiv.org/abs/2010.11934.
    """

    formats = tables.MT5_ENCODER_FORMATS
