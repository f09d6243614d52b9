import math

import keras

from kerasattn.ops.isotropy import isotropy_divergence


@keras.saving.register_keras_serializable(package="kerasattn")
class IsotropyRegularization(keras.layers.Layer):
    """Adds a loss that makes latents use every direction of their spheres, each layer of its own.

    Draws of the prior go in every direction; where sentences leave some empty, the draws are like
    no sentence. The latents themselves go through unchanged. The loss is `isotropy_weight` times
    `ops.isotropy.isotropy_divergence`, in nats, of whatever comes in: in training the draws,
    otherwise what stands in their place. `isotropy_weight` is a variable, which
    `training.callbacks.AnnealWeight(..., attribute="isotropy_weight")` may raise from step to step.

    Args:
        isotropy_weight: float >= 0, the weight that the loss starts with.

    Shapes:
        (batch, layers, dim) of unit norm, (batch,) bool or None: the rows that count -> the first.

    Raises:
        ValueError: if isotropy_weight is out of its range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> regularization = layers.IsotropyRegularization(isotropy_weight=0.5)
    >>> same = np.ones((8, 1, 4), "float32") / 2  # all in one direction
    >>> z = regularization(same)
    >>> round(float(regularization.losses[0]), 2)
    1.32

    Source: `ops.isotropy`.
    """

    def __init__(self, isotropy_weight=0.06, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= isotropy_weight < math.inf:
            raise ValueError(
                f"isotropy_weight must be finite and not negative, got {isotropy_weight}."
            )
        self.initial_weight = float(isotropy_weight)
        self.isotropy_weight = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(self.initial_weight),
            dtype="float32",
            trainable=False,
            autocast=False,
            aggregation="only_first_replica",
            name="isotropy_weight",
        )

    def call(self, latents, rows=None):
        self.add_loss(self.isotropy_weight * isotropy_divergence(latents, rows))
        return latents

    def compute_output_shape(self, latents_shape, rows_shape=None):
        return latents_shape

    def get_config(self):
        return {**super().get_config(), "isotropy_weight": self.initial_weight}
