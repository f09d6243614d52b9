"""T5: the numbers of others, its versions, and what its writing promises."""

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

from kerasattn import decoding
from kerasattn.models import MT5, T5
from kerasattn.testing import check_model

SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, head_dim=6, hidden_dim=8) | dict(
    intermediate_dim=12, num_buckets=8, max_distance=20
)
PLAIN = dict(activation="relu", gated=False, tied_head=True)
TENSORFLOW = pytest.param(
    "tf_checkpoints/t5_v1_1_tf",
    marks=pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="TensorFlow checkpoints need TensorFlow"
    ),
)


@pytest.mark.parametrize("name", ["models/t5_v1_1", TENSORFLOW])
def test_golden(agrees_with_others, name):
    cases = () if name.startswith("tf") else ("beam4", "beam4_eos")
    agrees_with_others(T5, name, "models/t5_v1_1", tolerance=2e-4, cases=cases)


@pytest.mark.slow
def test_model(draw_pairs, one_token_at_a_time):
    check_model(
        T5,
        dict(SIZES, cross_position_bias=True),
        inputs=draw_pairs,
        decoding=one_token_at_a_time,
        skip={"causal": "what is read changes too"},
    )


def test_the_decoder_sees_neither_its_future_nor_padding():
    model = T5(**SIZES)
    read, written = np.array([[5, 6, 7, 0, 0]]), np.array([[0, 8, 9, 10]])
    expected = np.array(model({"token_ids": read, "decoder_token_ids": written})["lm_logits"])
    later = written.copy()
    later[0, 2:] = 3
    actual = np.array(model({"token_ids": read[:, :3], "decoder_token_ids": later})["lm_logits"])
    np.testing.assert_allclose(actual[:, :2], expected[:, :2], atol=1e-5)
    assert np.abs(actual[:, 2:] - expected[:, 2:]).max() > 1e-3


@pytest.mark.parametrize("model_class, settings", [(T5, PLAIN), (MT5, {})])
def test_versions_keep_their_names(model_class, settings, tmp_path):
    model = model_class(**SIZES, **settings)
    model.save_pretrained(tmp_path)
    names = load_file(tmp_path / "model.safetensors").keys()
    inner = {name.split(".")[-2] for name in names if "DenseReluDense" in name}
    assert inner == ({"wi", "wo"} if settings else {"wi_0", "wi_1", "wo"})
    assert ("lm_head.weight" in names) != bool(settings)
    again = model_class.from_pretrained(tmp_path)
    inputs = {"token_ids": np.array([[5, 6]]), "decoder_token_ids": np.array([[0, 7]])}
    np.testing.assert_array_equal(*(np.array(m(inputs)["lm_logits"]) for m in (model, again)))


def test_the_loss_is_of_labels_or_of_next_tokens():
    model = T5(**SIZES)
    labels = np.array([[5, 6, 1, -100], [7, 8, 9, 1]])
    inputs = {"token_ids": np.array([[3, 4], [5, 0]]), "decoder_token_ids": None}
    inputs["decoder_token_ids"] = np.array(ops.convert_to_numpy(model.shift_right(labels)))
    assert inputs["decoder_token_ids"].tolist() == [[0, 5, 6, 1], [0, 7, 8, 9]]
    outputs = model(inputs)
    log_probs = np.array(ops.log_softmax(outputs["lm_logits"]))
    ids = np.maximum(labels, 0)
    expected = [-log_probs[r, i, ids[r, i]] for r in range(2) for i in range(4)]
    told = labels.reshape(-1) != -100
    loss = float(model.compute_loss(inputs, labels, outputs))
    np.testing.assert_allclose(loss, np.mean(np.array(expected)[told]), rtol=1e-5)
    told[7] = False  # what comes after the decoder's last token, nothing says
    loss = float(model.compute_loss(inputs, None, outputs))
    np.testing.assert_allclose(loss, np.mean(np.array(expected)[told]), rtol=1e-5)


def test_a_batch_writes_what_each_writes_alone():
    model = T5(**SIZES, **PLAIN)
    read = np.array([[5, 6, 7, 8], [9, 3, 0, 0], [4, 0, 0, 0]], "int32")
    options = dict(strategy=decoding.Beam(3), max_new_tokens=5, jit=False)
    together = model.generate(read, **options)
    for row in range(3):  # three times, as many rows as before
        alone = model.generate(np.stack([read[row, : (read[row] != 0).sum()]] * 3), **options)
        np.testing.assert_array_equal(alone, together[[row] * 3])
    # Alone, a text is padded too, to as many tokens as all: here it is not.
    written = model.generate(read, **{**options, "strategy": decoding.Greedy()})
    for ids, row in zip(read, written, strict=True):
        row = row[: list(row).index(1) + 1] if 1 in row else row
        inputs = {"token_ids": ids[None, ids != 0], "decoder_token_ids": [[0, *row[:-1]]]}
        whole = np.array(model(inputs)["lm_logits"])[0]
        np.testing.assert_array_equal(row, whole.argmax(axis=-1))
