"""What encoders share: how they are put together, and the losses of their heads."""

import keras
from keras import ops

from kerasattn.models.base import BaseModel
from kerasattn.models.classifier import update_accuracy
from kerasattn.models.encoder_writing import EncoderWriting
from kerasattn.training.losses import binary_loss, label_loss, squared_loss


class Encoder(EncoderWriting, BaseModel):
    """A model that reads text, with heads on its last hidden vectors.

    Args:
        parts: `Parts`, which made its layers and knows its settings.
        text: `Text`, its inputs.
        hidden: list of what `hidden_states` returns.
        outputs: dict by name.
        id_ranges: dict from the names of further inputs to how many ids they may hold.
        max_positions: int or None, the most tokens that there are positions for.
    """

    def __init__(self, parts, text, hidden, outputs, id_ranges=None, max_positions=None):
        config = parts.config
        super().__init__(text.inputs, outputs, name=config["name"])
        self._config = {**config, "heads": list(config["heads"]), "dtype": parts.policy.name}
        self._id_ranges = {"token_ids": config["vocabulary_size"], **(id_ranges or {})}
        if "num_segments" in config:
            self._id_ranges["segment_ids"] = config["num_segments"]
        if max_positions is not None:
            self._id_ranges["position_ids"] = config["max_length"]
        self._hidden = hidden
        self.application, self.pad_id = config["application"], config["pad_id"]
        self.vocabulary_size, self.max_positions = config["vocabulary_size"], max_positions
        classes = outputs.get("class_logits")
        self._accuracy = None
        if classes is not None and classes.shape[-1] > 1:
            self._accuracy = keras.metrics.Mean(name="accuracy")

    def _check_inputs(self, inputs):
        checked = super()._check_inputs(inputs)
        if self.application == "unilm" and checked["segment_ids"] is None:
            raise ValueError(
                'application="unilm" needs segment_ids: 0 where it reads, 1 where it writes.'
            )
        length = checked["token_ids"].shape[1]
        if None not in (length, self.max_positions) and length > self.max_positions:
            raise ValueError(
                f"{self.name} has positions for {self.max_positions} tokens, got {length}."
            )
        return checked

    # === Losses ===
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The sum of the losses of the heads that y has labels for, unless `compile` was given one.

        Args:
            x: dict of the inputs.
            y: dict from the names of outputs to labels, or the labels alone if one head is trained;
                -100 counts for nothing. `mlm_logits`, `token_logits`: (batch, length), mean
                cross-entropy in nats a token (with the discriminator's head 1 where a token was
                replaced). `nsp_logits`, `sop_logits`, `class_logits`: (batch,), mean cross-entropy;
                squared error if there is one class. `start_logits`, `end_logits`: (batch,), half
                the mean cross-entropy each. A language model needs no labels: each next real token,
                in "unilm" of segment 1.
            y_pred: dict of the outputs.
            sample_weight: (batch,) or (batch, length), weights of sentences or tokens.
            training: bool.
        """
        trained = [name for name in y_pred if name.endswith("_logits")]
        if self._compile_loss is not None or not trained:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        inputs = self._check_inputs(x)
        labels = self._labels(inputs, y, trained)
        losses = [
            self._loss(name, labels[name], y_pred[name], sample_weight, inputs)
            for name in trained
            if name in labels
        ]
        return sum(losses) + sum(self.losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Those of `compile`, and the accuracy of `class_logits` if they are told in y."""
        if self._accuracy is not None:
            update_accuracy(self._accuracy, "class_logits", y, y_pred, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _labels(self, inputs, y, trained):
        """The labels by the names of the outputs."""
        if y is not None and not isinstance(y, dict):
            if len(trained) > 1:
                raise ValueError(f"Several heads are trained: give y as a dict, of {trained}.")
            y = {trained[0]: y}
        labels = dict(y or {})
        unknown = sorted(labels.keys() - set(trained))
        if unknown:
            raise ValueError(f"There are labels y for {unknown}, but the logits are {trained}.")
        if any(map(self._tells_next, trained)) and "lm_logits" not in labels:
            written = self._real(inputs)
            if self.application == "unilm":
                written = written & ops.equal(inputs["segment_ids"], 1)
            labels["lm_logits"] = ops.where(written, ops.cast(inputs["token_ids"], "int32"), -100)
        if not labels:
            raise ValueError(
                f"The loss needs labels y for {' or '.join(trained)}, -100 where nothing is asked."
            )
        return labels

    def _tells_next(self, name):
        """Whether each position of an output tells the next token, not its own."""
        return name == "lm_logits"

    def _loss(self, name, labels, logits, sample_weight, inputs):
        """The loss of one head."""
        if self._tells_next(name):
            if sample_weight is not None and len(sample_weight.shape) == 2:
                sample_weight = sample_weight[:, 1:]
            return label_loss(labels[:, 1:], logits[:, :-1], sample_weight)
        if name == "token_logits" and len(logits.shape) == 2:
            labels = ops.where(self._real(inputs), ops.cast(labels, "int32"), -100)
            return binary_loss(labels, logits, sample_weight)
        if name == "class_logits" and logits.shape[-1] == 1:
            return squared_loss(labels, logits[:, 0], sample_weight)
        loss = label_loss(labels, logits, sample_weight)
        return loss / 2 if name in ("start_logits", "end_logits") else loss

    def _real(self, inputs):
        """Where the real tokens are: bool (batch, length)."""
        if inputs["padding_mask"] is None:
            return ops.not_equal(inputs["token_ids"], self.pad_id)
        return ops.cast(inputs["padding_mask"], "bool")
