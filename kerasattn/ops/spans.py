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
