"""From an encoder to a model of sentences."""

from kerasattn import heads
from kerasattn.models.base import BaseModel


def sentence_encoder(model, pooling="mean", normalize=True, name="sentence_encoder"):
    """A model with the inputs and weights of an encoder that gives one vector a text.

    Args:
        model: any model of the zoo that reads one text, such as `BERT`.
        pooling, normalize: see `heads.SentenceEmbedding`.
        name: str, of the new model.

    Returns:
        a `keras.Model` whose output is `embedding` (batch, hidden_dim), float32.

    Raises:
        ValueError: for a model that reads two texts.

    Example:
    >>> from kerasattn.models import BERT, sentence_encoder
    >>> bert = BERT(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> tuple(sentence_encoder(bert)([[2, 7, 8, 3], [2, 9, 3, 0]])["embedding"].shape)
    (2, 16)

    Source: https://arxiv.org/abs/1908.10084, section 3.
    """
    inputs = dict(model._inputs_struct)
    if "decoder_token_ids" in inputs:
        raise ValueError(f"{model.name} reads two texts: take an encoder, such as T5Encoder.")
    real = model.get_layer("padding").output  # (batch, length)
    embedding = heads.SentenceEmbedding(pooling, normalize, name="embedding")
    made = BaseModel(inputs, {"embedding": embedding(model.output["hidden"], real)}, name=name)
    made._id_ranges = model._id_ranges
    return made
