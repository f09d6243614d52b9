"""T5's encoder alone: the numbers of the whole model, from its folders and those of its own."""

import json

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file, save_file

import kerasattn
from kerasattn.models import MT5, T5, MT5Encoder, T5Encoder
from kerasattn.testing import check_model

SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, head_dim=6, hidden_dim=8) | dict(
    intermediate_dim=12, num_buckets=8, max_distance=20
)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_golden(golden, tmp_path):
    folder = golden("models/t5_v1_1")
    numbers = load_file(folder / "golden.safetensors")
    inputs = {
        "token_ids": numbers["forward/in/input_ids"].astype("int32"),
        "padding_mask": numbers["forward/in/attention_mask"].astype(bool),
    }
    expected = numbers["forward/out/encoder_last_hidden_state"][inputs["padding_mask"]]

    def check(model):
        found = array(model(inputs)["hidden"])[inputs["padding_mask"]]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)

    check(T5Encoder.from_pretrained(folder))
    # As transformers saves the encoder alone.
    tensors = load_file(folder / "model.safetensors")
    alone = {k: v for k, v in tensors.items() if k.startswith(("shared", "encoder"))}
    save_file(alone, tmp_path / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["T5EncoderModel"], "is_encoder_decoder": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = kerasattn.from_pretrained(tmp_path)
    assert type(model) is T5Encoder
    check(model)

    model.save_pretrained(tmp_path / "again")
    saved = load_file(tmp_path / "again" / "model.safetensors")
    assert saved.keys() == alone.keys()
    for name, value in alone.items():
        np.testing.assert_array_equal(saved[name], value)
    theirs = json.loads((tmp_path / "again" / "config.json").read_text())
    assert not {k for k in theirs.keys() & config.keys() if theirs[k] != config[k]}


@pytest.mark.parametrize(
    "classes, settings",
    [((T5, T5Encoder), {}), ((MT5, MT5Encoder), dict(activation="relu", gated=False))],
)
def test_folders_of_whole_models(classes, settings, tmp_path):
    whole, encoder = classes
    model = whole(**SIZES, **settings)
    model.save_pretrained(tmp_path)
    assert type(kerasattn.from_pretrained(tmp_path)) is whole
    ids = np.array([[5, 6, 0]])
    expected = array(model({"token_ids": ids, "decoder_token_ids": ids})["encoder_hidden"])
    part = encoder.from_pretrained(tmp_path)
    np.testing.assert_array_equal(array(part(ids)["hidden"]), expected)
    part.save_pretrained(tmp_path / "part")
    assert type(kerasattn.from_pretrained(tmp_path / "part")) is encoder


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the files are TensorFlow's")
def test_tensorflow_folder(golden):
    folder = golden("tf_checkpoints/t5_v1_1_tf")
    ids = np.array([[5, 6, 1, 0]])
    expected = T5.from_pretrained(folder)({"token_ids": ids, "decoder_token_ids": ids})
    found = T5Encoder.from_pretrained(folder)(ids)["hidden"]
    np.testing.assert_array_equal(array(found), array(expected["encoder_hidden"]))


@pytest.mark.slow
def test_model():
    check_model(
        T5Encoder,
        SIZES,
        targets=lambda batch, length: {"hidden": np.ones((batch, length, 8), "float32")},
        compile_options={"loss": {"hidden": "mse"}},
        skip={
            "causal": "reads both ways",
            "decoding": "an encoder",
            "jit": "T5 has it, of the same parts",
            "saved_model": "likewise",
        },
    )
