import math

import keras

from kerasattn.ops.uniformity import uniformity


@keras.saving.register_keras_serializable(package="kerasattn")
class UniformityRegularization(keras.layers.Layer):
    """Adds a loss that makes latents fill their spheres, each layer independently of the others.

    Then what the prior draws is like what sentences have, and reads like sentences. The latents
    themselves go through unchanged. The loss is `uniformity_weight` times
    `ops.uniformity.uniformity`, in nats, of whatever comes in: in training the draws, otherwise
    what stands in their place. `uniformity_weight` is a variable, which
    `training.callbacks.AnnealWeight(..., attribute="uniformity_weight")` may raise from step to
    step: some tenths from the first step on keep an encoder from learning anything.

    Args:
        uniformity_weight: float >= 0, the weight that the loss starts with.
        concentration: float > 0, of the kernel that compares two latents.

    Shapes:
        (batch, layers, dim) of unit norm, (batch,) bool or None: the rows that count -> the first.

    Raises:
        ValueError: if uniformity_weight or concentration is out of its range.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> regularization = layers.UniformityRegularization(uniformity_weight=0.5)
    >>> same = np.ones((8, 1, 4), "float32") / 2  # all at one place of the sphere
    >>> z = regularization(same)
    >>> round(float(regularization.losses[0]), 2)
    1.21

    Source: https://arxiv.org/abs/2005.10242, section 4.2.
    """

    def __init__(self, uniformity_weight=1.0, concentration=4.0, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= uniformity_weight < math.inf:
            raise ValueError(
                f"uniformity_weight must be finite and not negative, got {uniformity_weight}."
            )
        if not 0 < concentration < math.inf:
            raise ValueError(f"concentration must be finite and above 0, got {concentration}.")
        self.initial_weight = float(uniformity_weight)
        self.concentration = float(concentration)
        self.uniformity_weight = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(self.initial_weight),
            dtype="float32",
            trainable=False,
            autocast=False,
            aggregation="only_first_replica",
            name="uniformity_weight",
        )

    def call(self, latents, rows=None):
        self.add_loss(self.uniformity_weight * uniformity(latents, self.concentration, rows))
        return latents

    def compute_output_shape(self, latents_shape, rows_shape=None):
        return latents_shape

    def get_config(self):
        return {
            **super().get_config(),
            "uniformity_weight": self.initial_weight,
            "concentration": self.concentration,
        }
