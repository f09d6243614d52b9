import gzip
import struct

import numpy as np
import pytest

from kerasattn import data


def write(folder, images, labels, start="train"):
    header = struct.pack(">4B3I", 0, 0, 8, 3, *images.shape)
    (folder / f"{start}-images-idx3-ubyte").write_bytes(header + images.tobytes())
    header = struct.pack(">4BI", 0, 0, 8, 1, len(labels))
    labels = gzip.compress(header + labels.astype("uint8").tobytes())
    (folder / f"{start}-labels-idx1-ubyte.gz").write_bytes(labels)


def test_idx_files_plain_and_packed(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 5)).astype("uint8")
    write(tmp_path, images, np.array([2, 0, 1]))
    found, labels = data.idx_images(tmp_path, "training")
    np.testing.assert_array_equal(np.round(found[..., 0] * 255), images)
    assert labels.tolist() == [2, 0, 1] and found.dtype == "float32"
    with pytest.raises(ValueError, match="has no file t10k-images-idx3-ubyte or"):
        data.idx_images(tmp_path, "test")
    with pytest.raises(ValueError, match="split must be one of"):
        data.idx_images(tmp_path, "train")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("images-idx3-ubyte", b"", "no IDX file of bytes with 3 axes"),
        ("images-idx3-ubyte", b"\0\0\x0d\3" + bytes(12), "begins with 00000d03"),
        ("images-idx3-ubyte", b"\0\0\x08\3" + b"\xff" * 12, "but has 0"),
        ("images-idx3-ubyte", struct.pack(">4B3I", 0, 0, 8, 3, 0, 2, 2), "0 pictures but 1 labels"),
        ("labels-idx1-ubyte.gz", b"\x1f\x8b damaged", "no gzip file that can be read"),
        # No time of day in it, which would be in the test's name: workers collect the same names.
        (
            "labels-idx1-ubyte.gz",
            gzip.compress(b"\0\0\x08\1" + b"\0" * 9, mtime=0)[:-9],
            "no gzip file",
        ),
    ],
)
def test_damaged_idx_files(name, content, message, tmp_path):
    write(tmp_path, np.zeros((1, 2, 2), "uint8"), np.array([0]))
    (tmp_path / f"train-{name}").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        data.idx_images(tmp_path, "training")
