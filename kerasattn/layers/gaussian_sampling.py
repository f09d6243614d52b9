import math

import keras

from kerasattn.ops import gaussian


@keras.saving.register_keras_serializable(package="kerasattn")
class GaussianSampling(keras.layers.Layer):
    """Draws from diagonal normal distributions and adds their KL divergence to the loss.

    While training, returns mean + exp(log_var / 2) * noise; else returns the mean. The loss is
    `kl_weight` times the divergence to the standard normal, summed over the dimensions and
    averaged over the batch, in nats. `kl_weight` is a variable, which
    `training.callbacks.AnnealWeight` may change from step to step.

    Args:
        free_bits: float >= 0, in bits per dimension: what a dimension may carry, on average over
            the batch, without being penalised for it.
        kl_weight: float >= 0, the weight that the divergence starts with (beta of a beta-VAE).
        seed: int or None, for draws that repeat.

    Shapes:
        (batch, ..., dim), (batch, ..., dim) -> (batch, ..., dim). A third input, bool (batch,) or
        None, says which rows count in the loss; drawn are all.

    Raises:
        ValueError: if free_bits or kl_weight is negative or not finite, or the shapes differ.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> sampling = layers.GaussianSampling(seed=0)
    >>> z = sampling(np.ones((4, 16)), np.zeros((4, 16)), training=True)
    >>> tuple(z.shape), float(sampling.losses[0])
    ((4, 16), 8.0)

    Source: https://arxiv.org/abs/1312.6114; free bits: https://arxiv.org/abs/1606.04934.
    """

    def __init__(self, free_bits=0.0, kl_weight=1.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        for name, value in (("free_bits", free_bits), ("kl_weight", kl_weight)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be finite and not negative, got {value}.")
        self.free_bits = float(free_bits)
        self.initial_kl_weight = float(kl_weight)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True
        self.kl_weight = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(self.initial_kl_weight),
            dtype="float32",
            trainable=False,
            autocast=False,  # the divergence stays in float32 in every policy
            aggregation="only_first_replica",
            name="kl_weight",
        )

    def build(self, mean_shape, log_var_shape, rows_shape=None):
        if tuple(mean_shape)[-1] != tuple(log_var_shape)[-1]:
            raise ValueError(
                "mean and log_var must have the same shape, got "
                f"{tuple(mean_shape)} and {tuple(log_var_shape)}. Give one log variance for each "
                "dimension of the mean."
            )

    def call(self, mean, log_var, rows=None, training=False):
        divergence = gaussian.free_bits_kl(mean, log_var, self.free_bits, rows)
        self.add_loss(self.kl_weight * divergence)
        if not training:
            return mean
        return gaussian.sample(mean, log_var, seed=self.seed_generator)

    def compute_output_shape(self, mean_shape, log_var_shape, rows_shape=None):
        return mean_shape

    def get_config(self):
        return {
            **super().get_config(),
            "free_bits": self.free_bits,
            "kl_weight": self.initial_kl_weight,
            "seed": self.seed,
        }
