import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class FeatureScores(keras.layers.Layer):
    """A score of each tag from the features that a step has: a linear model on sparse inputs.

    Below a `CRF` it makes the classical conditional random field of features.

    Args:
        num_features: int >= 1; features are numbered 1 to num_features.
        num_tags: int >= 1.
        scores_initializer: of the table of scores.
        scores_regularizer: of the same, such as keras.regularizers.L2.

    Call arguments:
        features: int (batch, length, features of a step), 0 for none.

    Shapes:
        (batch, length, any) -> (batch, length, num_tags).

    Raises:
        ValueError: for sizes below 1 or features of another rank.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> scores = layers.FeatureScores(9, num_tags=3, scores_initializer="ones")
    >>> np.array(scores(np.array([[[4, 9, 0], [0, 0, 0]]])))[0, :, 0].tolist()
    [2.0, 0.0]

    Source: https://repository.upenn.edu/cis_papers/159, equation 1.
    """

    def __init__(
        self,
        num_features,
        num_tags,
        scores_initializer="zeros",
        scores_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if min(num_features, num_tags) < 1:
            raise ValueError(
                f"num_features and num_tags must be at least 1, got {num_features}, {num_tags}."
            )
        self.num_features, self.num_tags = num_features, num_tags
        self.scores_initializer = keras.initializers.get(scores_initializer)
        self.scores_regularizer = keras.regularizers.get(scores_regularizer)

    def build(self, input_shape):
        if len(input_shape) != 3:
            raise ValueError(
                "features must be (batch, length, features of a step), got shape "
                f"{tuple(input_shape)}."
            )
        self.scores = self.add_weight(
            (self.num_features + 1, self.num_tags),
            self.scores_initializer,
            regularizer=self.scores_regularizer,
            name="scores",
        )

    def call(self, features):
        rows = ops.take(self.scores, ops.cast(features, "int32"), axis=0)
        there = ops.cast(ops.not_equal(features, 0), rows.dtype)
        return ops.sum(rows * there[..., None], axis=2)

    def compute_output_spec(self, features):
        return keras.KerasTensor((*features.shape[:2], self.num_tags), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_features": self.num_features,
            "num_tags": self.num_tags,
            "scores_initializer": keras.initializers.serialize(self.scores_initializer),
            "scores_regularizer": keras.regularizers.serialize(self.scores_regularizer),
        }
