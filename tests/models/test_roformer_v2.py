"""RoFormerV2: bert4keras' numbers, and how it starts."""

import keras
import numpy as np
import pytest
from keras import ops

import kerasattn
from kerasattn.models import RoFormer, RoFormerV2
from kerasattn.testing import check_model

SIZES = dict(vocabulary_size=11, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=6)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the files are TensorFlow's")
@pytest.mark.parametrize("name", ["roformer_v2_encoder", "roformer_v2_mlm"])
def test_bert4keras(golden, name, tmp_path):
    folder = golden(f"bert4keras/models/{name}")
    numbers = np.load(folder / "golden.npz")
    heads = ("mlm",) if name.endswith("mlm") else ()
    model = kerasattn.from_pretrained(folder, heads=heads)
    assert type(model) is RoFormerV2
    token_ids = numbers["in_0"]
    places = np.broadcast_to(np.arange(token_ids.shape[1]), token_ids.shape)
    inputs = {
        "token_ids": token_ids,
        "segment_ids": numbers["in_1"],
        # There position 0 is real whatever stands there, and positions count padding.
        "padding_mask": (token_ids != 0) | (places == 0),
        "position_ids": places,
    }
    outputs = model(inputs)
    found = ops.softmax(outputs["mlm_logits"]) if heads else outputs["hidden"]
    np.testing.assert_allclose(array(found), numbers["out_0"], rtol=0, atol=1e-4)

    model.save_pretrained(tmp_path)
    again = kerasattn.from_pretrained(tmp_path)
    assert again.get_config() == model.get_config()
    for weight, twin in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(array(weight.value), array(twin.value))


def test_it_has_neither_biases_nor_norms():
    model = RoFormerV2(**SIZES)
    assert {weight.path.split("/")[-1] for weight in model.weights} == {"kernel", "embeddings"}


def test_deeper_models_start_smaller():
    sizes = dict(SIZES, num_layers=4, hidden_dim=64, intermediate_dim=256, vocabulary_size=500)
    model = RoFormerV2(**sizes)
    fan_in = {"intermediate": 64, "output": 256, "query": 64}
    for weight in model.weights:
        name = weight.path.split("/")[-2]
        if "block_3" in weight.path and name in fan_in and "feed" in weight.path:
            expected = (4 * fan_in[name]) ** -0.5
            np.testing.assert_allclose(np.std(array(weight.value)), expected, rtol=0.05)


@pytest.mark.parametrize("model_class", [RoFormer, RoFormerV2])
def test_values_turn_too(model_class, tmp_path):
    """With values that turn, what one token gives another depends on where they both stand."""
    for turns in (False, True):
        model = model_class(**SIZES, rotary_value=turns, heads=())
        here = {"token_ids": np.array([[5, 6]]), "position_ids": np.array([[0, 1]])}
        there = {**here, "position_ids": np.array([[7, 8]])}
        moved = np.abs(array(model(there)["hidden"]) - array(model(here)["hidden"])).max()
        assert (moved > 1e-3) == turns
    model.save_pretrained(tmp_path)
    assert model_class.from_pretrained(tmp_path).get_config()["rotary_value"]


@pytest.mark.slow
def test_what_every_model_passes():
    check_model(
        RoFormerV2,
        dict(SIZES, application="lm", rotary_value=True),
        causal=("hidden", "lm_logits"),
        skip={
            "decoding": "has no step function",
            "jit": "BERT is compiled, its norm in a test of its own",
            "saved_model": "BERT is exported, its norm in a test of its own",
            "save": "RoFormer, of the same parts, is saved",
            "errors": "RoFormer refuses what it refuses",
        },
    )
