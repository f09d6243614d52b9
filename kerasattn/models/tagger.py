import functools

import keras
import numpy as np
from keras import ops

from kerasattn import heads, layers
from kerasattn.models.base import BaseModel, as_numpy, check_range
from kerasattn.models.vectors import WordVectors
from kerasattn.ops import seeds
from kerasattn.training.crf_loss import CRFLoss
from kerasattn.training.losses import token_cross_entropy


@keras.saving.register_keras_serializable(package="kerasattn")
class Tagger(WordVectors, BaseModel):
    """A model that gives every token a tag, by a CRF or each by itself: what such models share.

    A subclass makes hidden vectors of its inputs and calls `Tagger.__init__` with them; see
    `BiLSTMCRF`, `TransformerCRF` and `LatticeLSTMCRF`.

    Args:
        config: dict of the constructor's arguments, among them `num_tags`, `use_crf`, `constraints`
            (a dict of what `layers.CRF` takes, `data.tagging.TaggingScheme.constraints()`, or None)
            and `dropout`, of the hidden vectors.
        policy: the dtype policy.
        inputs: dict of inputs by name.
        real: bool (batch, length), True = real token.
        hidden: list of what `hidden_states` returns.
        more_scores: (batch, length, num_tags) to be added to the scores of tags, or None.

    Outputs:
        hidden: (batch, length, hidden_dim).
        token_logits: (batch, length, num_tags), scores of each tag.
        tags: int32 (batch, length), the best path that the constraints allow; 0 at padding.

    Example:
    >>> import numpy as np
    >>> from kerasattn.models import BiLSTMCRF
    >>> model = BiLSTMCRF(30, num_tags=5, embedding_dim=4, hidden_dim=6)
    >>> model.compile("adam")  # then model.fit(token_ids, tags), and model.tag(many_token_ids)
    >>> tuple(model(np.array([[5, 6, 7, 0]]))["tags"].shape)
    (1, 4)

    Source: https://arxiv.org/abs/1508.01991.
    """

    def __init__(self, config, policy, inputs, real, hidden, more_scores=None):
        # === Layers ===
        scores = heads.Classification(
            config["num_tags"],
            dropout=config["dropout"],
            seed=seeds.child(config["seed"], "tag_scores"),
            dtype=policy,
            name="tag_scores",
        )
        # Without a CRF its transitions stay 0: it only keeps what is forbidden from the tags.
        crf = layers.CRF(
            **(config["constraints"] or {}),
            use_boundaries=config["use_crf"],
            transitions_initializer="zeros",
            trainable=config["use_crf"],
            dtype=policy,
            name="crf",
        )

        # === Model ===
        logits = scores(hidden[-1])  # (batch, length, num_tags)
        if more_scores is not None:
            logits = logits + ops.cast(more_scores, "float32")
        potentials = crf(logits, padding_mask=real)
        tags = layers.CRFDecode(name="tags")(potentials)
        outputs = {"hidden": hidden[-1], "token_logits": logits, "tags": tags}
        super().__init__(inputs, outputs, name=config["name"])

        # === Config ===
        self._config = {**config, "dtype": policy.name}
        self._hidden = hidden
        self.use_crf = config["use_crf"]

    def _real(self, inputs):
        """Where the real tokens are: bool (batch, length)."""
        if inputs["padding_mask"] is None:
            return ops.not_equal(inputs["token_ids"], self._config["pad_id"])
        return ops.cast(inputs["padding_mask"], "bool")

    def _check_labels(self, x, y):
        if isinstance(y, (np.ndarray, list, tuple)):  # at padding they may be anything
            y = as_numpy(y)
            real = np.asarray(ops.convert_to_numpy(self._real(self._check_inputs(x))))
            y = np.where(real, y, 0) if y.shape == real.shape else y
            check_range("y", y, self._config["num_tags"])

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """-log of the probability of a row's tags, in nats, mean over the rows.

        Args:
            x: dict of the inputs.
            y: int (batch, length) tags; at padding anything.
            y_pred: dict of the outputs.
            sample_weight: (batch,), weights of rows.
            training: bool.
        """
        if self._compile_loss is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        if y is None:
            raise ValueError("The loss needs tags y, int (batch, length).")
        real, logits = self._real(self._check_inputs(x)), y_pred["token_logits"]
        if self.use_crf:
            potentials = self.get_layer("crf")(logits, padding_mask=real)
            return CRFLoss()(y, potentials, sample_weight) + sum(self.losses)
        tags = ops.where(real, ops.cast(y, "int32"), 0)
        losses = ops.where(real, token_cross_entropy(tags, logits), 0.0)
        losses = ops.sum(losses, axis=1)
        if sample_weight is not None:
            losses = losses * ops.cast(sample_weight, "float32")
        return ops.mean(losses) + sum(self.losses)

    def tag(self, inputs, batch_size=32):
        """The best tags of many rows: numpy int32 (rows, length).

        It is compiled once, unless the model is set to `run_eagerly`.

        Args:
            inputs: dict of arrays, or token_ids alone.
            batch_size: int.
        """
        inputs = self._arrays(inputs)  # what its encoder refuses, that of the tags alone does not
        self._tags_alone.run_eagerly = self.run_eagerly
        return self._tags_alone.predict(inputs, batch_size=batch_size, verbose=0)["tags"]

    @functools.cached_property  # past Keras' tracking, which would look for layers inside
    def _tags_alone(self):
        model = BaseModel(self._inputs_struct, {"tags": self.output["tags"]})
        model._id_ranges = self._id_ranges
        model.compile()
        return model
