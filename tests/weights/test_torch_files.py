"""Reading `pytorch_model.bin`: good files, damaged ones, and those that would call something."""

import collections
import json
import os
import pickle
import struct
import zipfile

import ml_dtypes
import numpy as np
import pytest

from kerasattn.weights.pickles import Machine
from kerasattn.weights.torch_files import TorchSource, find_huggingface, open_huggingface

ROOT = "archive"
RNG = np.random.default_rng(0)
ARRAYS = {
    "a": RNG.normal(size=(3, 4)).astype("float32"),
    "b": np.arange(6, dtype="int64"),
    "half": np.array([1.5, -2.0], "float16"),
    "brain": np.array([[1.5, -2.0]], ml_dtypes.bfloat16),
    "scalar": np.array(3.5, "float64"),
}
KINDS = {
    "float32": "FloatStorage",
    "int64": "LongStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "float64": "DoubleStorage",
}


def name(module, attribute):
    """The instruction that names something."""
    return b"c" + f"{module}\n{attribute}\n".encode()


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return b"J" + struct.pack("<i", value)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def storage(kind, key, size):
    return (
        b"("
        + text("storage")
        + name("torch", kind)
        + text(key)
        + text("cpu")
        + number(size)
        + b"tQ"
    )


def tensor(kind, key, size, shape, strides, offset=0):
    """A tensor in the instructions that PyTorch writes, by the rules of the pickle protocol."""
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + storage(kind, key, size)
        + number(offset)
        + numbers(shape)
        + numbers(strides)
        + b"\x89"
        + name("collections", "OrderedDict")
        + b")RtR"
    )


def contents(items):
    """A pickle of an ordered dict with the metadata that modules add."""
    body = b"".join(text(key) + value for key, value in items.items())
    metadata = b"}" + text("_metadata") + name("collections", "OrderedDict") + b")Rs"
    return (
        b"\x80\x02" + name("collections", "OrderedDict") + b")R(" + body + b"u" + metadata + b"b."
    )


def of_arrays(arrays):
    return {
        key: tensor(
            KINDS[array.dtype.name],
            str(i),
            array.size,
            array.shape,
            [stride // array.itemsize for stride in array.strides],
        )
        for i, (key, array) in enumerate(arrays.items())
    }


def write(path, pickled, arrays=ARRAYS, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(f"{ROOT}/data.pkl", pickled)
        archive.writestr(f"{ROOT}/byteorder", "little")
        for i, array in enumerate(arrays.values()):
            archive.writestr(f"{ROOT}/data/{i}", array.tobytes())
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pytorch_model.bin"


def check_same(source, arrays):
    assert set(source.names) == set(arrays)
    for key, array in arrays.items():
        read = source.read(key)
        assert source.shape(key) == read.shape == array.shape and read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)


# === Good files ===


def test_a_zip_file(path):
    write(path, contents(of_arrays(ARRAYS)))
    with open_huggingface(find_huggingface(path.parent)) as source:
        check_same(source, ARRAYS)


def test_views(path):
    stored = np.arange(12, dtype="float32")
    items = {
        "transposed": tensor("FloatStorage", "0", 12, (4, 3), (1, 4)),
        "part": tensor("FloatStorage", "0", 12, (2, 2), (4, 1), offset=5),
        "empty": tensor("FloatStorage", "0", 12, (0, 3), (3, 1)),
    }
    write(path, contents(items), {"0": stored})
    expected = stored.reshape(3, 4)
    with TorchSource(path) as source:
        wanted = {"transposed": expected.T, "part": expected[1:, 1:3], "empty": expected[:0, :3]}
        check_same(source, wanted)


def legacy(path, pickled, keys, arrays):
    """The format before PyTorch 1.6: pickles, then storages."""
    heads = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True, "type_sizes": {"int": 4}})
    data = b"".join(pickle.dumps(head, protocol=2) for head in heads)
    data += pickled + pickle.dumps(keys, protocol=2)
    for array in arrays:
        data += struct.pack("<q", array.size) + array.tobytes()
    path.write_bytes(data)
    return path


def test_a_file_of_before_2020(path):
    # There a storage has a sixth part, which is None.
    pickled = contents(of_arrays(ARRAYS)).replace(b"tQ", b"NtQ")
    keys = [str(i) for i in range(len(ARRAYS))]
    legacy(path, pickled, keys, ARRAYS.values())
    with TorchSource(path) as source:
        check_same(source, ARRAYS)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="is not there whole"):
        TorchSource(path)


def test_shards(tmp_path):
    where = {}
    for i, (key, array) in enumerate(ARRAYS.items()):
        where[key] = f"pytorch_model-{i}.bin"
        write(tmp_path / where[key], contents(of_arrays({key: array})), {key: array})
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": where}))
    with open_huggingface(find_huggingface(tmp_path)) as source:
        check_same(source, ARRAYS)
    index.write_text(json.dumps({"weight_map": {"a": "../pytorch_model-0.bin"}}))
    with pytest.raises(ValueError, match="points outside its folder"):
        open_huggingface(index)


