"""Algorithms to be learned from examples: copying, copying several times, associative recall.

Each task gives inputs (number, length, dim), bits to answer with (number, length, bits), and which
steps count (number, length), 1 or 0, for `sample_weight`. Rows shorter than the longest that may be
are filled up with zeros, which do not count.
"""

import numpy as np

REPEATS = (1, 10)  # their number comes in less its mean, over its deviation, as of these


def copy_task(number, lengths=(1, 20), num_bits=8, seed=None):
    """Random vectors, an end mark, and then the same vectors to be said.

    Args:
        number: int >= 1, of sequences.
        lengths: (least, most), of the vectors of a sequence, all as likely.
        num_bits: int >= 1, of a vector.
        seed: int, None or numpy Generator.

    Returns:
        inputs float32 (number, 2 * most + 1, num_bits + 1), of which the last number is the mark;
        bits float32 (number, 2 * most + 1, num_bits); counts float32 (number, 2 * most + 1).

    Raises:
        ValueError: for numbers below 1.

    Example:
    >>> from kerasattn.data import copy_task
    >>> inputs, bits, counts = copy_task(1, lengths=(2, 2), num_bits=1, seed=1)
    >>> inputs[0].tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    >>> bits[0, :, 0].tolist(), counts[0].tolist()
    ([0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0])

    Source: https://arxiv.org/abs/1410.5401, section 4.1.
    """
    random, most = _check(number, lengths, num_bits, seed)
    inputs, bits, counts = _empty(number, 2 * most + 1, num_bits + 1, num_bits)
    for row in range(number):
        length = random.integers(lengths[0], most + 1)
        vectors = random.integers(0, 2, (length, num_bits))
        inputs[row, :length, :num_bits] = vectors
        inputs[row, length, -1] = 1
        said = slice(length + 1, 2 * length + 1)
        bits[row, said], counts[row, said] = vectors, 1
    return inputs, bits, counts


def repeat_copy_task(number, lengths=(1, 10), repeats=REPEATS, num_bits=8, seed=None):
    """Random vectors, how often to say them, and then the same so many times, and an end mark.

    Args:
        number: int >= 1, of sequences.
        lengths: (least, most), of the vectors of a sequence.
        repeats: (least, most), how often they are to be said. Said as (times - 5.5) / 2.87, which
            has mean 0 and variance 1 for 1 to 10 times.
        num_bits: int >= 1, of a vector.
        seed: int, None or numpy Generator.

    Returns:
        inputs float32 (number, length, num_bits + 1), the last number is that of times; bits
        float32 (number, length, num_bits + 1), the last is the end mark; counts float32
        (number, length). length is most + 2 + most * most times.

    Raises:
        ValueError: for numbers below 1.

    Example:
    >>> from kerasattn.data import repeat_copy_task
    >>> inputs, bits, counts = repeat_copy_task(1, (1, 1), (2, 2), num_bits=1, seed=2)
    >>> inputs[0].round(2).tolist()[0], inputs[0, 1].round(2).tolist()[0], inputs.shape
    ([1.0, 0.0], 0.0, (1, 5, 2))
    >>> bits[0].tolist()
    [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]

    Source: https://arxiv.org/abs/1410.5401, section 4.2.
    """
    random, most = _check(number, lengths, num_bits, seed)
    _check_range("repeats", repeats)
    all_times = np.arange(REPEATS[0], REPEATS[1] + 1)
    inputs, bits, counts = _empty(number, most + 2 + most * repeats[1], num_bits + 1, num_bits + 1)
    for row in range(number):
        length = random.integers(lengths[0], most + 1)
        times = random.integers(repeats[0], repeats[1] + 1)
        vectors = random.integers(0, 2, (length, num_bits))
        inputs[row, :length, :num_bits] = vectors
        inputs[row, length, -1] = (times - all_times.mean()) / all_times.std()
        end = length + 1 + length * times
        bits[row, length + 1 : end, :num_bits] = np.tile(vectors, (times, 1))
        bits[row, end, -1] = 1
        counts[row, length + 1 : end + 1] = 1
    return inputs, bits, counts


def associative_recall_task(number, items=(2, 6), num_bits=6, item_length=3, seed=None):
    """Items of a few vectors each, one of them again, and then the one after it to be said.

    Args:
        number: int >= 1, of sequences.
        items: (least, most), of the items of a sequence; at least 2.
        num_bits, item_length: ints >= 1, of a vector, and vectors of an item.
        seed: int, None or numpy Generator.

    Returns:
        inputs float32 (number, length, num_bits + 2), the last two numbers mark the beginning of
        an item, and the beginning and the end of the question; bits float32 (number, length,
        num_bits); counts float32 (number, length). length is (item_length + 1) * most +
        2 * item_length + 2.

    Raises:
        ValueError: for numbers below 1, or fewer than 2 items.

    Example:
    >>> from kerasattn.data import associative_recall_task
    >>> inputs, bits, counts = associative_recall_task(1, (2, 2), 2, item_length=1, seed=0)
    >>> inputs[0, :, 2:].tolist()
    [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    >>> bool((inputs[0, 5] == inputs[0, 1]).all() and (bits[0, 7] == inputs[0, 3, :2]).all())
    True

    Source: https://arxiv.org/abs/1410.5401, section 4.3.
    """
    random, most = _check(number, items, num_bits, seed, name="items")
    if items[0] < 2 or item_length < 1:
        raise ValueError(
            "Associative recall needs 2 items or more, of at least 1 vector, got "
            f"items={tuple(items)}, item_length={item_length}."
        )
    step = item_length + 1
    inputs, bits, counts = _empty(number, step * (most + 2), num_bits + 2, num_bits)
    for row in range(number):
        count = random.integers(items[0], most + 1)
        vectors = random.integers(0, 2, (count, item_length, num_bits))
        for i, item in enumerate(vectors):
            inputs[row, i * step, -2] = 1
            inputs[row, i * step + 1 : (i + 1) * step, :num_bits] = item
        asked = random.integers(count - 1)
        begin = count * step
        inputs[row, [begin, begin + step], -1] = 1
        inputs[row, begin + 1 : begin + step, :num_bits] = vectors[asked]
        said = slice(begin + step + 1, begin + 2 * step)
        bits[row, said], counts[row, said] = vectors[asked + 1], 1
    return inputs, bits, counts


def _check(number, lengths, num_bits, seed, name="lengths"):
    for what, value in (("number", number), ("num_bits", num_bits)):
        if value < 1:
            raise ValueError(f"{what} must be at least 1, got {value}.")
    _check_range(name, lengths)
    return np.random.default_rng(seed), lengths[1]


def _check_range(name, values):
    if len(values) != 2 or not 1 <= values[0] <= values[1]:
        raise ValueError(
            f"{name} must be (least, most) with 1 <= least <= most, got {tuple(values)}."
        )


def _empty(number, length, *dims):
    shapes = [(number, length, dim) for dim in dims] + [(number, length)]
    return [np.zeros(shape, "float32") for shape in shapes]
