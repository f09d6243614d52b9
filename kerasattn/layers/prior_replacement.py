import keras
from keras import ops

from kerasattn.ops import vmf


@keras.saving.register_keras_serializable(package="kerasattn")
class PriorReplacement(keras.layers.Layer):
    """Gives a decoder latents now and then that no sentence has: draws of the uniform prior.

    Where sentences fill but a part of their spheres, most of what the prior draws lies elsewhere,
    and a decoder that never saw such latents trusts them and writes nonsense. While training, a
    share of the sentences keep their lowest latents, one at least, and have the others replaced by
    uniform draws; from where on, is drawn anew for each. The decoder learns to write a sentence
    all the same, and the latents an order: the lowest holds what matters most.

    Args:
        prior_share: float, 0 <= prior_share < 1, the share of sentences that it happens to.
        seed: int or None, for draws that repeat.

    Shapes:
        (batch, layers, dim) of unit norm, lowest layer first, dim >= 2 -> the same.

    Raises:
        ValueError: if prior_share is out of its range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> replace = layers.PriorReplacement(0.5, seed=0)
    >>> latents = np.ones((100, 4, 4), "float32") / 2
    >>> z = np.asarray(replace(latents, training=True))
    >>> kept = np.all(z == latents, axis=-1).mean(axis=0)  # of each layer
    >>> float(kept[0]), bool(kept[1] > kept[2] > kept[3])
    (1.0, True)

    Source: the order by cutting off, https://arxiv.org/abs/1402.0915.
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
        chosen = keras.random.uniform((batch, 1), seed=seed) < self.prior_share
        first = 1 + ops.floor((layers - 1) * keras.random.uniform((batch, 1), seed=seed))
        replaced = chosen & (ops.arange(layers, dtype="float32") >= first)  # (batch, layers)
        draws = vmf.uniform((batch, layers), dim, seed, latents.dtype)
        return ops.where(replaced[..., None], draws, latents)

    def compute_output_shape(self, latents_shape):
        return latents_shape

    def get_config(self):
        return {**super().get_config(), "prior_share": self.prior_share, "seed": self.seed}
