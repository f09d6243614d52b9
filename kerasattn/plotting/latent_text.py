import numpy as np

from kerasattn.plotting.attention import attention_step
from kerasattn.plotting.latents import latent_map, similarity
from kerasattn.plotting.training import training_curves

ENDINGS = {"?": "question", "？": "question", "!": "exclamation", "！": "exclamation"}
ENDINGS |= {"。": "full stop", ".": "full stop"}
POINTS = 1500  # of a map: more hide each other


def latent_text_pictures(model, history, path, sentences, latents):
    """The pictures of a trained `UniVAE`: how it learnt, where it looks, where sentences lie.

    Args:
        model: a `UniVAE` with a tokenizer.
        history: list of dicts, as `ResumableCheckpoint` keeps it.
        path: list of str, the way from one sentence to another.
        sentences: list of str, held-out ones.
        latents: (sentences, num_latent_layers, latent_dim), theirs. Maps need three of them.

    Returns:
        dict from file names to figures.

    Example:
    >>> import keras, pytest
    >>> _ = pytest.importorskip("tensorflow_text"), pytest.importorskip("matplotlib")
    >>> from kerasattn.models import UniVAE
    >>> from kerasattn.plotting import latent_text_pictures
    >>> from kerasattn.tokenizers import CharacterTokenizer
    >>> texts = ["今日好熱", "今日落雨", "聽日好凍"]
    >>> tokenizer = CharacterTokenizer.build(texts)
    >>> model = UniVAE(tokenizer.vocabulary_size, num_layers=2, num_heads=2, hidden_dim=8,
    ...                intermediate_dim=8, num_latent_layers=1, latent_dim=4, max_length=8,
    ...                tokenizer=tokenizer)
    >>> history = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]
    >>> pictures = latent_text_pictures(model, history, texts, texts, model.encode(texts))
    >>> len(pictures), "attention.png" in pictures
    (5, True)
    """
    token_ids = model.tokenizer.encode([path[0]], model.max_length)
    length = int(np.sum(token_ids != model.pad_id))
    inputs = {"decoder_token_ids": token_ids[:, :length], "latents": model.encode(token_ids)}
    if model.length == "conditioned":
        inputs["lengths"] = np.array([length], "int32")
    weights = [np.asarray(layer)[0] for layer in model.decoder_attention(inputs, training=False)]
    tokens = [model.tokenizer.vocabulary[i] for i in token_ids[0, :length]]
    pictures = {
        "training.png": training_curves(history),
        "attention.png": attention_step(weights, tokens, step=length // 2),
        "interpolation.png": similarity(path, "from one sentence to another"),
    }
    if len(latents) >= 3:
        sentences, latents = sentences[:POINTS], latents[:POINTS]
        lengths = [len(sentence) for sentence in sentences]
        endings = [ENDINGS.get(sentence[-1:], "other") for sentence in sentences]
        pictures["latents_length.png"] = latent_map(latents, lengths, "characters")
        pictures["latents_ending.png"] = latent_map(latents, endings, "ends in")
    return pictures
