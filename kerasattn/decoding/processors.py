"""What changes the logits before a token is chosen: values that compose, applied in their order."""

import dataclasses
import numbers
import typing

import numpy as np
from keras import ops


class Processor:
    """Changes logits by what was written before; subclass it for one of your own.

    As a strategy, it tells apart what shapes the compiled loop (`signature`, by default the object
    itself) from numbers that are passed to it (`parameters`).

    A beam search gives the log-probabilities of its beams in the logits' place, and adds up what
    comes back: nothing may be raised above 0 there. -inf forbids a token. Where all are forbidden
    a row ends, and a beam is given up.

    Example: one token is favoured.
        >>> from keras import ops
        >>> from kerasattn import decoding
        >>> class Favour(decoding.Processor):
        ...     def __call__(self, logits, written, column, parameters):
        ...         return logits + 9.0 * ops.one_hot(2, logits.shape[-1])
        >>> def even(token_ids, index, state):  # all tokens are as likely as each other
        ...     return 0.0 * ops.one_hot(token_ids, 4), state
        >>> decoding.generate(even, (), start_ids=[0], max_new_tokens=3,
        ...                   processors=[Favour()]).tolist()
        [[2, 2, 2]]
    """

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return self

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        return {}

    def __call__(self, logits, written, column, parameters):
        """The changed logits.

        Args:
            logits: float32 (rows, vocabulary).
            written: int32 (rows, columns), the tokens before, -1 where there is none: those that
                `history` names, then the new ones.
            column: int32 scalar, where in `written` the next token goes.
            parameters: dict of `parameters()`, as tensors.
        """
        raise NotImplementedError(f"{type(self).__name__} must define __call__().")


@dataclasses.dataclass(frozen=True)
class RepetitionPenalty(Processor):
    """Makes tokens that were written before less likely: logits above 0 are divided, others times.

    Args:
        penalty: float > 0; 1 changes nothing.

    Raises:
        ValueError: if the penalty is not positive.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def stay(token_ids, index, state):  # the likeliest token is the same again
    ...     return 9.0 * ops.one_hot(token_ids, 4) + 8.0 * ops.one_hot(token_ids + 1, 4), state
    >>> penalty = decoding.RepetitionPenalty(2.0)
    >>> decoding.generate(stay, (), start_ids=[0], max_new_tokens=3, processors=[penalty]).tolist()
    [[1, 2, 3]]

    Source: https://arxiv.org/abs/1909.05858, section 4.1.
    """

    penalty: float

    def __post_init__(self):
        if not (self.penalty > 0 and np.isfinite(self.penalty)):
            raise ValueError(f"penalty must be above 0 and finite, got {self.penalty}.")

    def signature(self):
        return "repetition_penalty"

    def parameters(self):
        return {"penalty": np.float32(self.penalty)}

    def __call__(self, logits, written, column, parameters):
        penalty = parameters["penalty"]
        changed = ops.where(logits > 0, logits / penalty, logits * penalty)
        return ops.where(_marked(written, written >= 0, logits), changed, logits)


@dataclasses.dataclass(frozen=True)
class NoRepeatNgram(Processor):
    """Forbids the token that would make an n-gram that was written before.

    Args:
        size: int >= 1, of the n-grams; 1 forbids every token that was written.

    Raises:
        ValueError: if the size is below 1.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def stay(token_ids, index, state):  # the likeliest token is the same again
    ...     return 9.0 * ops.one_hot(token_ids, 4) + 8.0 * ops.one_hot(token_ids + 1, 4), state
    >>> once = decoding.NoRepeatNgram(2)
    >>> decoding.generate(stay, (), start_ids=[0], max_new_tokens=5, processors=[once]).tolist()
    [[0, 1, 1, 2, 2]]

    Source: https://arxiv.org/abs/1705.04304, section 2.5.
    """

    size: int

    def __post_init__(self):
        if not isinstance(self.size, numbers.Integral) or self.size < 1:
            raise ValueError(f"size must be an int of at least 1, got {self.size!r}.")

    def __call__(self, logits, written, column, parameters):
        before, columns = self.size - 1, written.shape[1]
        if columns < self.size:
            return logits
        last = ops.maximum(column - before + np.arange(before, dtype="int32"), 0)
        last = ops.take(written, last, axis=1)  # (rows, size - 1): what an n-gram would end on
        following = written[:, before:]  # (rows, windows), with the tokens before each:
        windows = [written[:, k : columns - before + k] for k in range(before)]
        same = (following >= 0) & (column >= before)
        for k, window in enumerate(windows):
            same = same & ops.equal(window, last[:, k : k + 1]) & (window >= 0)
        return ops.where(_marked(following, same, logits), -np.inf, logits)


@dataclasses.dataclass(frozen=True)
class AllowedTokens(Processor):
    """Lets a function say which tokens may come next: a grammar, a trie, a list of names.

    Args:
        function: of (written (rows, columns) int32, column int32), as those of `Processor`, to
            bool (rows, vocabulary) or (1, vocabulary), in `keras.ops`. Keep it and use it again:
            a loop is compiled for each function.

    Raises:
        ValueError: if it is no function.

    Example: even and odd tokens by turns.
        >>> import numpy as np
        >>> from keras import ops
        >>> from kerasattn import decoding
        >>> def by_turns(written, column):
        ...     return ops.equal(np.arange(6) % 2, column % 2)[None]
        >>> def count(token_ids, index, state):
        ...     return 9.0 * ops.one_hot(token_ids + 1, 6), state
        >>> turns = decoding.AllowedTokens(by_turns)
        >>> decoding.generate(count, (), start_ids=[1], max_new_tokens=3,
        ...                   processors=[turns]).tolist()
        [[1, 2, 3]]
    """

    function: typing.Callable

    def __post_init__(self):
        if not callable(self.function):
            raise ValueError(f"function must be a function, got {self.function!r}.")

    def __call__(self, logits, written, column, parameters):
        return ops.where(self.function(written, column), logits, -np.inf)


def _marked(token_ids, which, logits):
    """Whether each token of the vocabulary is among a row's: (rows, n) -> (rows, vocabulary)."""
    rows, vocabulary = ops.shape(logits)
    row = ops.cumsum(ops.ones_like(token_ids[:, :1]), axis=0) - 1  # (rows, 1)
    flat = ops.where(which, row * vocabulary + token_ids, 0)
    count = ops.scatter(
        ops.reshape(flat, (-1, 1)),
        ops.reshape(ops.cast(which, "int32"), (-1,)),
        (rows * vocabulary,),
    )
    return ops.reshape(count, (-1, vocabulary)) > 0
