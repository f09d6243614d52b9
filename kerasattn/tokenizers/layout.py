"""Where special tokens stand around one text or two, and how long texts are cut."""

from kerasattn.tokenizers.checks import check_max_length


class Layout:
    """The order of texts and special tokens, with a segment id for each.

    Args:
        single: list of (item, segment) around one text. An item is `"A"`, the text, or the id of a
            special token.
        pair: the same around two texts, `"A"` and `"B"`. None where pairs aren't read.
        pad_segment: int, the segment id of padding.

    Example:

    >>> from kerasattn.tokenizers.layout import Layout
    >>> layout = Layout([(2, 0), ("A", 0), (3, 0)], [(2, 0), ("A", 0), (3, 0), ("B", 1), (3, 1)])
    >>> layout.fill([7, 8], [9])
    [2, 7, 8, 3, 9, 3]
    >>> layout.segments(2, 1)
    [0, 0, 0, 0, 1, 1]
    """

    def __init__(self, single, pair=None, pad_segment=0):
        self.single, self.pair, self.pad_segment = list(single), pair and list(pair), pad_segment

    def items(self, is_pair):
        """The (item, segment) of one text or of two."""
        if not is_pair:
            return self.single
        if self.pair is None:
            raise ValueError("This tokenizer reads single texts only, got a pair.")
        return self.pair

    def room(self, max_length, is_pair):
        """How many tokens of text fit into max_length; None if that is None."""
        special = [item for item, _ in self.items(is_pair) if not isinstance(item, str)]
        check_max_length(max_length, len(special))
        return None if max_length is None else max_length - len(special)

    def fill(self, first, second=None, special=lambda token_id: token_id):
        """One list: the texts' elements, and `special(id)` for each special token."""
        row = []
        for item, _ in self.items(second is not None):
            if isinstance(item, str):
                row.extend(first if item == "A" else second)
            else:
                row.append(special(item))
        return row

    def segments(self, first_length, second_length=None):
        """The segment ids of what `fill` lays out."""
        lengths = {"A": first_length, "B": second_length}
        row = []
        for item, segment in self.items(second_length is not None):
            row += [segment] * (lengths[item] if isinstance(item, str) else 1)
        return row

    def fill_tensors(self, first, second=None):
        """Ragged ids of one text or two -> ragged ids and segments; in the graph."""
        import tensorflow as tf

        one = tf.ones([first.nrows(), 1], first.dtype)
        parts = [
            ({"A": first, "B": second}[item] if isinstance(item, str) else one * item, segment)
            for item, segment in self.items(second is not None)
        ]
        ids = tf.concat([part for part, _ in parts], axis=1)
        segments = tf.concat([tf.zeros_like(part) + s for part, s in parts], axis=1)
        return as_ragged(ids), as_ragged(segments)


def as_ragged(x):
    """A ragged tensor: `concat` of dense parts is dense."""
    import tensorflow as tf

    return x if isinstance(x, tf.RaggedTensor) else tf.RaggedTensor.from_tensor(x)


def keep_lengths(first, second, room, minimum, maximum):
    """How much of a pair stays, in numpy or in the graph: the longer text loses its end first.

    As if the last token of the longer text were taken off until the pair fits, that of the second
    where both are equally long, which is BERT's own rule.
    """
    half = (room + 1) // 2
    kept = minimum(first, maximum(room - second, half))
    return kept, minimum(second, room - kept)
