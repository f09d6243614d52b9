"""Encoders that write, UniLM: one token at a time against the whole sequence run anew."""

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding, models
from kerasattn.testing.checks import shake

SIZES = dict(vocabulary_size=13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=12)
PROMPTS = np.array([[2, 5, 6, 7, 3], [2, 9, 3, 0, 0]], "int32")


def logits_of(model, ids, prompt):
    """Those of the last position, float64, the whole sequence run without a cache."""
    inputs = {"token_ids": np.array([ids], "int32")}
    if model.application == "unilm":
        inputs["segment_ids"] = np.array([[0] * prompt + [1] * (len(ids) - prompt)], "int32")
    logits = ops.convert_to_numpy(model(inputs, training=False)["lm_logits"])
    return logits[0, -1].astype("float64")


@pytest.mark.parametrize(
    "model_class, application",
    [
        (models.RoFormer, "unilm"),
        (models.RoFormer, "lm"),
        (models.BERT, "unilm"),
        (models.NEZHA, "unilm"),
        (models.NEZHA, "lm"),
        (models.ALBERT, "lm"),
        (models.RoBERTa, "unilm"),
    ],
)
def test_cached_is_uncached(model_class, application):
    # RoBERTa's published form has padding 1 and a single segment.
    more = dict(num_segments=2) if model_class is models.RoBERTa else {}
    model = model_class(**SIZES, application=application, pad_id=0, **more)
    shake(model, size=0.5)
    got = model.generate(PROMPTS, max_new_tokens=4, banned=[0], return_scores=True, jit=False)
    for row, prompt in enumerate(PROMPTS):
        ids = prompt[prompt != 0].tolist()
        for token, log_prob in zip(got.token_ids[row], got.log_probs[row]):
            logits = logits_of(model, ids, np.count_nonzero(prompt))
            assert 1 + np.argmax(logits[1:]) == token
            own = logits[token] - np.log(np.exp(logits).sum())
            np.testing.assert_allclose(log_prob, own, atol=5e-5)
            ids.append(int(token))


def test_a_batch_is_its_rows_with_beams_and_contrast():
    model = models.BERT(**SIZES, application="unilm", max_length=9)
    shake(model)
    for strategy in (decoding.Beam(3), decoding.Contrastive(0.8)):
        options = dict(strategy=strategy, max_new_tokens=4, end_id=3, jit=False)
        together = model.generate(PROMPTS, **options)
        alone = model.generate(PROMPTS[1:, :3], **options)
        np.testing.assert_array_equal(alone[0], together[1])


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match='application="unilm"'):
        models.BERT(**SIZES).generate(PROMPTS)
    model = models.BERT(**SIZES, application="unilm", max_length=8)
    with pytest.raises(ValueError, match=r"8 positions.*take 9"):
        model.generate(PROMPTS, max_new_tokens=5)
    with pytest.raises(ValueError, match="num_segments of at least 2"):
        models.RoBERTa(**SIZES, application="unilm").generate([[5, 6]])
    with pytest.raises(ValueError, match="no start_id"):
        model.generate(np.zeros((1, 2), "int32"))
