"""Captioners: what every model passes, and that they learn to tell pictures apart."""

import keras
import numpy as np
import pytest

from kerasattn import decoding, layers, models
from kerasattn.testing import check_layer, check_model

RANDOM = np.random.default_rng(0)
SHAPE = (9, 8, 1)
SIZES = dict(
    vocabulary_size=11,
    image_shape=SHAPE,
    filters=[2, 3],
    embedding_dim=4,
    hidden_dim=5,
    dropout=0.0,
)
SLOW = dict.fromkeys(("save", "saved_model"), "that of soft attention is tried")
SLOW["jit"] = "XLA is off for pictures"


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def inputs(batch, length):
    return {
        "token_ids": RANDOM.integers(1, 11, (batch, length)).astype("int32"),
        "images": RANDOM.random((batch, *SHAPE)).astype("float32"),
    }


def told_step_by_step(model, given):
    """Logits of the steps, and those of the whole captions."""
    token_ids = given["token_ids"]
    images = keras.ops.convert_to_tensor(given["images"])
    state, found = model.initial_state({"images": images}, token_ids.shape[1]), []
    for index in range(token_ids.shape[1]):
        step = keras.ops.convert_to_tensor(token_ids[:, index])
        logits, state = model.step(step, index, state)
        found.append(array(logits))
    return np.stack(found, axis=1), array(model(given)["lm_logits"])


@pytest.mark.parametrize("shown", ["once", "every_step"])
def test_model_show_and_tell(shown):
    alike = dict.fromkeys(("config", "errors", "shapes"), "those of a picture shown once")
    check_model(
        models.ShowAndTell,
        {**SIZES, "shown": shown},
        inputs,
        causal=("hidden", "lm_logits"),
        decoding=told_step_by_step,
        errors=[({"token_ids": np.ones((2, 3), "int32")}, "needs images")],
        config_errors=[
            ({"shown": "never"}, "shown must be"),
            ({"filters": (2,) * 5}, "halve a picture too often"),
            ({"image_shape": (9, 8)}, "image_shape takes 3"),
        ],
        skip={
            **SLOW,
            "precision": "that of soft attention is tried",
            **(alike if shown == "every_step" else {}),
        },
        lengths=(1, 3),
    )


@pytest.mark.parametrize("attention", ["soft", "reinforce"])
def test_model_show_attend_tell(attention):
    twin = ("config", "padding", "causal", "errors", "save", "saved_model")
    check_model(
        models.ShowAttendTell,
        {**SIZES, "attention_dim": 3, "attention": attention},
        inputs,
        causal=("hidden", "lm_logits"),
        decoding=told_step_by_step,
        config_errors=[({"attention": "sharp"}, "gradient must be one of")],
        skip={"jit": "XLA is off for pictures"}
        if attention == "soft"
        else {
            **dict.fromkeys(twin, "that of soft attention is tried"),
            "jit": "XLA is off for pictures",
            "precision": "half precision may look elsewhere",
        },
        lengths=(1, 3),
    )


def test_attending_lstm():
    check_layer(
        layers.AttendingLSTM,
        {"units": 3, "attention_dim": 2, "attention": "gumbel", "temperature": 0.5, "seed": 1},
        lambda batch, length: (
            RANDOM.normal(size=(batch, length, 4)).astype("float32"),
            RANDOM.normal(size=(batch, 5, 2)).astype("float32"),
        ),
        errors=[((np.ones((2, 3)), np.ones((2, 5, 2))), "x must be")],
        config_errors=[({"units": 0}, "at least 1"), ({"temperature": 0}, "above 0")],
        skip={
            "save": "its model's test has it",
            "saved_model": "its model's test has it",
            "jit": "its model's test has it",
            "precision": "half precision may look elsewhere",
        },
        lengths=(1, 3),
    )


def pictures():
    """32 pictures of two textures, and which they are, the lower number first, as captions."""
    images, captions = np.zeros((32, 8, 8, 1), "float32"), np.full((32, 4), 2)
    captions[:, 0] = 1
    pairs = [(a, b) for b in range(8) for a in range(b + 1)]
    for row, pair in enumerate(RANDOM.permutation(len(pairs))[:32]):
        captions[row, 1:3] = 3 + np.array(pairs[pair])
        for side, texture in enumerate(RANDOM.permutation(pairs[pair])):
            bits = texture >> np.arange(4) & 1
            bits[3] = 1
            tile = np.tile(bits.reshape(2, 2), (4, 2))
            images[row, :, 4 * side : 4 * side + 4, 0] = tile
    return images, captions.astype("int32")


@pytest.mark.trains
@pytest.mark.parametrize("kind", ["once", "soft"])
def test_learns_32_captions(kind):
    images, captions = pictures()
    sizes = dict(filters=(8,), embedding_dim=24, hidden_dim=32)
    if kind == "soft":
        model = models.ShowAttendTell(
            11, (8, 8, 1), **sizes, attention_dim=16, doubly_stochastic=0.01
        )
    else:
        model = models.ShowAndTell(11, (8, 8, 1), **sizes, shown=kind)
    model.compile(keras.optimizers.Adam(0.02))
    given = {"token_ids": captions, "images": images}
    many = {name: np.concatenate([x] * 130) for name, x in given.items()}
    model.fit(many, batch_size=32, shuffle=False, verbose=0)
    if kind == "once":
        found = model.generate(images, max_new_tokens=3, jit=False)
        np.testing.assert_array_equal(found, captions[:, 1:])
        return
    told = model.generate(
        images, decoding.Beam(2), 3, return_attention=True, return_scores=True, jit=False
    )
    np.testing.assert_array_equal(told.token_ids, captions[:, 1:])
    weights = array(model(given)["attention_weights"])
    found = told.attention["cross_attention"][:, 0, 0]  # (batch, steps, places)
    np.testing.assert_allclose(found, weights[:, :3], atol=1e-5)
