"""bert4keras' layers for tagging: their losses are methods, and take what the layer returns."""

import keras
from keras import ops

from kerasattn.compat.bert4keras.masking import real_steps, sequence_masking
from kerasattn.ops import crf
from kerasattn.training.losses import weighted_mean


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class ChainLink:
    """Stands for a layer in the configs of its methods, and in its own.

    Keras deserializes what it finds in two places of a model's file once, but for layers.
    """

    layer = None

    def get_config(self):
        """Nothing: it is told from others by Keras."""
        return {}

    @classmethod
    def from_config(cls, config):
        """A new one, whose layer comes later."""
        return cls(**config)


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class ChainMethod:
    """A layer's method that is saved and loaded with the model whose loss or metric it is.

    Keras saves bound methods, but cannot load them.

    Args:
        link: `ChainLink` of the layer.
        name: str, of the method.
    """

    def __init__(self, link, name):
        self.link, self.__name__ = link, name

    def __call__(self, y_true, y_pred):
        layer = self.link.layer
        if layer is None:
            raise ValueError(f"{self.__name__} is a layer's, and is loaded with its model alone.")
        return getattr(type(layer), self.__name__)(layer, y_true, y_pred)

    def get_config(self):
        """The link and the method's name."""
        return {"link": keras.saving.serialize_keras_object(self.link), "name": self.__name__}

    @classmethod
    def from_config(cls, config):
        """The method of the layer that was loaded with the link."""
        return cls(keras.saving.deserialize_keras_object(config["link"]), config["name"])


class _saved_method:
    """Makes of a layer's method a `ChainMethod`, as a decorator."""

    def __init__(self, function):
        self.function = function

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, layer, owner):
        return self.function if layer is None else ChainMethod(layer._link, self.name)


class _Chain(keras.layers.Layer):
    """Scores pass through, -inf at padding, which the losses recognize; there are weights of pairs.

    `lr_multiplier` makes those weights learn faster: what is stored is the multiple-th part.
    """

    def __init__(self, lr_multiplier=1, **kwargs):
        super().__init__(**kwargs)
        self.lr_multiplier = lr_multiplier
        self.supports_masking = True
        self._link_to(ChainLink())

    def _link_to(self, link):
        self._link, link.layer = link, self

    def call(self, inputs, mask=None):
        return sequence_masking(inputs, mask, value="-inf", axis=1)

    def compute_mask(self, inputs, mask=None):
        return None

    def get_config(self):
        # In a file Keras numbers what it has met before, so that it is known again.
        keras.saving.serialize_keras_object(self._link)
        link = keras.saving.serialize_keras_object(self._link)
        return {**super().get_config(), "lr_multiplier": self.lr_multiplier, "link": link}

    @classmethod
    def from_config(cls, config):
        """The layer, to which its saved methods belong."""
        config = dict(config)
        link = config.pop("link", None)
        layer = super().from_config(config)
        if link is not None:
            layer._link_to(keras.saving.deserialize_keras_object(link))
        return layer

    def _scores(self, shape, name):
        glorot = keras.initializers.GlorotUniform()
        return self.add_weight(
            shape,
            lambda shape, dtype=None: glorot(shape, dtype) / self.lr_multiplier,
            name=name,
            autocast=False,
        )

    def _in_use(self, weight):
        return weight if self.lr_multiplier == 1 else self.lr_multiplier * weight

    @_saved_method
    def dense_loss(self, y_true, y_pred):
        """As sparse_loss, of one-hot tags (batch, length, num_tags)."""
        return self.sparse_loss(ops.argmax(y_true, axis=2), y_pred)

    @_saved_method
    def dense_accuracy(self, y_true, y_pred):
        """As sparse_accuracy, of one-hot tags (batch, length, num_tags)."""
        return self.sparse_accuracy(ops.argmax(y_true, axis=2), y_pred)


