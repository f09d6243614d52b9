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


def log_probs_of_next(model, ids, prompt):
    """Of the token behind `ids`, of which the first `prompt` were given; float64, no cache."""
    inputs = {"token_ids": np.array([ids], "int32")}
    if model.application == "encoder":
        # As in training: the prompt sees itself, what is told sees it and what was told before.
        place = np.arange(len(ids) + 1)
        sees = (place[None] < prompt) | (place[None] < place[:, None])
        inputs["token_ids"] = np.array([[*ids, 1]], "int32")
        inputs["permutation_mask"] = sees[None]
        inputs["target_mapping"] = np.eye(len(place), dtype="float32")[None, -1:]
    if model.application == "unilm":
        inputs["segment_ids"] = (np.arange(len(ids)) >= prompt)[None].astype("int32")
    logits = ops.convert_to_numpy(model(inputs, training=False)["lm_logits"])
    logits = logits[0, -1].astype("float64")
    return logits - np.log(np.exp(logits).sum())


@pytest.mark.parametrize("application", ["encoder", "unilm", "lm"])
def test_cached_is_uncached(application):
    model = made(application, max_distance=4)
    got = model.generate(PROMPTS, max_new_tokens=4, banned=[0], return_scores=True, jit=False)
    for row, prompt in enumerate(PROMPTS):
        ids = prompt[prompt != 0].tolist()
        for token, log_prob in zip(got.token_ids[row], got.log_probs[row]):
            expected = log_probs_of_next(model, ids, np.count_nonzero(prompt))
            assert 1 + np.argmax(expected[1:]) == token
            np.testing.assert_allclose(log_prob, expected[token], atol=5e-5)
            ids.append(int(token))


def test_beams_of_a_batch_are_those_of_its_rows():
    model = made("encoder")
    options = dict(strategy=decoding.Beam(3), max_new_tokens=3, end_id=3, jit=False)
    together = model.generate(PROMPTS, **options)
    np.testing.assert_array_equal(model.generate(PROMPTS[1:, :3], **options)[0], together[1])


def test_a_model_without_the_head_says_so():
    with pytest.raises(ValueError, match='writes with the head "mlm"'):
        XLNet(**SIZES, heads=("class",)).generate(PROMPTS)
