"""What models that write what is in a picture share."""

import keras
import numpy as np
from keras import ops

from kerasattn import decoding
from kerasattn.models.base import BaseModel
from kerasattn.models.settings import check_whole
from kerasattn.models.steps import Steps
from kerasattn.models.writing import writing_options
from kerasattn.training.losses import label_loss


class Captioner(Steps, BaseModel):
    """A model with token_ids, a caption from start_id to end_id, and images.

    A subclass defines `initial_state`, of a dict of images, and `hidden_step`, the step interface
    of `kerasattn.decoding`.
    """

    _xla_on_cpu = False  # the gradient of convolutions takes it longer
    _recurrent = True

    def _check_inputs(self, inputs):
        checked = super()._check_inputs(inputs)
        if checked["images"] is None:
            raise ValueError(f"{self.name} needs images beside token_ids.")
        return checked

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Cross-entropy of each next word, in nats each, unless `compile` was given a loss.

        Args:
            x: dict of the inputs, whose captions are what is to be written.
            y: None.
            y_pred: dict of the outputs.
            sample_weight: (batch,), weights of captions.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is not None:
            raise ValueError(f"{self.name} learns the captions that it is given: y must be None.")
        token_ids = ops.cast(self._check_inputs(x)["token_ids"], "int32")[:, 1:]
        labels = ops.where(ops.equal(token_ids, self.pad_id), -100, token_ids)
        loss = label_loss(labels, y_pred["lm_logits"][:, :-1], sample_weight)
        return loss + sum(self.losses)

    def generate(self, images, strategy=None, max_new_tokens=32, **options):
        """Writes a caption for each picture.

        Args:
            images: float (batch, height, width, channels).
            strategy: of `kerasattn.decoding`, such as `Beam(4)`; `Greedy()` by default.
            max_new_tokens: int >= 0.
            **options: of `decoding.generate`. `end_id` is by default the model's own.

        Returns:
            numpy int32 (batch, max_new_tokens), without the start token; or what
            `decoding.generate` returns for several hypotheses, with scores, or as a stream,
            which gives token ids (batch,), step by step.

        Raises:
            ValueError: for images of another shape.
        """
        images = np.asarray(images, "float32")
        wanted = tuple(self._config["image_shape"])
        if images.shape[1:] != wanted:
            raise ValueError(f"images take the shape (batch, *{wanted}), got {images.shape}.")
        options.setdefault("start_ids", np.full(len(images), self.start_id, "int32"))
        return decoding.generate(
            self,
            {"images": images},
            strategy,
            max_new_tokens=max_new_tokens,
            **writing_options(self, options),
        )


def caption_inputs(image_shape):
    """The inputs of a captioner by name."""
    return {
        "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
        "images": keras.Input(tuple(image_shape), name="images"),
    }


def check_pictures(config):
    """Refuses an image_shape or filters that no network can be built of, and makes them lists.

    Raises:
        ValueError: naming what is wrong.
    """
    for name, length in (("image_shape", 3), ("filters", None)):
        sizes = config[name] = list(config[name])
        if length not in (None, len(sizes)) or not sizes:
            raise ValueError(f"{name} takes {length or 'some'} numbers, got {sizes}.")
        for size in sizes:
            check_whole(f"each number of {name}", size, least=1)
    smallest = min(config["image_shape"][:2])
    if smallest < 2 ** len(config["filters"]):
        raise ValueError(
            f"{len(config['filters'])} convolutions halve a picture too often for one of "
            f"{tuple(config['image_shape'])}."
        )


def picture_encoder(filters, policy):
    """A function from images to a grid (batch, height, width, filters[-1]), halved by each layer.

    Args:
        filters: ints, of 3 by 3 convolutions, each before a pooling of 2 by 2.
        policy: the dtype policy.
    """
    stack = []
    for i, number in enumerate(filters):
        stack += [
            keras.layers.Conv2D(
                number, 3, padding="same", activation="relu", dtype=policy, name=f"convolution_{i}"
            ),
            keras.layers.MaxPooling2D(2, dtype=policy, name=f"halving_{i}"),
        ]

    def encode(images):
        for layer in stack:
            images = layer(images)
        return images

    return encode
