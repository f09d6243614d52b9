"""Seeds of parts from the seed of the whole."""

import hashlib


def child(seed, name):
    """The seed of a part: no two parts of one whole draw the same noise.

    Args:
        seed: int of the whole, or None.
        name: str, of the part; unique within the whole.

    Returns:
        int from 0 to 2**31 - 1, the same in every process; None for None.

    Example:
    >>> from kerasattn.ops import seeds
    >>> seeds.child(1, "block_0") == seeds.child(1, "block_0")
    True
    >>> seeds.child(1, "block_0") == seeds.child(1, "block_1")
    False
    >>> seeds.child(None, "block_0") is None
    True
    """
    if seed is None:
        return None
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1
