"""Encoders that write, UniLM: one token at a time against the whole sequence run anew."""

import numpy as np
import pytest
from keras import ops

from kerasattn import decoding, models
from kerasattn.testing.arrays import run
from kerasattn.testing.checks import shake

SIZES = dict(vocabulary_size=13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=12)
PROMPTS = np.array([[2, 5, 6, 7, 3], [2, 9, 3, 0, 0]], "int32")


def log_probs_of(model, prompts, written):
    """Those of what was written, float64, of the whole sequence run without a cache."""
    inputs = {"token_ids": np.concatenate([prompts, written], axis=1)}
    inputs["padding_mask"] = np.concatenate([prompts != 0, np.ones_like(written, bool)], axis=1)
    if model.application == "unilm":
        segments = [np.zeros_like(prompts), np.ones_like(written)]
        inputs["segment_ids"] = np.concatenate(segments, axis=1)
    logits = run(model, inputs)["lm_logits"][:, prompts.shape[1] - 1 : -1].astype("float64")
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize(
    "model_class, application",
    [
        (models.RoFormer, "lm"),
        (models.BERT, "unilm"),
        (models.NEZHA, "unilm"),
        (models.ALBERT, "lm"),
        (models.RoBERTa, "unilm"),
    ],
)
def test_cached_is_uncached(model_class, application):
    # RoBERTa's published form has padding 1 and a single segment.
    more = dict(num_segments=2) if model_class is models.RoBERTa else {}
    model = model_class(**SIZES, application=application, pad_id=0, **more)
    shake(model, size=0.5)
    prompts = np.array([[2, 5, 6, 7, 3], [0, 0, 2, 9, 3]], "int32")
    written = np.array([[4, 8, 1], [7, 7, 2]], "int32")
    read = {"token_ids": prompts, "padding_mask": prompts != 0}
    read = {name: ops.convert_to_tensor(x) for name, x in read.items()}
    state = model.initial_state(read, written.shape[1])
    fed = np.concatenate([prompts[:, -1:], written[:, :-1]], axis=1)
    found = []
    for index in range(3):
        logits, state = model.step(
            ops.convert_to_tensor(fed[:, index]), ops.convert_to_tensor(index, "int32"), state
        )
        found.append(ops.convert_to_numpy(ops.log_softmax(logits)))
    expected = log_probs_of(model, prompts, written)
    np.testing.assert_allclose(np.stack(found, axis=1), expected, atol=5e-5)


def test_a_batch_is_its_rows_with_beams_and_contrast():
    model = models.BERT(**{**SIZES, "num_layers": 1}, application="unilm", max_length=9)
    shake(model, size=0.5)
    for strategy in (decoding.Beam(2), decoding.Contrastive(0.8)):
        options = dict(strategy=strategy, max_new_tokens=3, end_id=3, banned=[0], jit=False)
        together = model.generate(PROMPTS, **options, return_scores=True)
        # With another row beside it and other padding; the shape is one that is compiled.
        alone = model.generate(PROMPTS[[1, 1], :3], **options)
        np.testing.assert_array_equal(alone[0], together.token_ids[1])
        for row, prompt in enumerate(PROMPTS):
            ids = together.token_ids[row]
            ids = ids[: np.count_nonzero(ids)][None]
            expected = log_probs_of(model, prompt[prompt != 0][None], ids)[0]
            own = expected[np.arange(ids.size), ids[0]]
            np.testing.assert_allclose(together.log_probs[row, : ids.size], own, atol=5e-5)


def test_errors_say_what_to_do():
    sizes = {**SIZES, "num_layers": 1}
    with pytest.raises(ValueError, match='application="unilm"'):
        models.BERT(**sizes).generate(PROMPTS)
    model = models.BERT(**sizes, application="unilm", max_length=8)
    with pytest.raises(ValueError, match=r"8 positions.*take 9"):
        model.generate(PROMPTS, max_new_tokens=5)
    with pytest.raises(ValueError, match="num_segments of at least 2"):
        models.RoBERTa(**sizes, application="unilm").generate([[5, 6]])
    with pytest.raises(ValueError, match="no start_id"):
        model.generate(np.zeros((1, 2), "int32"))
