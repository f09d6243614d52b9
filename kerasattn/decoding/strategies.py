"""How tokens are chosen, as small values: Greedy, Sampling, Contrastive, Beam, Exhaustive.

A strategy tells apart what shapes the compiled loop (`signature`) from numbers that are passed to
it (`parameters`), so that another temperature does not compile anything anew.
"""

import dataclasses
import math
import numbers

import numpy as np
from keras import ops

from kerasattn.decoding import beam, contrastive, exhaustive, loop
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

    def path(self, decoder, max_new_tokens, processors=()):
        """The steps of the loop, which a stream takes one at a time."""
        return loop.OnePath(decoder, self.choose, max_new_tokens, processors)

    def decode(self, decoder, inputs, request, max_new_tokens, processors=()):
        """The whole generation, inside the compiled loop."""
        with decoder.prepared():
            return self.path(decoder, max_new_tokens, processors).decode(inputs, request)


@dataclasses.dataclass(frozen=True)
class Sampling(Greedy):
    """Draws each token: logits / temperature, then top-k, top-p and min-p of what is left.

    Args:
        temperature: float > 0. Below 1 sharpens.
        top_k: int >= 1 or None, keep the k most probable tokens; clipped to the vocabulary.
        top_p: float in [0, 1] or None, keep the fewest tokens that hold this probability. 0 keeps
            the best token.
        min_p: float in [0, 1] or None, keep the tokens that are at least so many times as probable
            as the best one.

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
    min_p: float | None = None

    needs_uniforms = True

    def __post_init__(self):
        for name in ("temperature", "top_p", "min_p"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) and (value is not None or name == "temperature"):
                raise ValueError(f"{name} must be a number, got {value!r}.")
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise ValueError(
                f"temperature must be above 0 and finite, got {self.temperature}. "
                "Use Greedy() for the limit of 0."
            )
        sampling.check_top_k(self.top_k)
        sampling.check_top_p(self.top_p)
        sampling.check_min_p(self.min_p)

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return ("sampling", self.top_k, self.top_p is None, self.min_p is None)

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        given = {"temperature": self.temperature, "top_p": self.top_p, "min_p": self.min_p}
        return {k: np.float32(v) for k, v in given.items() if v is not None}

    def choose(self, logits, uniform, parameters):
        """The next token of each row: logits (batch, vocabulary) -> int32 (batch,)."""
        logits = sampling.temper(logits, parameters["temperature"])
        kept = (self.top_k, parameters.get("top_p"), parameters.get("min_p"))
        return sampling.draw(sampling.filter_logits(logits, *kept), uniform)


@dataclasses.dataclass(frozen=True)
class Contrastive(Greedy):
    """Takes, of the likeliest tokens, one whose vector is unlike those of all tokens before.

    Of the `top_k` likeliest it is the one of the largest (1 - alpha) * probability - alpha * the
    largest cosine of its hidden vector with one before. So a text does not run in circles.

    It needs a decoder with `hidden_step`, which the language models and encoder-decoders have, and
    feeds `top_k` tokens a row at each step.

    Args:
        alpha: float in [0, 1]. 0 is greedy.
        top_k: int >= 1; clipped to the vocabulary. 1 is greedy.

    Raises:
        ValueError: if a value is out of its range; for a decoder without `hidden_step`.

    Example:
    >>> from kerasattn import decoding, models
    >>> model = models.GPT2(30, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    >>> model.generate([[7, 8]], decoding.Contrastive(alpha=0.6, top_k=4), 5).shape
    (1, 5)

    Source: https://arxiv.org/abs/2202.06417, equation 5.
    """

    alpha: float = 0.6
    top_k: int = 4

    def __post_init__(self):
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be in [0, 1], got {self.alpha}.")
        sampling.check_top_k(self.top_k)

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return ("contrastive", self.top_k)

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        return {"alpha": np.float32(self.alpha)}

    def path(self, decoder, max_new_tokens, processors=()):
        """The steps of the loop, which a stream takes one at a time."""
        return contrastive.ContrastivePath(decoder, self.top_k, max_new_tokens, processors)


@dataclasses.dataclass(frozen=True)
class Beam:
    """Beam search; a finished hypothesis is kept with its score, whatever comes later.

    The score is the sum of log-probabilities / (generated tokens ** length_penalty), where the end
    token counts. The search goes on until no running beam can still win. A width of 1 is greedy.

    Args:
        width: int >= 1, running hypotheses a row. It may exceed the vocabulary.
        length_penalty: float. 0 compares sums, 1 means a token; above 1 favours long ones.
        num_return: int in [1, width], how many of the best hypotheses are returned.
        groups: int that divides width. Groups of width / groups beams search on their own, one
            after the other at each step.
        diversity: float >= 0, what a group's choice of a beam loses for each beam of the groups
            before that takes the same token at this step. The scores are without it.

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

    Source: groups https://arxiv.org/abs/1610.02424, equation 4, with Hamming diversity.
    """

    width: int
    length_penalty: float = 1.0
    num_return: int = 1
    groups: int = 1
    diversity: float = 0.0

    needs_uniforms = False

    def __post_init__(self):
        _check_ints(self, "width", "num_return", "groups")
        if self.width < 1:
            raise ValueError(f"width must be at least 1, got {self.width}.")
        if not 1 <= self.num_return <= self.width:
            raise ValueError(
                f"num_return must be between 1 and width = {self.width}, got {self.num_return}."
            )
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty must be finite, got {self.length_penalty}.")
        if self.groups < 1 or self.width % self.groups:
            raise ValueError(
                f"groups must be at least 1 and divide width = {self.width}, got {self.groups}."
            )
        if not (self.diversity >= 0 and math.isfinite(self.diversity)):
            raise ValueError(f"diversity must be finite and not negative, got {self.diversity}.")
        if self.diversity and self.groups == 1:
            raise ValueError(f"diversity = {self.diversity} must be 0 for a single group.")

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return ("beam", self.width, self.num_return, self.groups)

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        return {
            "length_penalty": np.float32(self.length_penalty),
            "diversity": np.float32(self.diversity),
        }

    def decode(self, decoder, inputs, request, max_new_tokens, processors=()):
        """The whole generation, inside the compiled loop."""
        with decoder.prepared():
            return beam.decode_beams(decoder, inputs, request, max_new_tokens, self, processors)


@dataclasses.dataclass(frozen=True)
class Exhaustive:
    """Scores every sequence there is and takes the best: what beam search is measured against.

    Of |V| tokens and T steps there are |V| ** T sequences, where greedy search takes T steps and a
    beam of k scores k * |V| * T tokens.

    Args:
        length_penalty: float, as that of `Beam`.
        num_return: int >= 1, how many of the best sequences are returned.
        most: int >= 1, a bound: more sequences a row are refused.

    Raises:
        ValueError: if a value is out of its range, or there are more sequences than `most`.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def count(token_ids, index, state):  # the likeliest token is the next number
    ...     return 9.0 * ops.one_hot(token_ids + 1, 6), state
    >>> counting = decoding.StepFunction(count, vocabulary_size=6)
    >>> every = decoding.Exhaustive()
    >>> decoding.generate(counting, (), every, start_ids=[2], max_new_tokens=3).tolist()
    [[3, 4, 5]]
    """

    length_penalty: float = 1.0
    num_return: int = 1
    most: int = 65536

    needs_uniforms = False

    def __post_init__(self):
        _check_ints(self, "num_return", "most")
        for name in ("num_return", "most"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty must be finite, got {self.length_penalty}.")

    def signature(self):
        """What the compiled loop depends on: a loop is made once for each."""
        return ("exhaustive", self.num_return, self.most)

    def parameters(self):
        """The numbers that the loop takes as tensors, so that they may change between calls."""
        return {"length_penalty": np.float32(self.length_penalty)}

    def decode(self, decoder, inputs, request, max_new_tokens, processors=()):
        """The whole generation, inside the compiled loop."""
        arguments = (decoder, inputs, request, max_new_tokens, self, processors)
        with decoder.prepared():
            return exhaustive.decode_all(*arguments)


def _check_ints(strategy, *names):
    for name in names:
        if not isinstance(getattr(strategy, name), numbers.Integral):
            raise ValueError(f"{name} must be an int, got {getattr(strategy, name)!r}.")
