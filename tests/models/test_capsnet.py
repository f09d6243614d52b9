import keras
import numpy as np
import pytest

from kerasattn.models import CapsNet
from kerasattn.testing import check_model

TINY = dict(
    image_shape=[9, 9, 1],
    num_classes=3,
    num_routings=2,
    num_filters=4,
    kernel_size=3,
    num_channels=2,
    primary_dim=4,
    capsule_dim=4,
)
RANDOM = np.random.default_rng(0)
ONCE = keras.backend.backend() == "tensorflow"  # whose graphs take longer than a run without


def images(batch, length):
    return {"images": RANDOM.random((batch, 9, 9, 1)).astype("float32")}


def bars(number):
    """Pictures of a bar, upright, level or both, and which."""
    labels = np.arange(number) % 3
    x = np.zeros((number, 9, 9, 1), "float32")
    for picture, label in zip(x, labels):
        place = RANDOM.integers(2, 7)
        if label != 0:
            picture[place] = 1
        if label != 1:
            picture[:, place] = 1
    return x, labels


def test_model():
    check_model(
        CapsNet,
        {**TINY, "decoder_dims": [6], "reconstruction_weight": 0.1},
        images,
        targets=lambda batch, length: RANDOM.integers(0, 3, batch),
        errors=[
            ({"images": np.ones((2, 9, 9), "float32")}, "images takes the shape"),
            ({"pictures": np.ones((2, 9, 9, 1), "float32")}, "has the inputs"),
        ],
        config_errors=[
            ({"num_classes": 0}, "num_classes must be an int of at least 1"),
            ({"image_shape": [9, 9]}, r"image_shape is \(height, width, channels\)"),
            ({"image_shape": [4, 9, 1]}, "need pictures of at least 5 by 5"),
            ({"decoder_dims": [0]}, "each width of decoder_dims"),
            ({"reconstruction_weight": -1.0}, "reconstruction_weight must be finite"),
        ],
        skip={
            "padding": "pictures have none",
            "causal": "pictures have no order",
            "decoding": "it writes nothing",
            "saved_model": "the layers' own tests have it",
        },
        lengths=(1,),
    )


def test_numbers_of_parameters():
    """Those of the paper: 8.2 M, and 6.8 M without the decoder."""
    assert CapsNet().count_params() == 8_215_568
    assert CapsNet(decoder_dims=None).count_params() == 6_804_224


@pytest.fixture(scope="module")
def trained():
    keras.utils.set_random_seed(0)
    model = CapsNet(**TINY, decoder_dims=[32], reconstruction_weight=0.02, dtype="mixed_float16")
    model.compile(keras.optimizers.Adam(0.01))
    history = model.fit(*bars(384), epochs=6, batch_size=32, verbose=0).history
    model.run_eagerly = ONCE
    return model, history


def test_learns_in_mixed_precision(trained):
    model, history = trained
    assert np.isfinite(history["loss"]).all() and history["accuracy"][-1] > 0.9
    assert all(np.isfinite(keras.ops.convert_to_numpy(w)).all() for w in model.weights)
    x, labels = bars(30)
    outputs = model.predict(x, verbose=0)
    assert (outputs["class_lengths"].argmax(-1) == labels).mean() > 0.9
    assert outputs["class_lengths"].dtype == "float32"
    # What is drawn is nearer to the picture than what is drawn of another one.
    drawn = outputs["reconstruction"].astype("float32")
    assert np.square(drawn - x).mean() < 0.9 * np.square(drawn - x[::-1]).mean()
    loss, accuracy = model.evaluate(x, labels, verbose=0)
    assert accuracy > 0.9 and np.isfinite(loss)


def test_reconstruct(trained):
    model, _ = trained
    x, labels = bars(3)
    outputs = model.predict(x, verbose=0)
    capsules, array = outputs["capsules"], lambda y: np.asarray(keras.ops.convert_to_numpy(y))
    longest = outputs["class_lengths"].argmax(-1)
    np.testing.assert_array_equal(array(model.reconstruct(capsules)), outputs["reconstruction"])
    several = array(model.reconstruct(capsules, np.stack([longest, labels * 0], axis=1)))
    assert several.shape == (3, 2, 9, 9, 1)
    np.testing.assert_allclose(several[:, 0], outputs["reconstruction"], atol=2e-3)
    one = array(model.reconstruct(capsules, labels * 0))
    np.testing.assert_allclose(several[:, 1], one, atol=2e-3)
    with pytest.raises(ValueError, match="decoder_dims=None"):
        CapsNet(**TINY, decoder_dims=None).reconstruct(capsules)


def test_loss_is_that_of_the_paper():
    """The margin loss, and 0.0005 times the squared error, summed over the pixels."""
    model = CapsNet(**TINY, decoder_dims=[6])
    model.compile("sgd")
    model.run_eagerly = ONCE
    x, labels = bars(6)
    outputs = model.predict(x, verbose=0)
    drawn = keras.ops.convert_to_numpy(model.reconstruct(outputs["capsules"], labels))
    present, lengths = np.eye(3)[labels], outputs["class_lengths"]
    margin = present * np.maximum(0, 0.9 - lengths) ** 2
    margin += 0.5 * (1 - present) * np.maximum(0, lengths - 0.1) ** 2
    rows = margin.sum(-1) + 0.0005 * np.square(drawn - x).sum((1, 2, 3))
    loss, accuracy = model.evaluate(x, labels, verbose=0)
    np.testing.assert_allclose(loss, rows.mean(), rtol=1e-5)
    np.testing.assert_allclose(accuracy, (lengths.argmax(-1) == labels).mean(), atol=1e-6)

    # Two things in each picture, of which the decoder draws each alone.
    alone, classes = np.stack([x, x[::-1]], axis=1), np.stack([labels, (labels + 1) % 3], axis=1)
    several = {"labels": classes, "images": alone}
    drawn = keras.ops.convert_to_numpy(model.reconstruct(outputs["capsules"], classes))
    present = np.maximum(present, np.eye(3)[classes[:, 1]])
    margin = present * np.maximum(0, 0.9 - lengths) ** 2
    margin += 0.5 * (1 - present) * np.maximum(0, lengths - 0.1) ** 2
    expected = margin.sum(-1).mean() + 0.0005 * np.square(drawn - alone).sum((2, 3, 4)).mean()
    loss, accuracy = model.evaluate(x, several, verbose=0)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    longest = np.argsort(lengths)[:, 1:]
    right = np.mean([set(a) == set(b) for a, b in zip(longest, classes)])
    np.testing.assert_allclose(accuracy, right, atol=1e-6)


def test_labels_that_cannot_be_read():
    model = CapsNet(**TINY, decoder_dims=[6])
    model.compile("sgd")
    x, labels = bars(4)
    outputs = model(x)
    for y, message in (
        (None, "needs labels y"),
        (labels.astype("float32"), "labels that are integers"),
        (labels[:, None, None], r"\(batch,\) or \(batch, number\)"),
        (np.stack([labels, labels], axis=1), "dict of labels .* and images"),
    ):
        with pytest.raises(ValueError, match=message):
            model.compute_loss({"images": x}, y, outputs)
    with pytest.raises(ValueError, match="no format of folders"):
        model.save_pretrained("nowhere")


def test_xla_is_off_by_default_on_tensorflow(tmp_path):
    """Keras' own file says "auto": it may be loaded where it is worth the time."""
    model = CapsNet(**TINY)
    model.compile("sgd")
    if keras.backend.backend() == "tensorflow":
        assert model.jit_compile is False
    assert model.get_compile_config()["jit_compile"] == "auto"
