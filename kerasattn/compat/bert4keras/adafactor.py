import keras


@keras.saving.register_keras_serializable(package="kerasattn.bert4keras")
class AdaFactor(keras.optimizers.Adafactor):
    """`keras.optimizers.Adafactor` with bert4keras' names of arguments.

    Args:
        learning_rate: float or a schedule; None for 0.01, and 1 / the root of the step where that
            is less.
        beta1: 0: there is no momentum.
        beta2: None: 1 - step^-0.8.
        epsilon1, epsilon2, clipping_threshold: `epsilon_1`, `epsilon_2`, `clip_threshold` of Keras.
        multiply_by_parameter_scale: True: steps are relative to the size of weights.

    Raises:
        ValueError: for other values of those that Keras has not.

    Example:

    >>> from kerasattn.compat.bert4keras.optimizers import AdaFactor
    >>> AdaFactor(learning_rate=1e-3, clipping_threshold=2.0).clip_threshold
    2.0

    Source: https://arxiv.org/abs/1804.04235, algorithm 4.
    """

    def __init__(
        self,
        learning_rate=1e-3,
        beta1=0.0,
        beta2=None,
        epsilon1=1e-30,
        epsilon2=1e-3,
        multiply_by_parameter_scale=True,
        clipping_threshold=1.0,
        **kwargs,
    ):
        if beta1 or beta2 is not None or not multiply_by_parameter_scale:
            raise ValueError(
                "AdaFactor takes beta1=0, beta2=None and multiply_by_parameter_scale=True, got "
                f"{beta1}, {beta2} and {multiply_by_parameter_scale}."
            )
        super().__init__(
            0.01 if learning_rate is None else learning_rate,
            epsilon_1=epsilon1,
            epsilon_2=epsilon2,
            clip_threshold=clipping_threshold,
            **{"relative_step": learning_rate is None, **kwargs},
        )

    def get_config(self):
        config = super().get_config()
        config["epsilon1"], config["epsilon2"] = config.pop("epsilon_1"), config.pop("epsilon_2")
        config["clipping_threshold"] = config.pop("clip_threshold")
        return config
