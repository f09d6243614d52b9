import keras
from keras import ops

from kerasattn.ops import vmf


@keras.saving.register_keras_serializable(package="kerasattn")
class PriorReplacement(keras.layers.Layer):
    """Gives a decoder latents now and then that no sentence has: draws of the uniform prior.

    Where sentences fill but a part of their spheres, most of what the prior draws lies elsewhere,
    and a decoder that never saw such latents trusts them and writes nonsense. While training, a
    share of the sentences have some of their latents, each with even chance, replaced by uniform
    draws; the decoder learns to follow those that fit together, and to write
    a sentence all the same where none do.

    Args:
        prior_share: float, 0 <= prior_share < 1, the share of sentences that it happens to.
        seed: int or None, for draws that repeat.

    Shapes:
        (batch, layers, dim) of unit norm, dim >= 2 -> the same.

    Raises:
        ValueError: if prior_share is out of its range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> replace = layers.PriorReplacement(0.5, seed=0)
    >>> latents = np.ones((100, 4, 4), "float32") / 2
    >>> z = np.asarray(replace(latents, training=True))
    >>> 100 < int(np.all(z == latents, axis=-1).sum()) < 400
    True
    """

    def __init__(self, prior_share, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= prior_share < 1:
            raise ValueError(f"prior_share must be from 0 to below 1, got {prior_share}.")
        self.prior_share, self.seed = float(prior_share), seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, latents, training=False):
        if not training:
            return latents
        batch, layers, dim = ops.shape(latents)
        seed = self.seed_generator
        sentences = keras.random.uniform((batch, 1, 1), seed=seed) < self.prior_share
        replaced = sentences & (keras.random.uniform((batch, layers, 1), seed=seed) < 0.5)
        return ops.where(replaced, vmf.uniform((batch, layers), dim, seed, latents.dtype), latents)

    def compute_output_shape(self, latents_shape):
        return latents_shape

    def get_config(self):
        return {**super().get_config(), "prior_share": self.prior_share, "seed": self.seed}
