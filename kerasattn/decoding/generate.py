"""`generate`: any decoder, any strategy, one compiled loop for each shape bucket."""

import numbers
import typing

import keras
import numpy as np
from keras import ops

from kerasattn.decoding import checks
from kerasattn.decoding.attention import attention_weights, check_has_attention
from kerasattn.decoding.buckets import compiled_on, pad_batch
from kerasattn.decoding.decoder import as_decoder
from kerasattn.decoding.strategies import as_strategy
from kerasattn.ops.rows import repeat_each


class Generated(typing.NamedTuple):
    """What `generate` returns with `return_scores=True`, as numpy arrays.

    With `Beam(num_return=n)` and n above 1 each has a second axis of n, best first.

    Attributes:
        token_ids: (batch, max_new_tokens) int32.
        scores: (batch,) float32, the sum of log-probabilities; divided by
            (generated tokens ** length_penalty) for `Beam` and `Exhaustive`, which add up what
            processors made of them. -inf where there is no such hypothesis.
        log_probs: (batch, max_new_tokens) float32, one a token, 0 at padding. They are the model's
            own: before processors, bans, temperature, top-k and top-p.
        attention: with `return_attention=True`, what `attention_weights` returns for the tokens,
            zeros behind a row's end; else, or where there is no token, None.

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
    attention: dict | None = None


def generate(
    decoder,
    inputs,
    strategy=None,
    *,
    start_ids,
    max_new_tokens,
    end_id=None,
    pad_id=0,
    stop=(),
    processors=(),
    banned=(),
    forced=None,
    min_new_tokens=0,
    history=None,
    limits=None,
    seed=None,
    return_scores=False,
    return_attention=False,
    stream=False,
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
        strategy: `Greedy()` (the default), `Sampling(...)`, `Contrastive(...)`, `Beam(...)` or
            `Exhaustive(...)`.
        start_ids: ints (batch,), the tokens fed first; they are not part of the result. The last
            tokens of the prompts, or each row's [CLS].
        max_new_tokens: int >= 0.
        end_id: int, several ints, or None: tokens that end a row. The end token is part of the
            result.
        pad_id: int, what stands after the end.
        stop: list of sequences of ints, or for each row such a list: a row ends with any of them,
            which is part of the result.
        processors: list of `Processor`s, such as `RepetitionPenalty`, `NoRepeatNgram` and
            `AllowedTokens`, applied in this order.
        banned: ints, tokens that are never generated.
        forced: ints (n,) or (batch, n), the first tokens, where -1 leaves the choice; or None.
        min_new_tokens: int, the end token is not chosen before so many other tokens, nor does a
            stop sequence end a row.
        history: ints (batch, n) that processors take as written before, -1 where there is none; by
            default start_ids.
        limits: ints (batch,) or None, the most tokens of each row: generation simply stops there.
        seed: int >= 0, ints (batch,), or None for a fresh one. Row i of a batch draws from
            `numpy.random.default_rng([seed, i])`, or from `default_rng(seed[i])`, one number a
            token, so that a row's result does not depend on the others.
        return_scores: bool, whether to return `Generated` rather than the token ids alone.
        return_attention: bool, whether to return it with attention weights, for which what was
            generated is fed again; of decoders with `attention_step`.
        stream: bool, whether to return an iterator of the tokens of each step, numpy int32
            (batch,), as they come, pad_id where a row is done; of strategies of one path.
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
    >>> [tokens.tolist() for tokens in decoding.generate(
    ...     count, (), start_ids=[2, 6], max_new_tokens=4, stop=[[4, 5]], stream=True)]
    [[3, 7], [4, 8], [5, 9], [0, 0]]
    """
    decoder, strategy = as_decoder(decoder), as_strategy(strategy)
    vocabulary_size, processors = decoder.vocabulary_size, checks.processors(processors)
    start_ids = checks.ids("start_ids", start_ids, vocabulary_size)
    batch = len(start_ids)
    inputs = keras.tree.map_structure(lambda leaf: checks.leaf(leaf, batch), inputs)
    request = make_request(
        strategy,
        start_ids=start_ids,
        max_new_tokens=max_new_tokens,
        end_ids=checks.ids("end_id", [] if end_id is None else end_id, vocabulary_size),
        pad_id=checks.one_id("pad_id", pad_id, vocabulary_size),
        stop_ids=checks.stop_ids(stop, batch, vocabulary_size),
        processors=processors,
        banned_ids=np.unique(checks.ids("banned", banned, vocabulary_size)),
        forced_ids=checks.forced_ids(forced, batch, vocabulary_size),
        min_new_tokens=checks.count("min_new_tokens", min_new_tokens),
        history=checks.history(history, start_ids, vocabulary_size) if processors else None,
        limits=checks.limits(limits, batch, max_new_tokens),
    )
    if strategy.needs_uniforms:
        request["uniforms"] = draw_uniforms(seed, batch, max_new_tokens)
    if stream and (return_scores or return_attention):
        raise ValueError("stream=True gives tokens alone, neither scores nor attention.")
    if return_attention:
        check_has_attention(decoder)
    if stream:
        return _stream(decoder, strategy, processors, inputs, request, max_new_tokens, jit)
    if batch == 0 or max_new_tokens == 0:
        result = _nothing(batch, strategy, max_new_tokens, request["pad_id"])
    else:

        def run(inputs, request):
            return strategy.decode(decoder, inputs, request, max_new_tokens, processors)

        call = compiled_on(decoder, _key(strategy, processors, max_new_tokens, jit), run, jit)
        result = call(*pad_batch(inputs, request, batch))
        result = Generated(*(ops.convert_to_numpy(x)[:batch] for x in result))
    if return_attention and result.token_ids.size:
        result = result._replace(attention=_attention(decoder, inputs, result, request, jit))
    return result if return_scores or return_attention else result.token_ids


