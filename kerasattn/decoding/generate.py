"""`generate`: any decoder, any strategy, one compiled loop for each shape bucket."""

import numbers
import typing

import keras
import numpy as np
from keras import ops

from kerasattn.decoding.decoder import as_decoder
from kerasattn.decoding.strategies import as_strategy
from kerasattn.ops.compiled import compiled


class Generated(typing.NamedTuple):
    """What `generate` returns with `return_scores=True`, as numpy arrays.

    With `Beam(num_return=n)` and n above 1 each has a second axis of n, best first.

    Attributes:
        token_ids: (batch, max_new_tokens) int32.
        scores: (batch,) float32, the sum of log-probabilities; divided by
            (generated tokens ** length_penalty) for `Beam`. -inf where there is no such hypothesis.
        log_probs: (batch, max_new_tokens) float32, one a token, 0 at padding. They are the model's
            own: before bans, temperature, top-k and top-p.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def count(token_ids, index, state):  # the likeliest token is the next number
    ...     return 9.0 * ops.one_hot(token_ids + 1, 10), state
    >>> found = decoding.generate(count, (), start_ids=[2], max_new_tokens=3, return_scores=True)
    >>> found.token_ids.tolist(), found.log_probs.shape
    ([[3, 4, 5]], (1, 3))
    """

    token_ids: np.ndarray
    scores: np.ndarray
    log_probs: np.ndarray


def generate(
    decoder,
    inputs,
    strategy=None,
    *,
    start_ids,
    max_new_tokens,
    end_id=None,
    pad_id=0,
    banned=(),
    min_new_tokens=0,
    limits=None,
    seed=None,
    return_scores=False,
    jit=True,
):
    """Generates tokens for a batch of inputs in one compiled loop with caches.

    The loop is compiled once for each strategy, max_new_tokens and shape of the inputs, where the
    batch is rounded up to a power of two, and kept on the decoder. It ends when all rows are done.

    Args:
        decoder: a `Decoder`, an object with such methods, or a function
            `step(token_ids, index, state) -> (logits, state)`.
        inputs: nest of tensors with the batch as first axis, for `decoder.initial_state`; for a
            function it is the first state.
        strategy: `Greedy()` (the default), `Sampling(...)` or `Beam(...)`.
        start_ids: ints (batch,), the tokens fed first; they are not part of the result. The last
            tokens of the prompts, or each row's [CLS].
        max_new_tokens: int >= 0.
        end_id: int, several ints, or None: tokens that end a row. The end token is part of the
            result.
        pad_id: int, what stands after the end.
        banned: ints, tokens that are never generated.
        min_new_tokens: int, the end token is not chosen before so many other tokens.
        limits: ints (batch,) or None, the most tokens of each row: generation simply stops there.
        seed: int >= 0, ints (batch,), or None for a fresh one. Row i of a batch draws from
            `numpy.random.default_rng([seed, i])`, or from `default_rng(seed[i])`, one number a
            token, so that a row's result does not depend on the others.
        return_scores: bool, whether to return `Generated` rather than the token ids alone.
        jit: bool, compile with XLA on TensorFlow.

    Shapes:
        -> numpy int32 (batch, max_new_tokens), or (batch, num_return, max_new_tokens).

    Raises:
        ValueError: if shapes do not agree, or an id or number is out of its range.

    Example:
    >>> from keras import ops
    >>> from kerasattn import decoding
    >>> def count(token_ids, index, state):  # the likeliest token is the next number
    ...     return 9.0 * ops.one_hot(token_ids + 1, 10), state
    >>> decoding.generate(count, (), start_ids=[2, 6], max_new_tokens=4, end_id=8).tolist()
    [[3, 4, 5, 6], [7, 8, 0, 0]]
    """
    decoder, strategy = as_decoder(decoder), as_strategy(strategy)
    start_ids = _ids("start_ids", start_ids, decoder.vocabulary_size)
    batch = len(start_ids)
    inputs = keras.tree.map_structure(lambda leaf: _leaf(leaf, batch), inputs)
    request = make_request(
        strategy,
        start_ids=start_ids,
        max_new_tokens=max_new_tokens,
        end_ids=_ids("end_id", [] if end_id is None else end_id, decoder.vocabulary_size),
        pad_id=_ids("pad_id", pad_id, decoder.vocabulary_size)[0],
        banned_ids=np.unique(_ids("banned", banned, decoder.vocabulary_size)),
        min_new_tokens=min_new_tokens,
        limits=_limits(limits, batch, max_new_tokens),
    )
    if strategy.needs_uniforms:
        request["uniforms"] = draw_uniforms(seed, batch, max_new_tokens)
    if batch == 0 or max_new_tokens == 0:
        result = _nothing(batch, strategy, max_new_tokens, request["pad_id"])
    else:
        call = _compiled_loop(decoder, strategy, max_new_tokens, jit)
        result = call(*_pad_batch(inputs, request, batch))
        result = Generated(*(ops.convert_to_numpy(x)[:batch] for x in result))
    return result if return_scores else result.token_ids


