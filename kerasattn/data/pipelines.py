"""Batches of token ids in a few lengths, in an order that a seed and a number fix."""

import itertools

import numpy as np


class BucketPlan:
    """Which sentences stand in which batch, for every epoch: the numpy half of `bucketed_batches`.

    Sentences go to the shortest bucket that holds them. What does not fill a batch moves up to
    the next bucket, so that every batch but perhaps the epoch's last is full. The batches of
    an epoch follow from (seed, epoch) alone; any of them is found without making those before.

    Args: as for `bucketed_batches`.

    Example:

    >>> from kerasattn.data import BucketPlan
    >>> plan = BucketPlan([[2, 5, 3]] * 10 + [[2, 5, 6, 7, 3]] * 10, batch_size=4, buckets=(4, 8))
    >>> plan.batches_per_epoch
    5
    >>> [batch.shape for batch in plan.epoch(0)].count((4, 4))
    2
    """

    def __init__(
        self,
        token_id_lists,
        batch_size,
        buckets=None,
        *,
        seed=0,
        shuffle=True,
        remainder=None,
        pad_id=0,
        vocabulary_size=None,
    ):
        self.ids, self.lengths = _flatten(token_id_lists, pad_id, vocabulary_size)
        self.starts = np.cumsum(self.lengths) - self.lengths
        if not batch_size >= 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        self.remainder = remainder or ("drop" if shuffle else "keep")
        if self.remainder not in ("drop", "keep", "pad"):
            raise ValueError(f"remainder must be 'drop', 'keep' or 'pad', got {remainder!r}.")
        self.batch_size = batch_size
        if self.remainder == "drop":  # a corpus smaller than a batch is a batch
            self.batch_size = min(batch_size, len(self.lengths))
        self.buckets = _check_buckets(buckets, self.lengths)
        self.seed, self.shuffle, self.pad_id = seed, shuffle, pad_id
        self._bucket_of = np.searchsorted(self.buckets, self.lengths)  # (sentences,)
        full, rest = divmod(len(self.lengths), self.batch_size)
        self.batches_per_epoch = full + (rest > 0 and self.remainder != "drop")

    def epoch(self, epoch, start=0):
        """The int32 arrays (batch, bucket length) of one epoch, from batch number `start` on."""
        rng = np.random.default_rng([self.seed, epoch])
        count = len(self.lengths)
        order = rng.permutation(count) if self.shuffle else np.arange(count)
        batches, rest = [], order[:0]
        for bucket, length in enumerate(self.buckets):
            rows = np.concatenate([rest, order[self._bucket_of[order] == bucket]])
            full = len(rows) // self.batch_size * self.batch_size
            batches += [
                (rows[i : i + self.batch_size], length) for i in range(0, full, self.batch_size)
            ]
            rest = rows[full:]
        if len(rest) and self.remainder != "drop":
            batches.append((rest, self.buckets[-1]))
        turns = rng.permutation(len(batches)) if self.shuffle else range(len(batches))
        for turn in turns[start:]:
            yield self._batch(*batches[turn])

    def _batch(self, rows, length):
        place = np.arange(length)
        real = place < self.lengths[rows, None]  # (batch, length)
        ids = self.ids[np.where(real, self.starts[rows, None] + place, 0)]
        ids = np.where(real, ids, np.int32(self.pad_id))
        missing = self.batch_size - len(rows) if self.remainder == "pad" else 0
        return np.pad(ids, ((0, missing), (0, 0)), constant_values=self.pad_id)


