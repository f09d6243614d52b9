"""Where a decoder looked while it wrote."""

import keras
import numpy as np
from keras import ops

from kerasattn.decoding import checks
from kerasattn.decoding.buckets import compiled_on, pad_batch
from kerasattn.decoding.decoder import as_decoder


def attention_weights(decoder, inputs, token_ids, *, start_ids, jit=True):
    """The attention weights of the steps that write given tokens.

    Args:
        decoder: as that of `generate`, with a method `attention_step`: as `step`, with a dict of
            weights (batch, layers, heads, keys) in the logits' place. The models of the zoo have
            it, but for those that know distances alone, Transformer-XL and XLNet.
        inputs, start_ids, jit: as those of `generate`.
        token_ids: ints (batch, steps), what was written.

    Returns:
        A dict of numpy float32 (batch, layers, heads, steps, keys): "self_attention", and with an
        encoder "cross_attention". Step i tells token i. The last `steps` keys of the
        self-attention are the tokens that the steps were fed, the start token first; before them
        stands the rest of the prompt, which the models pad on the left, or a latent.

    Raises:
        ValueError: for a decoder without such a method, or as `score`.

    Example:
    >>> from kerasattn import decoding, models
    >>> model = models.GPT2(30, num_layers=2, num_heads=4, hidden_dim=16, intermediate_dim=32)
    >>> found = model.generate([[7, 8]], max_new_tokens=5, return_attention=True, jit=False)
    >>> found.attention["self_attention"].shape  # the prompt but for its last token takes 8 keys
    (1, 2, 4, 5, 13)
    """
    decoder = as_decoder(decoder)
    check_has_attention(decoder)
    start_ids = checks.ids("start_ids", start_ids, decoder.vocabulary_size)
    token_ids = checks.sequences(token_ids, len(start_ids), decoder.vocabulary_size)
    batch, steps = token_ids.shape
    if not token_ids.size:
        raise ValueError(f"There is no token to look at, got token_ids of {token_ids.shape}.")
    inputs = keras.tree.map_structure(lambda leaf: checks.leaf(leaf, batch), inputs)
    request = {"start_ids": start_ids, "history": token_ids, "limits": start_ids}
    inputs, request = pad_batch(inputs, request, batch)
    fed = np.concatenate([request["start_ids"][:, None], request["history"][:, :-1]], axis=1)

    start = compiled_on(
        decoder,
        ("attention", steps, jit, "start"),
        lambda inputs: decoder.initial_state(inputs, steps),
        jit,
    )
    advance = compiled_on(decoder, ("attention", jit), decoder.attention_step, jit)
    state, found = start(inputs), []
    for index in range(steps):
        weights, state = advance(fed[:, index], index, state)
        found.append(keras.tree.map_structure(ops.convert_to_numpy, weights))
    return {
        name: np.stack([weights[name][:batch] for weights in found], axis=3) for name in found[0]
    }


def check_has_attention(decoder):
    """Refuses a decoder that does not tell where it looks."""
    if getattr(decoder, "attention_step", None) is None:
        raise ValueError(
            "Attention weights need a decoder with attention_step(token_ids, index, state) -> "
            "(weights, state), which this one has not."
        )
