import keras

from kerasattn.ops import hopfield


@keras.saving.register_keras_serializable(package="kerasattn")
class ModernHopfield(keras.layers.Layer):
    """A Hopfield network of continuous states, which stores exponentially many patterns.

    What is stored is given with each call, or learned: then the layer is a table to look things up
    in, of which nothing is told but what it is to find.

    Args:
        beta: float > 0, how sharply patterns are told apart; None for dim ** -0.5.
        num_steps: int >= 1, updates of the states.
        num_patterns: int >= 1, patterns that are learned; None if they are given.
        patterns_initializer: of those.

    Call arguments:
        queries: (batch, query, dim), the states to begin with.
        patterns: (batch, number, dim), where they are not learned.
        attention_mask: bool, True = may be found, (query, number), (batch, query, number); sizes
            of 1 stand for all.
        return_weights: bool.

    Shapes:
        (batch, query, dim) -> (batch, query, dim), and with return_weights the weights of the last
        step (batch, query, number), float32. What may find nothing is 0.

    Raises:
        ValueError: for numbers out of range, inputs of another rank or of two widths, patterns that
            are given where they are learned, or are not where they are not.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> patterns = np.array([[[1.0, 1.0], [-1.0, 1.0]]], "float32")
    >>> found = layers.ModernHopfield(beta=50.0)(np.array([[[0.2, 0.0]]], "float32"), patterns)
    >>> np.array(found).round(3).tolist()
    [[[1.0, 1.0]]]

    Source: https://arxiv.org/abs/2008.02217 (Ramsauer et al. 2020), equation 3.
    """

    def __init__(
        self,
        beta=None,
        num_steps=1,
        num_patterns=None,
        patterns_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, value in dict(num_steps=num_steps, num_patterns=num_patterns).items():
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}.")
        if beta is not None and not 0 < beta < float("inf"):
            raise ValueError(f"beta must be finite and above 0, got {beta}.")
        self.beta, self.num_steps, self.num_patterns = beta, num_steps, num_patterns
        self.patterns_initializer = keras.initializers.get(patterns_initializer)

    def build(self, queries_shape, patterns_shape=None):
        for name, shape in (("Queries", queries_shape), ("Patterns", patterns_shape)):
            if shape is not None and (len(shape) != 3 or shape[-1] != queries_shape[-1]):
                raise ValueError(
                    f"{name} must be (batch, number, dim), of one dim, got {tuple(shape)} beside "
                    f"queries {tuple(queries_shape)}."
                )
        if (patterns_shape is None) != (self.num_patterns is not None):
            raise ValueError(
                "Patterns are either given with the call or, with num_patterns, learned; got "
                f"patterns {patterns_shape} and num_patterns={self.num_patterns}."
            )
        if self.num_patterns is not None:
            shape = (self.num_patterns, queries_shape[-1])
            self.patterns = self.add_weight(shape, self.patterns_initializer, name="patterns")

    def call(self, queries, patterns=None, attention_mask=None, return_weights=False):
        patterns = self.patterns[None] if patterns is None else patterns
        # Signs may come as integers, in which weights would be 0.
        queries, patterns = (keras.ops.cast(x, self.compute_dtype) for x in (queries, patterns))
        beta = queries.shape[-1] ** -0.5 if self.beta is None else self.beta
        found = hopfield.retrieve(queries, patterns, beta, self.num_steps, attention_mask)
        return found if return_weights else found[0]

    def get_config(self):
        return {
            **super().get_config(),
            "beta": self.beta,
            "num_steps": self.num_steps,
            "num_patterns": self.num_patterns,
            "patterns_initializer": keras.initializers.serialize(self.patterns_initializer),
        }