def make_request(
    strategy,
    *,
    start_ids,
    max_new_tokens,
    end_ids=(),
    pad_id=0,
    banned_ids=(),
    min_new_tokens=0,
    limits=None,
):
    """The dict of tensors that `strategy.decode(decoder, inputs, request, max_new_tokens)` takes.

    Use both inside a graph of your own, as an exported function does; `Sampling` needs `uniforms`
    (batch, max_new_tokens) in it besides. See `generate` for the arguments.

    Example:
    >>> import numpy as np
    >>> from kerasattn import decoding
    >>> start_ids = np.array([2, 6], "int32")
    >>> request = decoding.make_request(decoding.Greedy(), start_ids=start_ids, max_new_tokens=4)
    >>> np.array(request["limits"]).tolist()
    [4, 4]
    """
    if limits is None:
        limits = ops.full_like(start_ids, max_new_tokens)
    return {
        "start_ids": start_ids,
        "limits": limits,
        "end_ids": np.asarray(end_ids, "int32").reshape(-1),
        "banned_ids": np.asarray(banned_ids, "int32").reshape(-1),
        "pad_id": np.asarray(pad_id, "int32"),
        "min_new_tokens": np.asarray(min_new_tokens, "int32"),
        "parameters": strategy.parameters(),
    }


def draw_uniforms(seed, batch, steps):
    """Numbers in [0, 1), float32 (batch, steps), each row from a generator of its own.

    Example:
    >>> from kerasattn import decoding
    >>> two, three = (decoding.draw_uniforms(1, batch, steps=4) for batch in (2, 3))
    >>> three.shape, bool((two == three[:2]).all())
    ((3, 4), True)
    """
    if seed is None:
        seed = np.random.SeedSequence().entropy
    if np.ndim(seed) == 0:
        if not isinstance(seed, numbers.Integral) or seed < 0:
            raise ValueError(f"seed must be an int, not negative, or None, got {seed!r}.")
        seeds = [[int(seed), row] for row in range(batch)]
    elif len(seed) == batch:
        seeds = [np.asarray(one).tolist() for one in seed]
    else:
        raise ValueError(f"seed must be an int or one for each of {batch} rows, got {len(seed)}.")
    draws = [np.random.default_rng(one).random(steps, dtype="float32") for one in seeds]
    return np.stack(draws) if draws else np.zeros((0, steps), "float32")


def _compiled_loop(decoder, strategy, max_new_tokens, jit):
    loops = vars(decoder).setdefault("_compiled_loops", {})
    key = (*strategy.signature(), max_new_tokens, jit)
    if key not in loops:

        def run(inputs, request):
            return strategy.decode(decoder, inputs, request, max_new_tokens)

        def variables():
            found = decoder.variables
            return list(found() if callable(found) else found)

        loops[key] = compiled(run, variables, jit)
    return loops[key]


def _pad_batch(inputs, request, batch):
    """Rounds the batch up to a power of two with copies of row 0 that are done from the start."""
    more = (1 << (batch - 1).bit_length()) - batch
    if not more:
        return inputs, request

    def pad(leaf):
        return ops.concatenate([leaf, ops.repeat(leaf[:1], more, axis=0)], axis=0)

    rows = {"start_ids", "uniforms"} & set(request)
    request = {**request, **{key: np.pad(request[key], _after(request[key], more)) for key in rows}}
    request["limits"] = np.pad(request["limits"], (0, more))
    return keras.tree.map_structure(pad, inputs), request


def _after(array, more):
    return [(0, more)] + [(0, 0)] * (array.ndim - 1)


def _nothing(batch, strategy, max_new_tokens, pad_id):
    several = getattr(strategy, "num_return", 1)
    shape = (batch,) if several == 1 else (batch, several)
    token_ids = np.full((*shape, max_new_tokens), pad_id, "int32")
    return Generated(token_ids, np.zeros(shape, "float32"), np.zeros(token_ids.shape, "float32"))


def _ids(name, ids, vocabulary_size):
    array = np.asarray(ids).reshape(-1)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got {array.dtype}.")
    top = np.inf if vocabulary_size is None else vocabulary_size
    wrong = array[(array < 0) | (array >= top)]
    if wrong.size:
        raise ValueError(
            f"{name} must be in [0, {top}), the ids of the vocabulary; got {wrong[:5].tolist()}."
        )
    return array.astype("int32")


def _limits(limits, batch, max_new_tokens):
    if not isinstance(max_new_tokens, numbers.Integral) or max_new_tokens < 0:
        raise ValueError(f"max_new_tokens must be an int, not negative, got {max_new_tokens!r}.")
    if limits is None:
        return np.full((batch,), max_new_tokens, "int32")
    limits = _ids("limits", limits, None)
    if limits.shape != (batch,):
        raise ValueError(f"limits must be one int for each of {batch} rows, got {limits.shape}.")
    return np.minimum(limits, max_new_tokens).astype("int32")


def _leaf(leaf, batch):
    if isinstance(leaf, np.ndarray) and leaf.dtype in ("float64", "int64"):
        leaf = leaf.astype(leaf.dtype.kind + "4")  # what numpy makes by default, JAX does not know
    leaf = ops.convert_to_tensor(leaf)
    if not leaf.shape or leaf.shape[0] != batch:
        raise ValueError(
            f"Every tensor of inputs must have the batch as first axis, {batch} as start_ids has; "
            f"got shape {tuple(leaf.shape)}."
        )
    return leaf