def test_safetensors_come_first(tmp_path):
    assert find_huggingface(tmp_path) is None
    (tmp_path / "pytorch_model.bin").touch()
    assert find_huggingface(tmp_path).name == "pytorch_model.bin"
    (tmp_path / "model.safetensors").touch()
    assert find_huggingface(tmp_path).name == "model.safetensors"


# === Bad files ===


class Calls:
    """Unpickling it makes a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_calls_something_is_refused_and_not_run(path, protocol):
    folder = path.parent / "made"
    for hostile in (Calls(folder), {"a": Calls(folder)}, collections.OrderedDict(a=Calls(folder))):
        pickled = pickle.dumps(hostile, protocol)
        for zipped in (True, False):
            write(path, pickled) if zipped else path.write_bytes(pickled)
            with pytest.raises(ValueError, match=r"cannot be read as a checkpoint"):
                TorchSource(path)
    assert not folder.exists()
    pickle.loads(pickled)
    assert folder.exists()  # so it would have


@pytest.mark.parametrize(
    "program, message",
    [
        (name("os", "system") + text("true") + b"\x85R.", "it names os.system"),
        (name("builtins", "eval") + b".", "it names builtins.eval"),
        (b"\x8c\x02os\x8c\x06system\x93.", "it names os.system"),
        (b"(" + text("true") + b"ios\nsystem\n.", "INST"),
        (name("torch", "load") + b".", "it names torch.load"),
        (name("torch._utils", "_rebuild_tensor_v2") + text("a") + b"\x85R.", "a tensor of a str"),
        (name("collections", "OrderedDict") + b"(K\x01tR.", "made from arguments"),
        (text("a") + text("b") + b"\x85R.", "no function|not a function"),
        (text("a") + b"}b.", "attributes for what is not a dict"),
        (b"\x8b\xff\xff\xff\x7f", "not enough data"),
        (b"]" + text("a") + text("b") + b"s.", "not a dict"),
        (b"}(]K\x01u.", "keys that are not texts"),
        (b"(((", "end|STOP|exhausted"),
        (b"t.", "pop from empty list|empty"),
        (b"h\x07.", "7"),
    ],
)
def test_programs_that_do_anything_else(path, program, message):
    write(path, program)
    with pytest.raises(ValueError, match=message):
        TorchSource(path)


@pytest.mark.parametrize(
    "size, shape, strides, offset",
    [
        (4, (5,), (1,), 0),  # more than there is
        (4, (4,), (1,), 1),
        (4, (2, 2), (4, 1), 0),
        (4, (10**6, 10**6), (0, 0), 0),  # 4 TB out of one number
        (4, (-1,), (1,), 0),
        (4, (2,), (-1,), 1),
        (4, (2,), (1, 1), 0),
        (400, (400,), (1,), 0),  # a storage that claims more than the file has
    ],
)
def test_tensors_that_are_not_there(path, size, shape, strides, offset):
    item = tensor("FloatStorage", "0", size, shape, strides, offset)
    write(path, contents({"a": item}), {"a": np.zeros(4, "float32")})
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        TorchSource(path)


def test_other_bad_files(path):
    pickled = contents(of_arrays(ARRAYS))
    write(path, pickled)
    whole = path.read_bytes()
    for kept in (0, 10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:kept])
        with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
            TorchSource(path)
    with pytest.raises(ValueError, match="does not exist"):
        TorchSource(path.parent / "nowhere.bin")
    write(path, pickled, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="is compressed"):
        TorchSource(path)
    write(path, pickled, {"a": ARRAYS["a"]})
    with pytest.raises(ValueError, match="cannot be read"):
        TorchSource(path)
    write(path, pickle.dumps([1, 2], protocol=2))
    with pytest.raises(ValueError, match="it holds a list, no dict of tensors"):
        TorchSource(path)


@pytest.mark.parametrize("end", [b"\x93.", b"Q.", b"\x85R.", b"(h\x00h\x00h\x00h\x00h\x00tQ."])
def test_tuples_that_stand_for_more_than_memory_holds(path, end):
    """Each is twice the one before it."""
    program = b")q\x00" + b"h\x00h\x00\x86q\x00" * 200 + b"h\x00" + end
    write(path, program)
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        TorchSource(path)
    name_of_tensor = name("torch._utils", "_rebuild_tensor_v2")
    item = storage("FloatStorage", "0", 4) + number(0) + b"h\x00h\x00"
    call = b"0" + name_of_tensor + b"(" + item + b"tR."
    write(path, b")q\x00" + b"h\x00h\x00\x86q\x00" * 200 + call)
    with pytest.raises(ValueError, match="not numbers from 0 on"):
        TorchSource(path)


def test_deep_nesting_is_no_recursion():
    depth = 10_000
    value = Machine().run(b"N" + b"\x85" * depth + b".")
    for _ in range(depth):
        [value] = value
    assert value is None
