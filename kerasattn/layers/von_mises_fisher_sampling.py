import math
import numbers

import keras

from kerasattn.ops import vmf


@keras.saving.register_keras_serializable(package="kerasattn")
class VonMisesFisherSampling(keras.layers.Layer):
    """Draws from the von Mises-Fisher distribution around unit mean directions.

    While training, returns z ~ vMF(mu, kappa) by inverse transform of the angle to mu, which is
    exact up to the table's resolution; else returns mu itself. The draw turns rigidly with mu, so
    the gradient of every expectation over z reaches mu. kappa is a fixed hyperparameter: there is
    no gradient with respect to it, and its KL divergence to the uniform prior is the constant
    `kl`.

    Args:
        kappa: float >= 0, the concentration. 0 is uniform on the sphere.
        seed: int or None, for draws that repeat.

    Shapes:
        (..., dim) of unit norm, dim >= 2 -> (..., dim) of unit norm.

    Raises:
        ValueError: if kappa is negative, infinite or not a number, or dim is less than 2.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> mu = keras.layers.UnitNormalization()(np.ones((4, 16)))
    >>> sampling = layers.VonMisesFisherSampling(kappa=32.0, seed=0)
    >>> z = sampling(mu, training=True)
    >>> tuple(z.shape), round(float(np.linalg.norm(z[0])), 4)
    ((4, 16), 1.0)
    >>> bool(np.all(np.asarray(sampling(mu)) == np.asarray(mu)))
    True

    Source: https://arxiv.org/abs/1808.10805, section 3.
    """

    def __init__(self, kappa, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(kappa, numbers.Real) or not 0 <= kappa < math.inf:
            raise ValueError(
                f"kappa must be a finite number, not negative, got {kappa!r}. Use 0 for the "
                "uniform distribution, and training=False for no noise."
            )
        self.kappa, self.seed = float(kappa), seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def build(self, input_shape):
        # A numpy array: a tensor made here could belong to another graph.
        self.radii = vmf.radial_quantiles(dim=input_shape[-1], kappa=self.kappa)

    def call(self, mean_direction, training=False):
        if not training:
            return mean_direction
        return vmf.sample(mean_direction, self.radii, seed=self.seed_generator)

    def kl(self, dim):
        """The KL divergence of a draw to the uniform distribution, in nats: a constant."""
        return vmf.kl_to_uniform(dim, self.kappa)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "kappa": self.kappa, "seed": self.seed}