def _whole(y_true, y_pred):
    """Tags as integers (batch, length), and scores as float32, 0 where -inf marks padding."""
    real = real_steps(y_pred)
    y_true = ops.cast(ops.reshape(y_true, ops.shape(y_pred)[:-1]), "int32")
    y_pred = ops.where(real[..., None], ops.cast(y_pred, "float32"), 0.0)
    return ops.where(real, y_true, 0), y_pred, real


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class ConditionalRandomField(_Chain):
    """A CRF whose loss is a method: `model.compile(loss=layer.sparse_loss)`.

    For new code there is `layers.CRF`, of which all is saved and loaded with the model.

    Args:
        lr_multiplier: float > 0, how much faster than others the transitions learn.

    Shapes:
        (batch, length, num_tags) -> the same, -inf at padding (of Keras' mask).

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import ConditionalRandomField
    >>> layer = ConditionalRandomField(lr_multiplier=100)
    >>> y_pred = layer(np.zeros((1, 3, 4), "float32"), mask=np.array([[True, True, False]]))
    >>> tuple(layer.sparse_loss(np.array([[1, 2, 0]]), y_pred).shape), tuple(layer.trans.shape)
    ((1,), (4, 4))
    """

    def build(self, input_shape):
        self._trans = self._scores((input_shape[-1], input_shape[-1]), "trans")

    @property
    def trans(self):
        """The scores of pairs in use, (from, to)."""
        return self._in_use(self._trans)

    @_saved_method
    def sparse_loss(self, y_true, y_pred):
        """-log of the paths' probabilities, (batch,), of tags (batch, length)."""
        y_true, y_pred, real = _whole(y_true, y_pred)
        potentials = crf.log_potentials(y_pred, self.trans, padding_mask=real)
        return crf.negative_log_likelihood(potentials, y_true)

    @_saved_method
    def sparse_accuracy(self, y_true, y_pred):
        """The share of real steps whose highest score alone is that of the tag."""
        y_true, y_pred, real = _whole(y_true, y_pred)
        return weighted_mean(_is_best(y_true, y_pred), real)


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class MaximumEntropyMarkovModel(_Chain):
    """A chain in both directions: each tag is told from its scores and the tag beside it.

    Args:
        lr_multiplier: float > 0, how much faster than others the weights of pairs learn.
        hidden_dim: int or None; the scores of pairs are a product of two matrices of this width.

    Shapes:
        (batch, length, num_tags) -> the same, -inf at padding (of Keras' mask).

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import MaximumEntropyMarkovModel
    >>> layer = MaximumEntropyMarkovModel(hidden_dim=2)
    >>> y_pred = layer(np.zeros((1, 3, 4), "float32"))
    >>> bool(layer.sparse_loss(np.array([[1, 2, 0]]), y_pred) > 0)
    True
    """

    def __init__(self, lr_multiplier=1, hidden_dim=None, **kwargs):
        super().__init__(lr_multiplier, **kwargs)
        self.hidden_dim = hidden_dim

    def build(self, input_shape):
        num_tags = input_shape[-1]
        if self.hidden_dim is None:
            self._trans = self._scores((num_tags, num_tags), "trans")
        else:
            self._l_trans = self._scores((num_tags, self.hidden_dim), "l_trans")
            self._r_trans = self._scores((num_tags, self.hidden_dim), "r_trans")

    @property
    def trans(self):
        """The scores of pairs in use, (from, to)."""
        if self.hidden_dim is None:
            return self._in_use(self._trans)
        return ops.matmul(self.l_trans, ops.transpose(self.r_trans))

    @property
    def l_trans(self):
        """The left matrix in use, (num_tags, hidden_dim)."""
        return self._in_use(self._l_trans)

    @property
    def r_trans(self):
        """The right matrix in use, (num_tags, hidden_dim)."""
        return self._in_use(self._r_trans)

    @_saved_method
    def sparse_loss(self, y_true, y_pred):
        """The mean cross-entropy of real steps of both directions, a scalar."""
        ahead, back, real = self._both(y_true, y_pred)
        loss = lambda tags, scores: keras.losses.sparse_categorical_crossentropy(
            tags, scores, from_logits=True
        )
        return weighted_mean((loss(*ahead) + loss(*back)) / 2, real)

    @_saved_method
    def sparse_accuracy(self, y_true, y_pred):
        """The share of real steps that are told right, the mean of both directions."""
        ahead, back, real = self._both(y_true, y_pred)
        return weighted_mean((_is_best(*ahead) + _is_best(*back)) / 2, real)

    def _both(self, y_true, y_pred):
        """Tags and scores given the tag before, and given the tag behind; which steps are real."""
        y_true, y_pred, real = _whole(y_true, y_pred)
        trans = ops.convert_to_tensor(self.trans)
        before = ops.take(trans, y_true[:, :-1], axis=0)
        behind = ops.take(ops.transpose(trans), y_true[:, 1:], axis=0)
        # The first step of a direction has itself beside it.
        before = ops.concatenate([y_pred[:, :1], before], axis=1)
        behind = ops.concatenate([behind, y_pred[:, -1:]], axis=1)
        is_last = real & ~ops.concatenate([real[:, 1:], ops.zeros_like(real[:, :1])], axis=1)
        behind = ops.where(is_last[..., None], y_pred, behind)
        return (y_true, (y_pred + before) / 2), (y_true, (y_pred + behind) / 2), real

    def get_config(self):
        return {**super().get_config(), "hidden_dim": self.hidden_dim}


def _is_best(tags, scores):
    return ops.cast(ops.equal(ops.cast(ops.argmax(scores, axis=-1), "int32"), tags), "float32")
