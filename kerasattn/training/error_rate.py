"""How far what was written is from what it should be, in symbols."""

import numpy as np


def edit_distance(written, wanted):
    """The fewest symbols to be put in, left out or replaced that make one sequence of the other.

    Args:
        written, wanted: strings, or sequences of symbols that can be compared.

    Example:
    >>> from kerasattn.training.error_rate import edit_distance
    >>> edit_distance("sitting", "kitten"), edit_distance(["AH", "N"], ["N"])
    (3, 1)

    Source: Wagner, Fischer, 1974, The String-to-String Correction Problem.
    """
    previous = list(range(len(wanted) + 1))
    for i, symbol in enumerate(written):
        row = [i + 1]
        for j, other in enumerate(wanted):
            replaced = previous[j] + (symbol != other)
            row.append(min(replaced, previous[j + 1] + 1, row[j] + 1))
        previous = row
    return previous[-1]


def error_rate(written, references):
    """Edits that are needed over symbols that are wanted, as the phoneme error rate of a corpus.

    Where several sequences would be right, the nearest to what was written counts.

    Args:
        written: list of sequences.
        references: list of lists of sequences, what would be right for each.

    Returns:
        The rate, and for each sequence the pair of edits and of symbols wanted, int (number, 2).

    Raises:
        ValueError: for lists of other lengths, or without a reference.

    Example:
    >>> from kerasattn.training.error_rate import error_rate
    >>> rate, counts = error_rate(["abc", "d"], [["abd"], ["e", "d"]])
    >>> rate, counts.tolist()
    (0.25, [[1, 3], [0, 1]])
    """
    if len(written) != len(references) or not all(references):
        raise ValueError(
            f"Each of {len(written)} sequences needs a reference or more, got {len(references)} "
            f"lists, {sum(not one for one in references)} of them empty."
        )
    counts = [
        min((edit_distance(one, wanted), len(wanted)) for wanted in right)
        for one, right in zip(written, references, strict=True)
    ]
    counts = np.array(counts, "int64").reshape(-1, 2)
    return float(counts[:, 0].sum() / max(1, counts[:, 1].sum())), counts
