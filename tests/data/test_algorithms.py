import itertools

import numpy as np
import pytest

from kerasattn.data import associative_recall_task, copy_task, repeat_copy_task


def test_copy():
    x, bits, counts = copy_task(50, (2, 5), num_bits=3, seed=0)
    assert x.shape == (50, 11, 4) and bits.shape == (50, 11, 3)
    seen = set()
    for row in range(50):
        length = int(np.argmax(x[row, :, -1]))
        seen.add(length)
        np.testing.assert_array_equal(bits[row, length + 1 : 2 * length + 1], x[row, :length, :3])
        np.testing.assert_array_equal(np.flatnonzero(counts[row]), np.arange(length) + length + 1)
        assert not x[row, length + 1 :].any() and x[row, :, -1].sum() == 1
    assert seen == {2, 3, 4, 5}
    again = copy_task(50, (2, 5), num_bits=3, seed=0)
    assert all((a == b).all() for a, b in zip((x, bits, counts), again))


def test_repeat_copy():
    x, bits, counts = repeat_copy_task(40, (1, 3), (1, 4), num_bits=2, seed=0)
    assert x.shape == (40, 3 + 2 + 3 * 4, 3)
    for row in range(40):
        length = int(np.flatnonzero(x[row, :, -1])[0])
        times = round(x[row, length, -1] * np.sqrt(99 / 12) + 5.5)  # of 1 to 10, all as likely
        said = np.concatenate([x[row, :length, :2]] * times)
        np.testing.assert_array_equal(bits[row, length + 1 :][: len(said), :2], said)
        end = length + 1 + len(said)
        assert bits[row, :, -1].sum() == 1 == bits[row, end, -1]
        np.testing.assert_array_equal(np.flatnonzero(counts[row]), np.arange(length + 1, end + 1))


def test_associative_recall():
    x, bits, counts = associative_recall_task(40, (2, 4), num_bits=4, item_length=2, seed=0)
    assert x.shape == (40, 3 * 4 + 6, 6)
    for row in range(40):
        starts, (asked, end) = np.flatnonzero(x[row, :, -2]), np.flatnonzero(x[row, :, -1])
        items = [x[row, s + 1 : s + 3, :4] for s in starts]
        question = x[row, asked + 1 : end, :4]
        answers = [b for a, b in itertools.pairwise(items) if (a == question).all()]
        assert any((answer == bits[row, end + 1 : end + 3]).all() for answer in answers)
        assert np.flatnonzero(counts[row]).tolist() == [end + 1, end + 2]


def test_what_cannot_be_made():
    with pytest.raises(ValueError, match=r"lengths must be \(least, most\)"):
        copy_task(1, (3, 2))
    with pytest.raises(ValueError, match="number must be at least 1, got 0"):
        copy_task(0)
    with pytest.raises(ValueError, match="2 items or more"):
        associative_recall_task(1, (1, 3))
    with pytest.raises(ValueError, match="repeats must be"):
        repeat_copy_task(1, repeats=(0, 3))