def make_request(
    strategy,
    *,
    start_ids,
    max_new_tokens,
    end_ids=(),
    pad_id=0,
    stop_ids=None,
    processors=(),
    banned_ids=(),
    forced_ids=None,
    min_new_tokens=0,
    history=None,
    limits=None,
):
    """The dict of tensors that `strategy.decode(decoder, inputs, request, max_new_tokens)` takes.

    Use both inside a graph of your own, as an exported function does; `Sampling` needs `uniforms`
    (batch, max_new_tokens) in it besides. See `generate` for the arguments; stop_ids are (batch or
    1, sequences, length), filled up in front by -1, forced_ids (batch or 1, n).

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
        "stop_ids": np.zeros((1, 0, 0), "int32") if stop_ids is None else stop_ids,
        "banned_ids": np.asarray(banned_ids, "int32").reshape(-1),
        "forced_ids": np.zeros((1, 0), "int32") if forced_ids is None else forced_ids,
        "history": start_ids[:, None] if history is None else history,
        "pad_id": np.asarray(pad_id, "int32"),
        "min_new_tokens": np.asarray(min_new_tokens, "int32"),
        "parameters": strategy.parameters(),
        "processors": [processor.parameters() for processor in processors],
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


def _stream(decoder, strategy, processors, inputs, request, max_new_tokens, jit):
    """An iterator of the tokens of each step: the loop's step is compiled, the loop is Python's."""
    if not hasattr(strategy, "path"):
        raise ValueError(
            f"stream=True needs a strategy that keeps what it chose, such as Greedy(); got "
            f"{strategy}, which knows its result at the end only."
        )

    def steps():
        batch = len(request["start_ids"])
        if batch == 0 or max_new_tokens == 0:
            return
        path = strategy.path(decoder, max_new_tokens, processors)
        key = _key(strategy, processors, max_new_tokens, jit)
        start = compiled_on(decoder, (*key, "start"), path.start, jit)
        advance = compiled_on(decoder, (*key, "advance"), path.advance, jit)
        padded_inputs, padded = pad_batch(inputs, request, batch)
        carry = start(padded_inputs, padded)
        for _ in range(max_new_tokens):
            if np.all(ops.convert_to_numpy(carry["done"])):
                return
            carry = advance(carry, padded)
            yield ops.convert_to_numpy(carry["tokens"])[:batch]

    return steps()


def _attention(decoder, inputs, result, request, jit):
    """The weights of all hypotheses: of each array (batch, ..., layers, heads, steps, keys)."""
    token_ids, steps = result.token_ids, result.token_ids.shape[-1]
    several = token_ids.size // (len(token_ids) * steps)

    def each(leaf):
        return repeat_each(leaf, several)

    found = attention_weights(
        decoder,
        keras.tree.map_structure(each, inputs),
        token_ids.reshape(-1, steps),
        start_ids=np.repeat(request["start_ids"], several),
        jit=jit,
    )
    written = (token_ids != request["pad_id"]) | (result.log_probs != 0)
    written = np.flip(np.logical_or.accumulate(np.flip(written, -1), axis=-1), -1)

    def masked(weights):
        weights = weights.reshape(*token_ids.shape[:-1], *weights.shape[1:])
        return weights * written[..., None, None, :, None]

    return {name: masked(weights) for name, weights in found.items()}


def _key(strategy, processors, max_new_tokens, jit):
    """What a compiled loop depends on, beside shapes."""
    # With the types: a subclass that chooses otherwise may have its parent's signature.
    one = lambda value: (type(value), value.signature())
    return (*one(strategy), tuple(map(one, processors)), max_new_tokens, jit)


def _nothing(batch, strategy, max_new_tokens, pad_id):
    several = getattr(strategy, "num_return", 1)
    shape = (batch,) if several == 1 else (batch, several)
    token_ids = np.full((*shape, max_new_tokens), pad_id, "int32")
    return Generated(token_ids, np.zeros(shape, "float32"), np.zeros(token_ids.shape, "float32"))
