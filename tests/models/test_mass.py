"""MASS: what either side reads and tells; the body is BART's."""

import numpy as np
import pytest
from keras import ops

import kerasattn
from kerasattn.models import MASS
from kerasattn.ops import spans

SIZES = dict(vocabulary_size=20, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_either_side_reads_what_the_other_does_not():
    token_ids = np.array([[11, 12, 13, 14, 15, 16], [11, 12, 13, 14, 1, 1]])
    reads, writes, labels = map(array, spans.masked(token_ids, [2, 0], [3, 1], mask_id=4))
    # Figure 1 of the paper: of x1 ... x6 the span x3 x4 x5.
    assert reads.tolist() == [[11, 12, 4, 4, 4, 16], [4, 12, 13, 14, 1, 1]]
    assert writes.tolist() == [[4, 4, 4, 13, 14, 4], [4] * 6]
    assert labels.tolist() == [[-100, -100, 13, 14, 15, -100], [11] + [-100] * 5]


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_span_of_any_length(length):
    token_ids = np.array([[11, 12, 13, 14, 15]])
    reads, _, labels = map(array, spans.masked(token_ids, [0], [length], mask_id=4))
    assert (reads == 4).sum() == (labels != -100).sum() == length


def test_the_loss_is_of_the_span_and_padding_changes_nothing():
    model = MASS(**SIZES, dropout=0.0)
    inputs, labels = model.mask_span(np.array([[11, 12, 13, 14, 15]]), [1], [3], mask_id=4)
    outputs = model(inputs)
    log_probs = array(ops.log_softmax(outputs["lm_logits"]))[0]
    expected = -np.mean([log_probs[1, 12], log_probs[2, 13], log_probs[3, 14]])
    loss = float(model.compute_loss(inputs, labels, outputs))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    padded, _ = model.mask_span(np.array([[11, 12, 13, 14, 15, 1, 1]]), [1], [3], mask_id=4)
    found = array(model(padded)["lm_logits"])[:, :5]
    np.testing.assert_allclose(found, array(outputs["lm_logits"]), atol=1e-5)
    # The encoder's hidden tokens reach the decoder through nothing but its own.
    other, _ = model.mask_span(np.array([[11, 12, 13, 19, 15]]), [1], [3], mask_id=4)
    found = array(model(other)["lm_logits"])[:, :4]
    np.testing.assert_allclose(found, array(outputs["lm_logits"])[:, :4], atol=1e-5)


def test_folders_of_its_own_name(tmp_path):
    model = MASS(**SIZES)
    model.save_pretrained(tmp_path)
    again = kerasattn.from_pretrained(tmp_path)
    assert type(again) is MASS and again.get_config()["num_layers"] == 1
    inputs, _ = model.mask_span(np.array([[11, 12, 13]]), [1], [1], mask_id=4)
    np.testing.assert_array_equal(*(array(m(inputs)["lm_logits"]) for m in (model, again)))