def bucketed_batches(
    token_id_lists,
    batch_size,
    buckets=None,
    *,
    seed=0,
    shuffle=True,
    repeat=True,
    skip_batches=0,
    remainder=None,
    pad_id=0,
    vocabulary_size=None,
):
    """A `tf.data.Dataset` of int32 (batch, bucket length) for `model.fit`.

    For training: shuffled anew every epoch, without end, every batch full, so that a compiled
    step is compiled once a bucket; what does not fill the epoch's last batch (another part
    each epoch) is left out. For validation: `shuffle=False, repeat=False`, with the last batch
    as small as it is, so that every sentence counts once.

    Args:
        token_id_lists: list of int arrays or lists, or an array (sentences, length) padded at
            its end with pad_id.
        batch_size: int >= 1. With remainder "drop" a smaller corpus makes batches of its size.
        buckets: increasing lengths of batches, the last at least that of the longest sentence;
            None takes the six or fewer, multiples of four but for the last, that leave the
            corpus the least padding.
        seed: int >= 0. The same seed gives the same batches in the same order.
        shuffle: whether sentences and batches are shuffled.
        repeat: whether to start over after an epoch, without end.
        skip_batches: int >= 0, how many batches to leave out: `skip_batches=n` goes on exactly
            where a run stopped after n steps, at once.
        remainder: what becomes of the epoch's last sentences, fewer than a batch: "drop" (the
            default if shuffled), "keep", or "pad" (rows of pad_id fill the batch).
        pad_id: int, what sentences are filled up with.
        vocabulary_size: int; ids from it on are refused. None checks only that none is negative.

    Raises:
        ValueError: if there are no sentences, one is empty or longer than the last bucket, or
            an id is out of range.

    Example:

    >>> from kerasattn.data import bucketed_batches
    >>> batches = bucketed_batches([[2, 5, 3]] * 10, batch_size=4, buckets=(4, 8))
    >>> [batch.shape.as_list() for batch in batches.take(2)]
    [[4, 4], [4, 4]]
    """
    if not skip_batches >= 0:
        raise ValueError(f"skip_batches must not be negative, got {skip_batches}.")
    plan = BucketPlan(
        token_id_lists,
        batch_size,
        buckets,
        seed=seed,
        shuffle=shuffle,
        remainder=remainder,
        pad_id=pad_id,
        vocabulary_size=vocabulary_size,
    )
    import tensorflow as tf

    def batches():
        epoch, start = divmod(skip_batches, plan.batches_per_epoch)
        while repeat or epoch == 0:
            yield from plan.epoch(epoch, start)
            epoch, start = epoch + 1, 0

    rows = None if plan.remainder == "keep" else plan.batch_size
    spec = tf.TensorSpec((rows, None), tf.int32)
    data = tf.data.Dataset.from_generator(batches, output_signature=spec)
    left = max(0, plan.batches_per_epoch - skip_batches)
    data = data.apply(
        tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY if repeat else left)
    )
    options = tf.data.Options()
    options.autotune.enabled = False  # its thread can stall the end of an epoch for seconds
    options.deterministic = True
    return data.prefetch(8).with_options(options)


def _flatten(token_id_lists, pad_id, vocabulary_size):
    """All ids one after another, and the length of each sentence; both checked."""
    if isinstance(token_id_lists, np.ndarray) and token_id_lists.ndim == 2:
        real = np.cumsum((token_id_lists != pad_id)[:, ::-1], axis=1)[:, ::-1] > 0
        token_id_lists = [row[keep] for row, keep in zip(token_id_lists, real)]
    rows = [np.asarray(row) for row in token_id_lists]
    if not rows:
        raise ValueError("There are no sentences to make batches of: token_id_lists is empty.")
    lengths = np.array([row.size for row in rows])
    if not lengths.all():
        raise ValueError(
            f"Sentence {lengths.argmin()} has no token ids; encode it with [CLS] and [SEP]."
        )
    for i, row in enumerate(rows):
        if row.ndim != 1 or row.dtype.kind not in "iu":
            raise ValueError(
                f"token_id_lists must hold rows of integers, got row {i} of shape {row.shape} "
                f"and type {row.dtype}."
            )
    ids = np.concatenate(rows)
    below = np.inf if vocabulary_size is None else vocabulary_size
    bad = np.flatnonzero((ids < 0) | (ids >= below))
    if bad.size:
        sentence = np.searchsorted(np.cumsum(lengths), bad[0], side="right")
        allowed = "not negative" if vocabulary_size is None else f"0 to {vocabulary_size - 1}"
        raise ValueError(
            f"Token id {ids[bad[0]]} in sentence {sentence} is out of range: ids must be {allowed}."
        )
    return ids.astype("int32"), lengths


def _check_buckets(buckets, lengths):
    """Lengths of batches that hold every sentence."""
    longest = int(lengths.max())
    if buckets is None:
        return _least_padding(lengths)
    buckets = [int(length) for length in buckets]
    if not buckets or buckets[0] < 1 or any(a >= b for a, b in itertools.pairwise(buckets)):
        raise ValueError(f"buckets must be increasing lengths from 1 on, got {buckets}.")
    if longest > buckets[-1]:
        raise ValueError(
            f"Sentence {lengths.argmax()} has {longest} token ids, the last bucket holds "
            f"{buckets[-1]}: encode with max_length={buckets[-1]} or give a longer bucket."
        )
    return buckets


def _least_padding(lengths, count=6, multiple=4):
    """The `count` or fewer bucket lengths that leave the fewest tokens in all, padding included."""
    ends = np.unique(np.minimum(-(-lengths // multiple) * multiple, lengths.max()))
    fitting = np.searchsorted(np.sort(lengths), ends, side="right")  # sentences, for each end
    # The least for all that fit an end, and the buckets that reach it: one, then ever more.
    tokens, buckets = fitting * ends, [[int(end)] for end in ends]
    for _ in range(count - 1):
        more = tokens[:, None] + (fitting - fitting[:, None]) * ends  # [bucket before, last bucket]
        more = np.where(ends[:, None] < ends, more, np.inf)
        before, least = more.argmin(axis=0), more.min(axis=0)
        buckets = [
            [*buckets[i], int(end)] if fewer else bucket
            for i, end, fewer, bucket in zip(before, ends, least < tokens, buckets)
        ]
        tokens = np.minimum(tokens, least)
    return buckets[-1]
