"""The memory of a process that trains on a CPU."""

import ctypes
import sys

# Of mallopt(3), as glibc's malloc.h has them.
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def keep_memory():
    """Let the process keep the memory that it frees, and take it again for the next step.

    A compiled step asks for one large block and frees it at its end. The C library of most Linux
    systems, glibc, hands such blocks back to the kernel, which clears every page of the next one:
    46,000 pages in a step of the model of `examples/univae.py`, 27% of the processor's time, where
    glibc was not told to take huge pages.
    Call it once, before training; it holds for all that the process does from then on, and what
    the process once needed stays its own until it ends. On a GPU it changes nothing.

    Returns:
        bool, whether it could be done: False where the C library is another.

    Example:
        >>> from kerasattn.training import keep_memory
        >>> keep_memory() in (True, False)
        True

    Source: https://man7.org/linux/man-pages/man3/mallopt.3.html
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # musl has another name, and no such function
        return False
    return bool(mallopt(MMAP_MAX, 0) and mallopt(TRIM_THRESHOLD, 2**31 - 1))
