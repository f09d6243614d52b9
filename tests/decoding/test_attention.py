"""Attention weights of generated steps, against the whole sequence run at once."""

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding, models
from kerasattn.testing.checks import shake

SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)
PROMPTS = np.array([[2, 5, 6, 7, 3], [2, 9, 3, 0, 0]], "int32")


def weights_at_once(attention, x, mask):
    """Softmax of the attention layer's own projections, float64: (batch, heads, query, key)."""
    queries, keys = (
        ops.convert_to_numpy(dense(x)).astype("float64").reshape(*x.shape[:2], 2, 4)
        for dense in (attention.query, attention.key)
    )
    scores = np.einsum("bqhd,bkhd->bhqk", queries, keys) / 2
    scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def test_steps_looked_where_the_whole_sequence_looks():
    model = models.GPT2(**{**SIZES, "num_layers": 2}, pad_id=0)
    shake(model, size=0.5)
    got = model.generate(
        PROMPTS, decoding.Beam(3, num_return=2), 4, banned=[0], return_attention=True, jit=False
    )
    found = got.attention["self_attention"]
    assert found.shape == (2, 2, 2, 2, 4, 8 + 4) and found.dtype == "float32"
    for row, prompt in enumerate(PROMPTS):
        prompt = prompt[prompt != 0]
        before = np.stack([prompt] * 2)
        ids = np.concatenate([before, got.token_ids[row, :, :-1]], axis=1)  # (several, length)
        hidden = model.hidden_states(ids)
        for layer in range(2):
            block = model.get_layer(f"block_{layer}")
            x = block.self_attention_norm(hidden[layer])
            mask = np.tri(ids.shape[1], dtype=bool)
            expected = weights_at_once(block.self_attention, x, mask)[:, :, len(prompt) - 1 :]
            ours = found[row, :, layer]
            np.testing.assert_allclose(ours[..., -ids.shape[1] :], expected, atol=1e-5)
            assert not ours[..., : -ids.shape[1]].any()  # padding


@pytest.mark.parametrize("model_class", [models.T5, models.BART], ids=lambda c: c.__name__)
def test_an_encoder_decoder_looks_at_what_it_read(model_class):
    model = model_class(**SIZES, pad_id=0)
    shake(model, size=0.5)
    got = model.generate(PROMPTS, None, 3, limits=[3, 1], return_attention=True, jit=False)
    of_itself, of_text = got.attention["self_attention"], got.attention["cross_attention"]
    assert of_itself.shape == (2, 1, 2, 3, 3) and of_text.shape == (2, 1, 2, 3, 8)
    written = np.array([[1, 1, 1], [1, 0, 0]])[:, None, None]  # zeros behind the end
    written = np.broadcast_to(written, (2, 1, 2, 3))
    for weights in (of_itself, of_text):
        np.testing.assert_allclose(weights.sum(-1), written, atol=1e-5)
    assert not np.triu(of_itself[0], 1).any() and not of_text[1, ..., 3:].any()


def test_other_models_that_write():
    encoder = models.BERT(**SIZES, application="unilm")
    got = encoder.generate(PROMPTS, None, 3, return_attention=True, jit=False)
    assert got.attention["self_attention"].shape == (2, 1, 2, 3, 1 + 8 - 1 + 3)
    sizes = {**SIZES, "num_layers": 2}
    latent = models.UniVAE(**sizes, num_latent_layers=1, latent_dim=4, max_length=6)
    inputs = {"latents": latent.sample(2, seed=0), "start": np.full(2, 6, "int32")}
    tokens = np.array([[5, 6, 7], [8, 9, 3]])
    found = decoding.attention_weights(latent, inputs, tokens, start_ids=[2, 2], jit=False)
    teacher = {
        "decoder_token_ids": np.array([[2, 5, 6], [2, 8, 9]]),
        "latents": inputs["latents"],
    }
    expected = latent.decoder_attention(teacher)[1]  # of the layer with a latent
    got = found["self_attention"][:, 1]
    np.testing.assert_allclose(got, ops.convert_to_numpy(expected), atol=1e-5)


def test_errors(markov):
    options = dict(start_ids=[1], max_new_tokens=2)
    with pytest.raises(ValueError, match="need a decoder with attention_step"):
        decoding.generate(
            markov.random(0), markov.inputs([0]), **options, return_attention=True, jit=False
        )
    for more in (dict(return_scores=True), dict(return_attention=True)):
        with pytest.raises(ValueError, match="stream=True gives tokens alone"):
            decoding.generate(markov.random(0), markov.inputs([0]), **options, stream=True, **more)
    model = models.XLNet(**SIZES)
    with pytest.raises(ValueError, match="need a decoder with attention_step"):
        model.generate(PROMPTS, None, 2, return_attention=True, jit=False)
