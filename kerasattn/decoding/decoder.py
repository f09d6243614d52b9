"""What a model offers to be decoded: a state, one step, and how to reorder the state."""

import contextlib
import inspect

import keras
from keras import ops


class Decoder:
    """The step interface: subclass it, or offer the same methods on an object of your own.

    A state is a nest (dict, tuple, list) of tensors, each with the batch as its first axis; `step`
    returns a state of the same shapes and dtypes. Everything runs inside one compiled loop, so use
    `keras.ops`, and keep no tensors on the object.

    `Contrastive` asks for two methods more: `hidden_step`, as `step`, which returns (logits, hidden
    (batch, dim), state), and, where there is a prompt, `prompt_hidden(inputs)`, its tokens' vectors
    (batch, n, dim) and which of them are real (batch, n). `attention_weights` asks for
    `attention_step`.

    Attributes:
        variables: the `keras.Variable`s that `initial_state` and `step` read, or a function that
            returns them. JAX needs them.
        vocabulary_size: int or None. If known, token ids given to `generate` are checked.

    Example: counts up from the first token.
        >>> import numpy as np
        >>> from keras import ops
        >>> from kerasattn import decoding
        >>> class Counter(decoding.Decoder):
        ...     def step(self, token_ids, index, state):
        ...         return ops.one_hot(token_ids + 1, 10), state
        >>> decoding.generate(Counter(), (), start_ids=[2, 6], max_new_tokens=4, end_id=8).tolist()
        [[3, 4, 5, 6], [7, 8, 0, 0]]
    """

    variables = ()
    vocabulary_size = None

    def initial_state(self, inputs, max_new_tokens):
        """The state before the first step.

        Args:
            inputs: what `generate` was given: a nest of tensors with the batch as first axis.
            max_new_tokens: int, how many steps are taken at most: the room that a cache needs.
        """
        return inputs

    def step(self, token_ids, index, state):
        """Feeds one token a row and tells what may come next.

        Args:
            token_ids: int32 tensor (batch,), the token before the one to be chosen.
            index: int32 scalar tensor, how many steps were taken before: 0, 1, ...
            state: the state that the step before returned.

        Returns:
            (logits, state): logits (batch, vocabulary) of any float dtype.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step().")

    def prepared(self):
        """A context around the first state and all steps, for what they share; none by default."""
        return contextlib.nullcontext()

    def reorder(self, state, rows):
        """The state whose row i is row `rows[i]` of this one; rows is int32 (batch,).

        Rows only move within the beams of one input: leaves that are the same for all of its beams
        (say, keys and values of an encoder's output) may be left as they are.
        """
        return keras.tree.map_structure(lambda leaf: ops.take(leaf, rows, axis=0), state)


class StepFunction(Decoder):
    """A decoder from a plain function `step(token_ids, index, state) -> (logits, state)`.

    Keep the object and use it again: compiled loops live on it.

    Args:
        step: callable.
        variables: the `keras.Variable`s that it reads.
        vocabulary_size: int or None.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def count(token_ids, index, state):  # the likeliest token is the next number
    ...     return 9.0 * ops.one_hot(token_ids + 1, 10), state
    >>> counting = decoding.StepFunction(count, vocabulary_size=10)
    >>> decoding.generate(counting, (), start_ids=[2], max_new_tokens=3).tolist()
    [[3, 4, 5]]
    """

    def __init__(self, step, variables=(), vocabulary_size=None):
        self.step = step
        self.variables = variables
        self.vocabulary_size = vocabulary_size


def as_decoder(decoder):
    """Completes an object or function with the defaults of `Decoder`.

    What is made is kept on the object itself, so that its compiled loops are found again.
    """
    if isinstance(decoder, Decoder):
        return decoder
    if isinstance(decoder, type) or not callable(getattr(decoder, "step", decoder)):
        raise ValueError(
            "A decoder has a method step(token_ids, index, state), or is such a function; "
            f"got {decoder!r}."
        )
    # A bound method shares its __dict__ with those of other instances: nothing is kept for it.
    keeps = hasattr(decoder, "__dict__") and not inspect.ismethod(decoder)
    home = vars(decoder) if keeps else {}
    if "_step_decoder" not in home:
        home["_step_decoder"] = _complete(decoder)
    return home["_step_decoder"]


def _complete(decoder):
    completed = StepFunction(
        getattr(decoder, "step", decoder),
        variables=lambda: getattr(decoder, "variables", ()),
        vocabulary_size=getattr(decoder, "vocabulary_size", None),
    )
    methods = ("initial_state", "reorder", "prepared", "hidden_step", "prompt_hidden")
    for method in (*methods, "attention_step"):
        if hasattr(decoder, method):
            setattr(completed, method, getattr(decoder, method))
    return completed
