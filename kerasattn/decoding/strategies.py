"""How the next token is chosen, as small values: Greedy, Sampling, Beam.

A strategy tells apart what shapes the compiled loop (`signature`) from numbers that are passed to
it (`parameters`), so that another temperature does not compile anything anew.
"""

import dataclasses
import math
import numbers

import numpy as np
from keras import ops

from kerasattn.decoding import beam, loop
from kerasattn.ops import sampling


def as_strategy(strategy):
    """The strategy itself, `Greedy()` for None.

    Raises:
        ValueError: for what is none, such as the class instead of an object, or its name.

    Example:
    >>> from kerasattn import decoding
    >>> decoding.strategies.as_strategy(None)
    Greedy()
    """
    if strategy is None:
        return Greedy()
    if isinstance(strategy, type) or not callable(getattr(strategy, "decode", None)):
        raise ValueError(
            f"strategy takes Greedy(), Sampling(...), Beam(...) or the like, got {strategy!r}."
        )
    return strategy


@dataclasses.dataclass(frozen=True)
class Greedy:
    """Takes the most probable token at each step; the lowest id among equals.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def count(token_ids, index, state):  # the likeliest token is the next number
    ...     return 9.0 * ops.one_hot(token_ids + 1, 10), state
    >>> decoding.generate(count, (), decoding.Greedy(), start_ids=[2], max_new_tokens=3).tolist()
    [[3, 4, 5]]
    """

    needs_uniforms = False

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return ("greedy",)

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        return {}

    def choose(self, logits, uniform, parameters):
        """The next token of each row: logits (batch, vocabulary) -> int32 (batch,)."""
        return ops.cast(ops.argmax(logits, axis=-1), "int32")

    def decode(self, decoder, inputs, request, max_new_tokens):
        """The whole generation, inside the compiled loop."""
        return loop.decode_one_path(decoder, inputs, request, max_new_tokens, self.choose)


@dataclasses.dataclass(frozen=True)
class Sampling(Greedy):
    """Draws each token: logits / temperature, then top-k, then top-p of what is left.

    Args:
        temperature: float > 0. Below 1 sharpens.
        top_k: int >= 1 or None, keep the k most probable tokens; clipped to the vocabulary.
        top_p: float in [0, 1] or None, keep the fewest tokens that hold this probability. 0 keeps
            the best token.

    Raises:
        ValueError: if a value is out of its range.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def count(token_ids, index, state):  # the likeliest token is the next number
    ...     return 9.0 * ops.one_hot(token_ids + 1, 10), state
    >>> strategy = decoding.Sampling(top_k=1)  # which is greedy
    >>> decoding.generate(count, (), strategy, start_ids=[2], max_new_tokens=3).tolist()
    [[3, 4, 5]]
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    needs_uniforms = True

    def __post_init__(self):
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise ValueError(
                f"temperature must be above 0 and finite, got {self.temperature}. "
                "Use Greedy() for the limit of 0."
            )
        sampling.check_top_k(self.top_k)
        sampling.check_top_p(self.top_p)

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return ("sampling", self.top_k, self.top_p is None)

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        top_p = 1.0 if self.top_p is None else self.top_p
        return {"temperature": np.float32(self.temperature), "top_p": np.float32(top_p)}

    def choose(self, logits, uniform, parameters):
        """The next token of each row: logits (batch, vocabulary) -> int32 (batch,)."""
        logits = sampling.temper(logits, parameters["temperature"])
        top_p = None if self.top_p is None else parameters["top_p"]
        return sampling.draw(sampling.filter_logits(logits, self.top_k, top_p), uniform)


@dataclasses.dataclass(frozen=True)
class Beam:
    """Beam search; a finished hypothesis is kept with its score, whatever comes later.

    The score is the sum of log-probabilities / (generated tokens ** length_penalty), where the end
    token counts. The search goes on until no running beam can still win. A width of 1 is greedy.

    Args:
        width: int >= 1, running hypotheses a row. It may exceed the vocabulary.
        length_penalty: float. 0 compares sums, 1 means a token; above 1 favours long ones.
        num_return: int in [1, width], how many of the best hypotheses are returned.

    Raises:
        ValueError: if a value is out of its range.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def count(token_ids, index, state):  # the likeliest token is the next number
    ...     return 9.0 * ops.one_hot(token_ids + 1, 10), state
    >>> strategy = decoding.Beam(width=3, num_return=2)
    >>> decoding.generate(count, (), strategy, start_ids=[2], max_new_tokens=3).shape
    (1, 2, 3)
    """

    width: int
    length_penalty: float = 1.0
    num_return: int = 1

    needs_uniforms = False

    def __post_init__(self):
        for name in ("width", "num_return"):
            if not isinstance(getattr(self, name), numbers.Integral):
                raise ValueError(f"{name} must be an int, got {getattr(self, name)!r}.")
        if self.width < 1:
            raise ValueError(f"width must be at least 1, got {self.width}.")
        if not 1 <= self.num_return <= self.width:
            raise ValueError(
                f"num_return must be between 1 and width = {self.width}, got {self.num_return}."
            )
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty must be finite, got {self.length_penalty}.")

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return ("beam", self.width, self.num_return)

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        return {"length_penalty": np.float32(self.length_penalty)}

    def decode(self, decoder, inputs, request, max_new_tokens):
        """The whole generation, inside the compiled loop."""
        return beam.decode_beams(
            decoder, inputs, request, max_new_tokens, self.width, self.num_return
        )
