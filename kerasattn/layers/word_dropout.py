import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class WordDropout(keras.layers.Layer):
    """Hides some of the tokens that a decoder is fed, so that it has to ask its latents for them.

    Of a sentence's beginning a decoder can guess much of what follows, and learns to ignore the
    code; with holes in the beginning it can't. Only while training. `word_dropout` is a variable,
    which `training.AnnealWeight(..., attribute="word_dropout")` may lower to 0.

    Args:
        word_dropout: float, 0 <= word_dropout < 1, the probability that a token is hidden.
        replacement_id: int >= 0, what stands in its place: [UNK] or [MASK].
        kept_ids: ints, tokens that are never hidden: [PAD], [CLS], [SEP].
        seed: int or None, for draws that repeat.

    Shapes:
        token_ids, integers (batch, length) -> the same.

    Raises:
        ValueError: if word_dropout or replacement_id is out of its range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> hide = layers.WordDropout(0.5, replacement_id=1, kept_ids=(0, 2, 3), seed=0)
    >>> token_ids = np.array([[2, 7, 8, 9, 3, 0]])
    >>> shown = np.asarray(hide(token_ids, training=True))[0]
    >>> [int(i) for i in shown[[0, 4, 5]]], bool(np.isin(shown[1:4], [1, 7, 8, 9]).all())
    ([2, 3, 0], True)

    Source: https://arxiv.org/abs/1511.06349, section 3.1.
    """

    def __init__(self, word_dropout, replacement_id, kept_ids=(), seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= word_dropout < 1:
            raise ValueError(f"word_dropout must be from 0 to below 1, got {word_dropout}.")
        if not replacement_id >= 0:
            raise ValueError(f"replacement_id must not be negative, got {replacement_id}.")
        self.initial_rate, self.replacement_id = float(word_dropout), int(replacement_id)
        self.kept_ids = tuple(int(i) for i in kept_ids)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.word_dropout = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(self.initial_rate),
            dtype="float32",
            trainable=False,
            autocast=False,
            aggregation="only_first_replica",
            name="word_dropout",
        )

    def call(self, token_ids, training=False):
        if not training:
            return token_ids
        shape = ops.shape(token_ids)
        hidden = keras.random.uniform(shape, seed=self.seed_generator) < self.word_dropout
        for kept in self.kept_ids:
            hidden = hidden & (token_ids != kept)
        return ops.where(hidden, ops.cast(self.replacement_id, token_ids.dtype), token_ids)

    def compute_output_spec(self, token_ids, training=False):
        return keras.KerasTensor(token_ids.shape, token_ids.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "word_dropout": self.initial_rate,
            "replacement_id": self.replacement_id,
            "kept_ids": self.kept_ids,
            "seed": self.seed,
        }
