"""Attention to what stands near, in blocks: its cost grows with the length, not its square."""

from keras import ops

from kerasattn.ops.attention import dot_product_attention
from kerasattn.ops.masks import positions


def window_attention(query, key, value, before, after, padding_mask=None, **options):
    """Each position attends to `before` positions before it, itself, and `after` behind it.

    The sequence is cut into blocks as long as the window reaches, and the positions of a block
    attend to their own block and its two neighbours, masked by their distance.

    Args:
        query, key: (batch, length, num_heads, head_dim).
        value: (batch, length, num_heads, value_dim).
        before, after: ints >= 0.
        padding_mask: bool (batch, length), True = real token; None for all.
        **options: scale, dropout and seed of `dot_product_attention`.

    Returns:
        (batch, length, num_heads, value_dim), what `dot_product_attention` gives with
        `masks.window(token_ids, before, after)` and that padding.

    Raises:
        ValueError: if the window reaches a negative number of positions.

    Example:
    >>> import numpy as np
    >>> from kerasattn.ops.window import window_attention
    >>> x = np.arange(5.0, dtype="float32").reshape(1, 5, 1, 1)
    >>> even = np.zeros_like(x)
    >>> np.array(window_attention(even, even, x, before=1, after=1))[0, :, 0, 0].tolist()
    [0.5, 1.0, 2.0, 3.0, 3.5]

    Source: https://arxiv.org/abs/1706.03762, section 4 (restricted self-attention);
    https://arxiv.org/abs/2004.05150, section 3.1.
    """
    if before < 0 or after < 0:
        raise ValueError(f"A window reaches 0 or more positions, got {before} and {after}.")
    size = max(before, after, 1)
    batch, length, heads, _ = ops.shape(query)
    blocks = -(-length // size)
    more = blocks * size - length

    def cut(x, fill=0):
        """(batch, length, ...) -> (batch, blocks, size, ...), filled up at the end."""
        rest = list(x.shape[2:])
        x = ops.pad(x, [[0, 0], [0, more]] + [[0, 0]] * len(rest), constant_values=fill)
        return ops.reshape(x, (batch, blocks, size, *rest))

    def near(x, fill=0):
        """Each block beside its neighbours: (batch * blocks, 3 * size, ...)."""
        rest = [[0, 0]] * (len(x.shape) - 2)
        x = ops.pad(x, [[0, 0], [1, 1], *rest], constant_values=fill)
        x = ops.concatenate([x[:, :-2], x[:, 1:-1], x[:, 2:]], axis=2)
        return ops.reshape(x, (batch * blocks, 3 * size, *x.shape[3:]))

    place = positions(query[:, :, 0, 0])  # (batch, length)
    if padding_mask is None:
        padding_mask = ops.ones_like(place, dtype="bool")
    far = -(before + after + 2 * size)  # of what no position sees
    keys = ops.where(padding_mask, place, far)
    distance = near(cut(keys, far), far)[:, None, :] - ops.reshape(
        cut(place), (batch * blocks, size, 1)
    )  # (batch * blocks, size, 3 * size)
    mask = (distance >= -before) & (distance <= after)
    queries = ops.reshape(cut(query), (batch * blocks, size, *query.shape[2:]))
    mixed, _, _ = dot_product_attention(
        queries, near(cut(key)), near(cut(value)), attention_mask=mask, **options
    )  # (batch * blocks, size, heads, value_dim)
    return ops.reshape(mixed, (batch, blocks * size, heads, value.shape[-1]))[:, :length]
