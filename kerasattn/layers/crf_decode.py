import keras

from kerasattn.ops import crf


@keras.saving.register_keras_serializable(package="kerasattn")
class CRFDecode(keras.layers.Layer):
    """The best path through log-potentials, by Viterbi's algorithm, in the graph.

    Args:
        return_scores: bool, whether the paths' scores are returned too.

    Call arguments:
        potentials: float (batch, length, num_tags, num_tags), as `CRF` and
            `MaximumEntropyMarkovModel` return them.

    Returns:
        tags int32 (batch, length), 0 at padding; with return_scores a pair of them and float32
        (batch,).

    Raises:
        ValueError: for potentials of another shape.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> emissions = np.array([[[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]]])
    >>> potentials = layers.CRF()(emissions, padding_mask=np.array([[True, True, False]]))
    >>> [int(tag) for tag in layers.CRFDecode()(potentials)[0]]
    [0, 1, 0]

    Source: https://doi.org/10.1109/TIT.1967.1054010 (Viterbi 1967).
    """

    def __init__(self, return_scores=False, **kwargs):
        # Potentials are float32 in every policy.
        super().__init__(autocast=False, **kwargs)
        self.return_scores = return_scores

    def build(self, input_shape):
        if len(input_shape) != 4 or input_shape[-1] != input_shape[-2] or input_shape[-1] is None:
            raise ValueError(
                "potentials must be (batch, length, num_tags, num_tags), as CRF returns them, got "
                f"shape {tuple(input_shape)}."
            )

    def call(self, potentials):
        tags, scores = crf.viterbi(potentials)
        return (tags, scores) if self.return_scores else tags

    def compute_output_spec(self, potentials):
        tags = keras.KerasTensor(potentials.shape[:2], "int32")
        scores = keras.KerasTensor(potentials.shape[:1], "float32")
        return (tags, scores) if self.return_scores else tags

    def get_config(self):
        return {**super().get_config(), "return_scores": self.return_scores}
