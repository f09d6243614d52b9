import keras

from kerasattn.models.gpt2 import GPT2
from kerasattn.weights.tables import openai_gpt as tables


@keras.saving.register_keras_serializable(package="kerasattn")
class OpenAIGPT(GPT2):
    """The first GPT: `GPT2` with the norms after the sums, and none at the end.

    Args, inputs, outputs: as `GPT2`; the published model has max_length 512.

    Example:
    >>> from kerasattn.models import OpenAIGPT
    >>> model = OpenAIGPT(30, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> tuple(model([[7, 8, 3]])["lm_logits"].shape)
    (1, 3, 30)

    Source: Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018,
    section 4.1.
    """

    formats = tables.FORMATS
    norm = "post"
