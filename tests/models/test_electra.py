"""ELECTRA: its two halves; tests/models/test_golden.py has the numbers of others."""

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

import kerasattn
from kerasattn.models import ELECTRA
from kerasattn.testing import check_model

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_a_discriminator_is_saved_under_its_names(tmp_path):
    """As a generator is, of which there is a file of others."""
    model = ELECTRA(20, **SIZES, embedding_dim=8, heads=("discriminator",))
    model.save_pretrained(tmp_path)
    names = load_file(tmp_path / "model.safetensors")
    heads = {name.split(".")[0] for name in names if not name.startswith("electra.")}
    assert heads and all(name.startswith("discriminator_") for name in heads)
    again = ELECTRA.from_pretrained(tmp_path)
    # Their config names the dropout of the attention, which ours leaves to `dropout`.
    assert again.get_config() == {**model.get_config(), "attention_dropout": 0.1}
    ids = np.array([[5, 6, 7]])
    for name, value in model(ids).items():
        np.testing.assert_array_equal(array(value), array(again(ids)[name]))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the files are TensorFlow's")
def test_the_discriminator_of_bert4keras(golden):
    folder = golden("bert4keras/models/electra_discriminator")
    model = kerasattn.from_pretrained(folder)
    assert type(model) is ELECTRA and model.get_config()["heads"] == ["discriminator"]


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        ELECTRA,
        dict(
            vocabulary_size=11,
            num_layers=1,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=6,
            embedding_dim=4,
            max_length=8,
        ),
        targets=lambda batch, length: np.ones((batch, length), "int32"),
        untrained={"*self_attention/key/bias": "the softmax does not feel it"},
        skip={
            "causal": "reads both ways",
            "decoding": "has no step function",
            "jit": "BERT, of the same parts, is compiled",
            "save": "BERT, of the same parts, is saved",
            "precision": "BERT, of the same parts, has it",
            "errors": "BERT refuses what it refuses",
            "config": "BERT, of the same parts, has it; tests/models/test_golden.py has its own",
        },
    )
