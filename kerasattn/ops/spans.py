"""Spans of tokens that one model reads masked and another one tells."""

from keras import ops

from kerasattn.ops import masks


def masked(token_ids, starts, lengths, mask_id, ignored=-100):
    """MASS: the encoder reads a text without a span, the decoder writes that span in its place.

    The decoder's own tokens stand where the text has them, each at the place of the next one; all
    else is masked for it, the span's first place too, so that places are those of the text.

    Args:
        token_ids: int (batch, length).
        starts, lengths: int (batch,), the span of each text.
        mask_id: int, what stands for a hidden token.
        ignored: int, the label where nothing is told.

    Returns:
        what the encoder reads, what the decoder reads, and what the decoder tells at each place,
        all int32 (batch, length).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import spans
    >>> for ids in spans.masked(np.array([[11, 12, 13, 14, 15]]), [1], [3], mask_id=3):
    ...     print(np.array(ids)[0])
    [11  3  3  3 15]
    [ 3  3 12 13  3]
    [-100   12   13   14 -100]

    Source: https://arxiv.org/abs/1905.02450, section 3.2 and figure 1.
    """
    token_ids = ops.cast(token_ids, "int32")
    place = masks.positions(token_ids)  # (batch, length)
    start = ops.cast(starts, "int32")[:, None]
    end = start + ops.cast(lengths, "int32")[:, None]
    inside = (place >= start) & (place < end)
    before = ops.pad(token_ids[:, :-1], [[0, 0], [1, 0]])
    reads = ops.where(inside, mask_id, token_ids)
    writes = ops.where(inside & (place > start), before, mask_id)
    return reads, writes, ops.where(inside, token_ids, ignored)


def best(start_logits, end_logits, padding_mask=None, max_tokens=None):
    """The likeliest span of each text, which starts no later than it ends.

    Args:
        start_logits, end_logits: (batch, length).
        padding_mask: bool (batch, length), True = real token, where a span may start and end.
        max_tokens: int >= 1, the longest span; None for any.

    Returns:
        first and last token of the span, int32 (batch,) each, 0 and 0 for a text without a real
        token; and the sum of their logits, float32 (batch,).

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops import spans
    >>> start, end = np.array([[0.0, 0.0, 5.0]]), np.array([[4.0, 0.0, 1.0]])
    >>> [int(x[0]) for x in spans.best(start, end)]  # not from 2 to 0
    [2, 2, 6]

    Source: https://arxiv.org/abs/1611.01603, section 2, 6.
    """
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, got {max_tokens}.")
    starts, ends = ops.cast(start_logits, "float32"), ops.cast(end_logits, "float32")
    place = masks.positions(starts)
    tokens = place[:, None, :] - place[:, :, None] + 1  # (batch, start, end), of each span
    allowed = tokens >= 1
    if max_tokens is not None:
        allowed = allowed & (tokens <= max_tokens)
    if padding_mask is not None:
        allowed = allowed & padding_mask[:, :, None] & padding_mask[:, None, :]
    scores = ops.where(allowed, starts[:, :, None] + ends[:, None, :], -1e30)
    scores = ops.reshape(scores, (ops.shape(scores)[0], -1))
    found = ops.cast(ops.argmax(scores, axis=1), "int32")
    length = ops.shape(starts)[1]
    return found // length, found % length, ops.max(scores, axis=1)
