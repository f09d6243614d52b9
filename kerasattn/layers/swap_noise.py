import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class SwapNoise(keras.layers.Layer):
    """Swaps some latents, while training, for those that other sentences of the batch have there.

    What the prior draws has parts that no sentence has together, and a decoder that never saw such
    codes trusts each part and writes nonsense. Swapped latents teach it to doubt a latent that the
    others and the words before it speak against, and the encoder to say in several latents what
    matters. The larger the rate, the more fluent are samples, and the fewer sentences are rebuilt.

    They are swapped, not drawn from the prior: an encoder leaves parts of the sphere empty if that
    tells draws from sentences, and the decoder then writes samples as one who knows nothing. A
    batch of one sentence has nobody to swap with.

    Args:
        rate: float, 0 <= rate < 1, the share of latents that is swapped, each by itself.
        seed: int or None, for noise that repeats.

    Call arguments:
        latents: (batch, layers, dim).
        rows: bool (batch,), False at rows of padding, which are not swapped in; None for none.

    Shapes:
        (batch, layers, dim), (batch,) -> the first.

    Raises:
        ValueError: if rate is out of its range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> latents = np.arange(400, dtype="float32").reshape(100, 4, 1)
    >>> z = np.asarray(layers.SwapNoise(0.25, seed=0)(latents, training=True))
    >>> 50 < int(np.any(z != latents, axis=-1).sum()) < 150
    True

    Source: M. Jahrer's noise of denoising autoencoders of tables, 2017,
    https://www.kaggle.com/c/porto-seguro-safe-driver-prediction/discussion/44629.
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be from 0 to below 1, got {rate}.")
        self.rate, self.seed = float(rate), seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, latents, rows=None, training=False):
        if not training:
            return latents
        batch, layers, _ = ops.shape(latents)
        rows = ops.ones((batch,), "bool") if rows is None else rows
        # Each layer's from another sentence, so that swapped latents have nothing to do with each
        # other. No gradient reaches a sentence through what others make of its latents.
        turns = [i + 1 for i in range(latents.shape[1])]
        others = ops.stack([ops.roll(latents[:, i - 1], i, axis=0) for i in turns], axis=1)
        are_real = ops.stack([ops.roll(rows, i, axis=0) for i in turns], axis=1)
        swapped = keras.random.uniform((batch, layers), seed=self.seed_generator) < self.rate
        return ops.where((swapped & are_real)[..., None], ops.stop_gradient(others), latents)

    def compute_output_shape(self, latents_shape, rows_shape=None):
        return latents_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
