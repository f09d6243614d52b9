import keras

from kerasattn.models.bart import BART
from kerasattn.ops import spans
from kerasattn.weights.tables import bart as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class MASS(BART):
    """An encoder-decoder of which the decoder writes the span that the encoder does not see.

    The body, its arguments, inputs and outputs are those of `BART`; `mask_span` makes the inputs.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import MASS
    >>> model = MASS(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> inputs, labels = model.mask_span(np.array([[11, 12, 13, 14, 15]]), [1], [3], mask_id=4)
    >>> print(np.array(inputs["decoder_token_ids"]), np.array(labels))
    [[ 4  4 12 13  4]] [[-100   12   13   14 -100]]
    >>> tuple(model(inputs)["lm_logits"].shape)
    (1, 5, 30)

    Source: https://arxiv.org/abs/1905.02450, section 3.
    """

    formats = tables.MASS_FORMATS

    def mask_span(self, token_ids, starts, lengths, mask_id):
        """The inputs and labels of texts, of each of which a span is to be told.

        Args:
            token_ids: int (batch, length), padded behind.
            starts, lengths: int (batch,), the spans.
            mask_id: int, what stands for a hidden token.

        Returns:
            dict of the model's inputs, all (batch, length), and labels (batch,
            length) for `fit` and `compute_loss`.
        """
        reads, writes, labels = spans.masked(token_ids, starts, lengths, mask_id)
        real = keras.ops.not_equal(token_ids, self.pad_id)
        inputs = {
            "token_ids": reads,
            "decoder_token_ids": writes,
            "padding_mask": real,
            "decoder_padding_mask": real,
        }
        return inputs, labels
