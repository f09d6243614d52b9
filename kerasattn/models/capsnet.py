import math

import keras
from keras import ops

from kerasattn import layers
from kerasattn.models.base import BaseModel
from kerasattn.models.settings import check_settings, check_whole
from kerasattn.ops import routing
from kerasattn.training.margin_loss import MarginLoss


@keras.saving.register_keras_serializable(package="kerasattn")
class CapsNet(BaseModel):
    """A capsule network: one vector for each class, as long as the class is likely to be there.

    A convolution, capsules at each place of what it gives, and a capsule for each class, made of
    them by dynamic routing. A decoder draws the picture again out of the capsule of its class,
    which makes the capsule hold all of it: the way it is written, its width, its slant.

    Args:
        image_shape: (height, width, channels), ints.
        num_classes: int >= 1.
        num_routings: int >= 1, rounds of routing.
        num_filters: int, of the first convolution.
        kernel_size: int, of both convolutions.
        num_channels, primary_dim: ints, capsules at each place, and numbers in one.
        capsule_dim: int, numbers in the capsule of a class.
        decoder_dims: ints, widths of the decoder's hidden layers, or None for no decoder.
        reconstruction_weight: float >= 0, the weight of the squared error, summed over the pixels.

    Inputs:
        images: float (batch, height, width, channels) in [0, 1].

    Outputs:
        capsules (batch, num_classes, capsule_dim); class_lengths (batch, num_classes), float32 in
        [0, 1); with a decoder reconstruction (batch, height, width, channels), of the longest
        capsule, in [0, 1].

    Raises:
        ValueError: for sizes below 1, or images that the kernels do not fit into.

    Example:

    >>> import numpy as np
    >>> from kerasattn.models import CapsNet
    >>> model = CapsNet((12, 12, 1), 3, num_filters=8, kernel_size=5, num_channels=2,
    ...                 decoder_dims=(16,))
    >>> images, labels = np.random.default_rng(0).random((6, 12, 12, 1)), np.arange(6) % 3
    >>> model.compile("adam")  # then model.fit(images, labels): the model knows its loss
    >>> outputs = model(images)
    >>> tuple(outputs["class_lengths"].shape), tuple(outputs["reconstruction"].shape)
    ((6, 3), (6, 12, 12, 1))

    Source: https://arxiv.org/abs/1710.09829 (Sabour, Frosst, Hinton 2017), section 4.
    """

    _xla_on_cpu = False  # the gradient of a convolution with strides takes it 30 times as long

    def __init__(
        self,
        image_shape=(28, 28, 1),
        num_classes=10,
        num_routings=3,
        num_filters=256,
        kernel_size=9,
        num_channels=32,
        primary_dim=8,
        capsule_dim=16,
        decoder_dims=(512, 1024),
        reconstruction_weight=0.0005,
        dtype=None,
        name="capsnet",
    ):
        image_shape = tuple(image_shape)
        decoder_dims = None if decoder_dims is None else list(decoder_dims)
        config = dict(
            image_shape=list(image_shape),
            num_classes=num_classes,
            num_routings=num_routings,
            num_filters=num_filters,
            kernel_size=kernel_size,
            num_channels=num_channels,
            primary_dim=primary_dim,
            capsule_dim=capsule_dim,
            decoder_dims=decoder_dims,
            reconstruction_weight=reconstruction_weight,
            name=name,
        )
        _check(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        # === Layers ===
        convolution = keras.layers.Conv2D(
            num_filters,
            kernel_size,
            data_format="channels_last",
            activation="relu",
            dtype=policy,
            name="convolution",
        )
        primary = layers.PrimaryCapsules(
            num_channels, primary_dim, kernel_size, strides=2, dtype=policy, name="primary_capsules"
        )
        routed = layers.RoutingCapsules(
            num_classes, capsule_dim, num_routings, dtype=policy, name="class_capsules"
        )
        length = layers.CapsuleLength(dtype=policy, name="class_lengths")
        mask = layers.CapsuleMask(dtype=policy, name="capsule_mask")
        widths = decoder_dims or []
        decoder = [
            keras.layers.Dense(width, activation="relu", dtype=policy, name=f"decoder_{i}")
            for i, width in enumerate(widths)
        ]
        pixels = math.prod(image_shape)
        decoder += [keras.layers.Dense(pixels, activation="sigmoid", dtype=policy, name="pixels")]

        # === Model ===
        images = keras.Input(image_shape, name="images")
        features = convolution(images)  # (batch, height, width, num_filters)
        low = primary(features)  # (batch, places * num_channels, primary_dim)
        capsules = routed(low)  # (batch, num_classes, capsule_dim)
        outputs = {"capsules": capsules, "class_lengths": length(capsules)}
        if decoder_dims is not None:
            x = keras.layers.Flatten(dtype=policy, name="flatten")(mask(capsules))
            for dense in decoder:
                x = dense(x)
            outputs["reconstruction"] = keras.layers.Reshape(
                image_shape, dtype=policy, name="reconstruction"
            )(x)
        super().__init__({"images": images}, outputs, name=name)

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._hidden = [features, low, capsules]
        self._margin_loss = MarginLoss()
        self._accuracy = keras.metrics.Mean(name="accuracy")

    def reconstruct(self, capsules, labels=None):
        """What the decoder draws of one capsule of each row.

        Args:
            capsules: float (batch, num_classes, capsule_dim), as the model gives them, or changed.
            labels: int (batch,), or (batch, number) for several pictures of a row; None for the
                longest capsule.

        Returns:
            (batch, height, width, channels), or (batch, number, height, width, channels).

        Raises:
            ValueError: if the model has no decoder.
        """
        if "reconstruction" not in self.output_names:
            raise ValueError("This CapsNet was made with decoder_dims=None and draws no pictures.")
        capsules = ops.convert_to_tensor(capsules)
        if labels is None:
            x = self.get_layer("capsule_mask")(capsules)
        else:
            x = routing.keep_labelled(capsules, ops.convert_to_tensor(labels))
        x = ops.reshape(x, (*ops.shape(x)[:-2], x.shape[-2] * x.shape[-1]))
        for i in range(len(self._config["decoder_dims"])):
            x = self.get_layer(f"decoder_{i}")(x)
        x = self.get_layer("pixels")(x)
        return ops.reshape(x, (*ops.shape(x)[:-1], *self._config["image_shape"]))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The margin loss and the decoder's squared error, unless `compile` was given a loss.

        Args:
            x: dict of the inputs.
            y: int (batch,), the classes; or, for pictures of several things, a dict of `labels`
                (batch, number) and `images` (batch, number, height, width, channels), each alone,
                which the decoder is to draw.
            y_pred: dict of the outputs.
            sample_weight: (batch,), weights of pictures.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        labels, targets = self._labels(x, y)
        loss = self._margin_loss(labels, y_pred["class_lengths"], sample_weight)
        if "reconstruction" in y_pred and self._config["reconstruction_weight"]:
            drawn = self.reconstruct(y_pred["capsules"], labels)
            errors = ops.square(ops.cast(drawn, "float32") - ops.cast(targets, "float32"))
            axes = tuple(range(len(labels.shape), len(errors.shape)))
            errors = ops.sum(errors, axis=axes)  # (batch,) or (batch, number)
            if sample_weight is not None:
                weight = ops.cast(sample_weight, "float32")
                errors = errors * (weight[:, None] if len(errors.shape) == 2 else weight)
            loss = loss + self._config["reconstruction_weight"] * ops.mean(errors)
        return loss + sum(self.losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Those of `compile`, and the accuracy: whether the longest capsules are the labels'."""
        if self._compile_loss is None:
            labels, _ = self._labels(x, y)
            labels = labels if len(labels.shape) == 2 else labels[:, None]
            _, longest = ops.top_k(y_pred["class_lengths"], labels.shape[1])
            same = ops.sort(longest, axis=1) == ops.sort(ops.cast(labels, longest.dtype), axis=1)
            self._accuracy.update_state(ops.all(same, axis=1), sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _labels(self, x, y):
        """Labels, and the pictures that the decoder is to draw."""
        labels, targets = (y.get("labels"), y.get("images")) if isinstance(y, dict) else (y, None)
        if labels is None:
            raise ValueError("CapsNet needs labels y, (batch,) of integers.")
        labels = ops.convert_to_tensor(labels)
        if "int" not in keras.backend.standardize_dtype(labels.dtype):
            raise ValueError(f"CapsNet takes labels that are integers, got {labels.dtype}.")
        if len(labels.shape) not in (1, 2):
            raise ValueError(
                f"Labels must be (batch,) or (batch, number), got {tuple(labels.shape)}."
            )
        if targets is None and len(labels.shape) == 2 and "reconstruction" in self.output_names:
            raise ValueError(
                "Pictures of several things need y as a dict of labels (batch, number) and images "
                "(batch, number, height, width, channels), each alone."
            )
        return labels, self._check_inputs(x)["images"] if targets is None else targets


def _check(config):
    check_settings(config)
    shape = config["image_shape"]
    if len(shape) != 3:
        raise ValueError(f"image_shape is (height, width, channels), got {tuple(shape)}.")
    for size in shape:
        check_whole("each size of image_shape", size, least=1)
    for width in config["decoder_dims"] or ():
        check_whole("each width of decoder_dims", width, least=1)
    check_whole("kernel_size", config["kernel_size"], least=1)
    kernel = config["kernel_size"]
    if min(shape[:2]) < 2 * kernel - 1:
        raise ValueError(
            f"Two convolutions with kernel_size={kernel} need pictures of at least "
            f"{2 * kernel - 1} by {2 * kernel - 1}, got image_shape={tuple(shape)}."
        )
    if not 0 <= config["reconstruction_weight"] < math.inf:
        raise ValueError(
            "reconstruction_weight must be finite and not negative, got "
            f"{config['reconstruction_weight']}."
        )
