import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class TimeIds(keras.layers.Layer):
    """How long ago each sentence was told: 0 for the last, 1 for the one before it, and so on.

    While training, some moments pass in which nothing is told, so that no sentence's time can be
    learned by heart.

    Args:
        max_time: int >= 1, the largest id is one less; what is longer ago has it too.
        noise: float in [0, 1), how likely such a moment is before each sentence.
        seed: int or None, of the noise.

    Call arguments:
        real: bool (batch, sentences), True where a sentence is; they are in the order of telling.

    Shapes:
        (batch, sentences) -> int32 (batch, sentences).

    Raises:
        ValueError: for numbers out of range.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> np.array(layers.TimeIds(10)(np.array([[True, True, True, False]]))).tolist()
    [[2, 1, 0, 0]]

    Source: https://arxiv.org/abs/1503.08895, section 4.1, temporal encoding and random noise.
    """

    def __init__(self, max_time, noise=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        if max_time < 1 or not 0 <= noise < 1:
            raise ValueError(
                f"max_time must be at least 1 and noise in [0, 1), got {max_time} and {noise}."
            )
        self.max_time, self.noise, self.seed = max_time, noise, seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, real, training=False):
        passed = ops.cast(real, "int32")
        if training and self.noise:
            draws = keras.random.uniform(ops.shape(real), seed=self.seed_generator)
            passed = passed * (1 + ops.cast(draws < self.noise, "int32"))
        # What passes before a sentence comes after those told earlier, and not after itself.
        later = ops.flip(ops.cumsum(ops.flip(passed, axis=1), axis=1), axis=1) - passed
        return ops.minimum(later, self.max_time - 1)

    def compute_output_spec(self, real, training=False):
        return keras.KerasTensor(real.shape, "int32")

    def get_config(self):
        return {
            **super().get_config(),
            "max_time": self.max_time,
            "noise": self.noise,
            "seed": self.seed,
        }
