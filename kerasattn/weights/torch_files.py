"""`pytorch_model.bin`: tensors read out of it, nothing in it executed."""

import pathlib
import struct
import zipfile

import numpy as np

from kerasattn.weights.pickles import Machine, Tensor
from kerasattn.weights.sources import Files, SafetensorsSource, Source, find_safetensors

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C


class TorchFile(Source):
    """One `pytorch_model.bin`, as PyTorch has written it since 1.6 (a zip file) or before.

    Raises:
        ValueError: for a file that is truncated, corrupt or missing, or holds anything but tensors.
    """

    errors = (
        zipfile.BadZipFile,
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        NotImplementedError,
        OverflowError,
        RecursionError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    )

    def __init__(self, path):
        super().__init__(path)
        with self.guard(*self.errors):
            self.file = self.stack.enter_context(self.path.open("rb"))
            self.zip = None
            if zipfile.is_zipfile(self.file):
                self.zip = self.stack.enter_context(zipfile.ZipFile(self.file))
                contents = self._open_zip()
            else:
                self.file.seek(0)
                contents = self._open_legacy()
            if type(contents) is not dict:
                raise ValueError(f"it holds a {type(contents).__name__}, no dict of tensors")
            self.tensors = {k: v for k, v in contents.items() if isinstance(v, Tensor)}
            for tensor in self.tensors.values():
                self._check(tensor.storage)

    def _open_zip(self):
        [pickle] = [n for n in self.zip.namelist() if n.count("/") == 1 and n.endswith("/data.pkl")]
        self.root = pickle.removesuffix("data.pkl")
        order = f"{self.root}byteorder"
        if order in self.zip.NameToInfo and self._entry(order) != b"little":
            raise ValueError("its numbers are not little-endian")
        return Machine().run(self._entry(pickle))

    def _entry(self, name):
        # PyTorch compresses nothing, so nothing is small in the file and huge in memory.
        if self.zip.getinfo(name).compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name} is compressed")
        return self.zip.read(name)

    def _open_legacy(self):
        """Five pickles, the fourth of the tensors, the fifth of the storages' order; then these."""
        magic = Machine().run(self.file)
        if type(magic) is not int or magic != LEGACY_MAGIC:
            raise ValueError("it is no file of PyTorch")
        Machine().run(self.file)  # the version
        Machine().run(self.file)  # sizes of the machine's numbers
        contents, keys = Machine().run(self.file), Machine().run(self.file)
        if type(keys) is not list or not all(type(key) is str for key in keys):
            raise ValueError("its storages have no names")
        values = contents.values() if type(contents) is dict else ()
        storages = {v.storage.key: v.storage for v in values if isinstance(v, Tensor)}
        self.places = {}  # key -> (offset in the file, bytes)
        place = self.file.tell()
        end = self.file.seek(0, 2)
        for key in keys:
            storage = storages[key]
            self.file.seek(place)
            [size] = struct.unpack("<q", self.file.read(8))
            length = size * storage.dtype.itemsize
            if size != storage.size or place + 8 + length > end:
                raise ValueError(f"the storage {key} is not there whole")
            self.places[key] = (place + 8, length)
            place += 8 + length
        return contents

    def _check(self, storage):
        """Refuses a storage of which the file has less than it says, before anything is read."""
        if self.zip is None:
            there = self.places[storage.key][1]
        else:
            there = self.zip.getinfo(f"{self.root}data/{storage.key}").file_size
        claimed = storage.size * storage.dtype.itemsize
        if claimed > there:
            raise ValueError(f"a storage claims {claimed} bytes of which {there} are there")

    @property
    def names(self):
        return self.tensors.keys()

    def shape(self, name):
        return self.tensors[name].shape

    def read(self, name):
        tensor = self.tensors[name]
        storage = tensor.storage
        with self.guard(*self.errors):
            if self.zip is None:
                place, length = self.places[storage.key]
                self.file.seek(place)
                data = self.file.read(length)
            else:
                data = self._entry(f"{self.root}data/{storage.key}")
            numbers = np.frombuffer(data, storage.dtype, storage.size)[tensor.offset :]
            strides = tuple(s * storage.dtype.itemsize for s in tensor.strides)
            view = np.lib.stride_tricks.as_strided(numbers, tensor.shape, strides, writeable=False)
            return np.ascontiguousarray(view).reshape(tensor.shape)


class TorchSource(Files):
    """A `pytorch_model.bin`, or the shards that an index (`pytorch_model.bin.index.json`) lists.

    Raises:
        ValueError: for a file that is truncated, corrupt or missing, or holds anything but tensors,
            or an index that points outside its folder or at shards without the tensors it says.
    """

    file = TorchFile


def find_huggingface(folder):
    """The weights in a folder as Hugging Face has it, safetensors before PyTorch's, or None."""
    for name in ("pytorch_model.bin", "pytorch_model.bin.index.json"):
        path = pathlib.Path(folder) / name
        if path.is_file():
            return find_safetensors(folder) or path
    return find_safetensors(folder)


def open_huggingface(path):
    """The open `Source` of what `find_huggingface` found."""
    torch = pathlib.Path(path).name.startswith("pytorch_model.bin")
    return (TorchSource if torch else SafetensorsSource)(path)
