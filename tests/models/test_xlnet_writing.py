"""XLNet that writes: one token at a time against the whole sequence run anew."""

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding
from kerasattn.models import XLNet
from kerasattn.testing.checks import shake

SIZES = dict(vocabulary_size=13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=12)
PROMPTS = np.array([[2, 5, 6, 7, 3], [2, 9, 3, 0, 0]], "int32")


def made(application, **more):
    model = XLNet(**SIZES, application=application, pad_id=0, **more)
    shake(model, size=0.5)
    return model


def log_probs_of_next(model, prompt, ids):
    """Of each of `ids`, written after a prompt; float64, no cache: (new, vocabulary)."""
    text = [*prompt, *ids]
    inputs = {"token_ids": np.array([text], "int32")}
    place = np.arange(len(text))
    told = slice(len(prompt) - 1, -1)
    if model.application == "encoder":
        # As in training: the prompt sees itself, what is told sees it and what was told before.
        sees = (place[None] < len(prompt)) | (place[None] < place[:, None])
        inputs["permutation_mask"] = sees[None]
        inputs["target_mapping"] = np.eye(len(text), dtype="float32")[None, len(prompt) :]
        told = slice(None)
    if model.application == "unilm":
        inputs["segment_ids"] = (place >= len(prompt))[None].astype("int32")
    logits = ops.convert_to_numpy(model(inputs, training=False)["lm_logits"])
    logits = logits[0, told].astype("float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.parametrize(
    "application, strategy",
    [("encoder", decoding.Beam(3)), ("unilm", decoding.Greedy()), ("lm", decoding.Greedy())],
)
def test_cached_is_uncached(application, strategy):
    """The log-probabilities of a padded batch are those of each row alone, run anew."""
    model = made(application, max_distance=4)
    got = model.generate(PROMPTS, strategy, 4, banned=[0], end_id=3, return_scores=True, jit=False)
    for row, prompt in enumerate(PROMPTS):
        prompt = prompt[prompt != 0].tolist()
        length = np.count_nonzero(got.log_probs[row])
        assert length == 4 or got.token_ids[row, length - 1] == 3
        ids = got.token_ids[row, :length].tolist()
        expected = log_probs_of_next(model, prompt, ids)
        np.testing.assert_allclose(
            got.log_probs[row, :length], expected[np.arange(length), ids], atol=5e-5
        )
        if strategy == decoding.Greedy():
            assert (1 + np.argmax(expected[:, 1:], axis=1)).tolist() == ids


def test_a_model_without_the_head_says_so():
    with pytest.raises(ValueError, match='writes with the head "mlm"'):
        XLNet(**SIZES, heads=("class",)).generate(PROMPTS)
