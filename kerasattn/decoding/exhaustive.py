"""Every sequence there is, each scored: what other searches are measured against."""

import numpy as np
from keras import ops

from kerasattn.decoding.constraints import by_row, is_end, process
from kerasattn.decoding.loop import follow, repeat_state
from kerasattn.ops.rows import repeat_each, take_each


def decode_all(decoder, inputs, request, max_new_tokens, strategy, processors=()):
    """Scores all vocabulary ** max_new_tokens sequences and keeps the best `num_return`.

    What stands behind an end does not count: of the sequences that differ there alone one is kept.
    Arguments and results are those of `beam.decode_beams`.

    Raises:
        ValueError: for a decoder without `vocabulary_size`, or more sequences than the bound.
    """
    every = _sequences(decoder.vocabulary_size, max_new_tokens, strategy.most)  # (number, steps)
    number = len(every)
    start = request["start_ids"]
    token_ids = ops.reshape(
        ops.zeros_like(start)[:, None, None] + every[None], (-1, max_new_tokens)
    )  # (batch * number, steps)
    limits = repeat_each(request["limits"], number)
    request = by_row(request, number)

    own, changed = follow(
        decoder,
        repeat_state(decoder.initial_state(inputs, max_new_tokens), number),
        repeat_each(start, number),
        token_ids,
        lambda log_probs, index: process(log_probs, token_ids, index, request, processors),
    )
    running, counts, length = limits > 0, [], ops.zeros_like(limits)
    for index in range(max_new_tokens):
        counts.append(running)
        length = length + ops.cast(running, "int32")
        running = running & ~is_end(token_ids, index, request) & (index + 1 < limits)
    counts = ops.stack(counts, axis=1)  # (rows, steps)
    sums = ops.sum(ops.where(counts, changed, 0.0), axis=1)
    length = ops.cast(ops.maximum(length, 1), "float32")
    scores = sums / ops.power(length, request["parameters"]["length_penalty"])
    one = ops.all(counts | ops.equal(token_ids, 0), axis=1)
    scores = ops.reshape(ops.where(one, scores, -np.inf), (-1, number))
    missing = max(strategy.num_return - number, 0)
    scores = ops.pad(scores, ((0, 0), (0, missing)), constant_values=-np.inf)
    scores, best = ops.top_k(scores, strategy.num_return)  # (batch, num_return)

    def take(leaf, fill):
        leaf = ops.reshape(ops.where(counts, leaf, fill), (-1, number, max_new_tokens))
        index = ops.cast(ops.minimum(best, number - 1), "int32")
        found = (scores > -np.inf)[..., None]
        return ops.where(found, take_each(leaf, index), fill)

    some = ops.reshape(limits, (-1, number))[:, :1] > 0  # as a search does where none are asked
    result = take(token_ids, request["pad_id"]), ops.where(some, scores, 0.0), take(own, 0.0)
    return tuple(leaf[:, 0] for leaf in result) if strategy.num_return == 1 else result


def _sequences(vocabulary, steps, most):
    """All of them in order, (vocabulary ** steps, steps) int32."""
    if vocabulary is None:
        raise ValueError("Exhaustive needs the decoder's vocabulary_size.")
    number = vocabulary**steps
    if number > most:
        raise ValueError(
            f"Exhaustive would score {vocabulary} ** {steps} = {number} sequences a row, more than "
            f"most = {most}: generate fewer tokens, or use Beam."
        )
    places = vocabulary ** np.arange(steps - 1, -1, -1)
    return (np.arange(number)[:, None] // places % vocabulary).astype("int32")
