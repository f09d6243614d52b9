import keras
from keras import ops

from kerasattn.ops import hopfield


@keras.saving.register_keras_serializable(package="kerasattn")
class BidirectionalAssociativeMemory(keras.layers.Layer):
    """Pairs of patterns, of which each side brings the other to mind: hetero-association.

    Its weights are stored, by `store`, and not trained.

    Args:
        num_rounds: int >= 1, at most so many times there and back.

    Call arguments:
        states: (batch, units) of -1, 1, and 0 for what is not known.
        others: (batch, other units), likewise; all 0 to ask what goes with the states.

    Shapes:
        (batch, units), (batch, other units) -> the same two, float32 whatever the policy.

    Raises:
        ValueError: for no rounds, inputs of another rank, patterns that are not pairs of -1 and 1.

    Example: a name for a picture, and the picture for the name.

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> memory = layers.BidirectionalAssociativeMemory()
    >>> memory.store([[1, 1, -1, -1], [1, -1, 1, -1]], [[1, 1], [1, -1]])
    >>> np.array(memory(np.array([[1, -1, 1, 0]]), np.zeros((1, 2)))[1]).tolist()
    [[1.0, -1.0]]
    >>> np.array(memory(np.zeros((1, 4)), np.array([[1, 1]]))[0]).tolist()
    [[1.0, 1.0, -1.0, -1.0]]

    Source: https://doi.org/10.1109/21.87054 (Kosko 1988).
    """

    def __init__(self, num_rounds=20, **kwargs):
        super().__init__(**kwargs)
        if num_rounds < 1:
            raise ValueError(f"num_rounds must be at least 1, got {num_rounds}.")
        self.num_rounds = num_rounds

    def build(self, states_shape, others_shape):
        if any(len(shape) != 2 or shape[1] is None for shape in (states_shape, others_shape)):
            raise ValueError(
                "States must be (batch, units), others (batch, other units), got "
                f"{tuple(states_shape)} and {tuple(others_shape)}."
            )
        shape = (states_shape[1], others_shape[1])
        kind = dict(trainable=False, dtype="float32")
        self.kernel = self.add_weight(shape, "zeros", name="kernel", **kind)

    def store(self, patterns, others):
        """Adds pairs of patterns to the weights.

        Args:
            patterns: (number, units) of -1 and 1.
            others: (number, other units) of -1 and 1.

        Raises:
            ValueError: for others.
        """
        units, other_units = self.kernel.shape if self.built else (None, None)
        patterns = hopfield.check_patterns("patterns", patterns, units)
        others = hopfield.check_patterns("others", others, other_units)
        if len(patterns) != len(others):
            raise ValueError(
                f"Pairs need as many patterns as others, got {len(patterns)} and {len(others)}."
            )
        if not self.built:
            self.build(patterns.shape, others.shape)
        self.kernel.assign_add(hopfield.hebbian(patterns, others))

    def call(self, states, others):
        states, others = (ops.stop_gradient(ops.cast(x, "float32")) for x in (states, others))
        # What is asked for has no say in the first half of a round: it is made from the other side.
        states = hopfield.turn(states, ops.matmul(others, ops.transpose(self.kernel)))

        def goes_on(count, states, others, changed):
            return (count < self.num_rounds) & changed

        def once(count, states, others, changed):
            now, then = hopfield.associate(states, others, self.kernel)
            changed = ops.any(now != states) | ops.any(then != others)
            return count + 1, now, then, changed

        start = (ops.zeros((), "int32"), states, others, ops.ones((), "bool"))
        return ops.while_loop(goes_on, once, start)[1:3]

    def compute_output_spec(self, states, others):
        return tuple(keras.KerasTensor(x.shape, "float32") for x in (states, others))

    def get_config(self):
        return {**super().get_config(), "num_rounds": self.num_rounds}
