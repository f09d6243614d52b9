import keras

from kerasattn.models.settings import check_settings
from kerasattn.models.tagger import Tagger


@keras.saving.register_keras_serializable(package="kerasattn")
class TransformerCRF(Tagger):
    """Tags tokens by a CRF on any encoder of the zoo, whose layers and weights it shares.

    Args:
        encoder: a model of the zoo that reads one text, such as `BERT`.
        num_tags: int.
        constraints: dict of what `layers.CRF` takes, as `TaggingScheme.constraints()` gives it.
        use_crf: bool; otherwise every token is tagged by itself.
        dropout: float in [0, 1), of the hidden vectors.
        seed: int or None, of that dropout.

    Inputs are those of the encoder, outputs those of `Tagger`: hidden, token_logits, tags.

    Raises:
        ValueError: for what is no encoder.

    Example:
    >>> from kerasattn.models import BERT, TransformerCRF
    >>> bert = BERT(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, heads=())
    >>> model = TransformerCRF(bert, num_tags=5)
    >>> tuple(model([[2, 7, 8, 3], [2, 9, 3, 0]])["tags"].shape)
    (2, 4)

    Source: https://arxiv.org/abs/1810.04805, section 5.3; https://arxiv.org/abs/1508.01991.
    """

    def __init__(
        self,
        encoder,
        num_tags,
        constraints=None,
        use_crf=True,
        dropout=0.1,
        seed=None,
        dtype=None,
        name="transformer_crf",
    ):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_settings(config)
        inputs = getattr(encoder, "_inputs_struct", None)
        if not isinstance(inputs, dict) or "hidden" not in encoder.output:
            raise ValueError(f"encoder must be a model of the zoo, got {encoder!r}.")
        if "decoder_token_ids" in inputs:
            raise ValueError(f"{encoder.name} reads two texts: take an encoder, as T5Encoder.")
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        real = encoder.get_layer("padding").output  # (batch, length)
        hidden = [*encoder._hidden[:-1], encoder.output["hidden"]]
        super().__init__(config, policy, dict(inputs), real, hidden)
        self._id_ranges = encoder._id_ranges
        object.__setattr__(self, "_reads", encoder._check_inputs)

    def _check_inputs(self, inputs):
        # Positions, segments and more are the encoder's to judge.
        return self._reads(inputs)

    def _real(self, inputs):
        if inputs["padding_mask"] is None:
            return self.get_layer("padding")(inputs["token_ids"])
        return self.get_layer("padding")(inputs["token_ids"], inputs["padding_mask"])

    def get_config(self):
        config = super().get_config()
        return {**config, "encoder": keras.saving.serialize_keras_object(config["encoder"])}
