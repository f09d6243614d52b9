import keras
import numpy as np
import pytest

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
NO_SEQUENCE = {
    "padding": "pictures have none",
    "causal": "pictures have no order",
}


def pictures(batch, length):
    return RANDOM.normal(size=(batch, length + 2, 5, 2)).astype("float32")


def capsules(batch, length):
    return RANDOM.normal(size=(batch, length, 3)).astype("float32")


def four_capsules(batch, length):
    return capsules(batch, 4)


def test_primary_capsules():
    check_layer(
        layers.PrimaryCapsules,
        {"num_channels": 2, "capsule_dim": 3, "kernel_size": 3, "padding": "valid"},
        pictures,
        config_errors=[
            ({"num_channels": 0}, "must be at least 1, got 0 and 3"),
            ({"capsule_dim": 0}, "must be at least 1"),
        ],
        errors=[(np.ones((2, 9, 9), "float32"), r"\(batch, height, width, channels\)")],
        skip=NO_SEQUENCE,
        lengths=(1, 4),
    )


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_primary_capsules_are_the_grouped_channels_of_a_convolution(data_format):
    before = keras.config.image_data_format()
    keras.config.set_image_data_format(data_format)  # which is not theirs
    try:
        layer, x = layers.PrimaryCapsules(4, 2, kernel_size=3), pictures(2, 3)
    finally:
        keras.config.set_image_data_format(before)
    found = layer(x)
    channels = np.asarray(keras.ops.convert_to_numpy(layer.convolution(x)))  # (2, 2, 2, 8)
    vectors = channels.reshape(2, 2 * 2 * 4, 2)
    squares = (vectors**2).sum(-1, keepdims=True)
    expected = np.sqrt(squares) / (1 + squares) * vectors
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), expected, atol=1e-6)


def test_routing_capsules_of_a_sequence():
    check_layer(
        layers.RoutingCapsules,
        {"num_capsules": 2, "capsule_dim": 4, "num_routings": 2, "share_weights": True},
        capsules,
        padding=lambda real: {"padding_mask": real},
        config_errors=[
            ({"num_capsules": 0}, "num_capsules must be at least 1, got 0"),
            ({"num_routings": 0}, "num_routings must be at least 1, got 0"),
        ],
        errors=[(np.ones((2, 3), "float32"), r"must be \(batch, number, dim\)")],
        skip={"causal": "it pools the whole"},
        lengths=(1, 5),
    )


def test_routing_capsules_with_matrices_of_their_own():
    check_layer(
        layers.RoutingCapsules,
        {"num_capsules": 2, "capsule_dim": 4},
        four_capsules,
        skip={
            **NO_SEQUENCE,
            **dict.fromkeys(("errors", "save", "saved_model", "precision"), "in the test above"),
        },
        lengths=(4,),
    )
    with pytest.raises(ValueError, match=r"must be known, got .*share_weights=True"):
        layers.RoutingCapsules(2, 4)(keras.Input((None, 3)))


def test_votes_are_each_capsule_times_its_matrix():
    """One routing divides evenly: the squashed mean over the output capsules of the votes."""
    layer, x = layers.RoutingCapsules(2, 4, num_routings=1), four_capsules(3, 4)
    found = keras.ops.convert_to_numpy(layer(x))
    kernel = keras.ops.convert_to_numpy(layer.kernel).reshape(4, 3, 2, 4)  # (in, dim, out, dim)
    sums = np.einsum("bip,ipod->bod", x, kernel) / 2
    squares = (sums**2).sum(-1, keepdims=True)
    np.testing.assert_allclose(found, np.sqrt(squares) / (1 + squares) * sums, atol=1e-6)


def test_a_keras_mask_hides_padding_too():
    layer, x = layers.RoutingCapsules(2, 4, share_weights=True), capsules(1, 4)
    x[:, 2:] = 0
    masked = layer(keras.layers.Masking()(x))
    short = keras.ops.convert_to_numpy(layer(x[:, :2]))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(masked), short, atol=1e-6)


def test_length():
    check_layer(
        layers.CapsuleLength,
        {},
        capsules,
        errors=[(np.ones(3, "float32"), r"Capsules must be \(batch, \.\.\., dim\)")],
        lengths=(1, 4),
    )


@pytest.mark.parametrize("with_labels", [False, True])
def test_mask(with_labels):
    def inputs(batch, length):
        given = {"argument_0": four_capsules(batch, length)}
        if with_labels:  # which are read in training alone
            given["labels"] = RANDOM.integers(0, 4, batch).astype("int32")
        return given

    check_layer(
        layers.CapsuleMask,
        {},
        inputs,
        errors=[(np.ones((3, 2), "float32"), r"capsules \(batch, num_capsules, dim\)")],
        skip=NO_SEQUENCE
        | ({} if with_labels else dict.fromkeys(("save", "saved_model", "precision"), "likewise")),
        lengths=(4,),
    )


def test_mask_reads_labels_in_training_alone():
    x = np.array([[[3.0, 0.0], [0.0, 1.0]]], "float32")
    layer, labels = layers.CapsuleMask(), np.array([1])
    first, second = [[[3.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 1.0]]]
    for options, expected in (
        (dict(labels=labels, training=True), second),
        (dict(labels=labels, training=False), first),
        (dict(training=True), first),
    ):
        assert keras.ops.convert_to_numpy(layer(x, **options)).tolist() == expected
