import numpy as np


class ViterbiDecoder:
    """The best path through scores of tags and of pairs of tags, one text at a time, in numpy.

    `layers.CRFDecode` is the same in the graph, for batches.

    Args:
        trans: (num_tags, num_tags), scores of pairs, from row to column. The attribute may be
            changed.
        starts, ends: lists of the tags that may be first and last, None for all.

    Raises:
        ValueError: for scores of a shape that does not fit.

    Example:

    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import ViterbiDecoder
    >>> decoder = ViterbiDecoder(np.zeros((2, 2)), starts=[1])
    >>> decoder.decode(np.array([[2.0, 1.0], [2.0, 1.0]])).tolist()
    [1, 0]
    """

    def __init__(self, trans, starts=None, ends=None):
        self.trans = trans
        self.num_labels = len(trans)
        others = lambda allowed: (
            [] if allowed is None else [i for i in range(self.num_labels) if i not in allowed]
        )
        self.non_starts, self.non_ends = others(starts), others(ends)

    def decode(self, nodes):
        """The tags of scores (length, num_tags), int (length,); the scores stay as they are."""
        nodes = np.array(nodes, "float32")
        if nodes.ndim != 2 or nodes.shape[1] != self.num_labels:
            raise ValueError(
                f"decode takes scores (length, {self.num_labels}), got shape {nodes.shape}."
            )
        if not len(nodes):
            return np.zeros(0, "int64")
        nodes[0, self.non_starts] = -np.inf
        nodes[-1, self.non_ends] = -np.inf
        trans, best, pointers = np.asarray(self.trans), nodes[0], []
        for node in nodes[1:]:
            scores = best[:, None] + trans + node  # (from, to)
            pointers.append(scores.argmax(axis=0))
            best = scores.max(axis=0)
        path = [best.argmax()]
        for pointer in reversed(pointers):
            path.append(pointer[path[-1]])
        return np.array(path[::-1], "int64")
