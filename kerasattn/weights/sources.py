"""Files that hold tensors, read by name and one at a time. Nothing in them is ever executed."""

import contextlib
import json
import math
import pathlib
import zipfile

import numpy as np
import safetensors


class Source:
    """Tensors by name: `names`, `shape(name)` without reading the tensor, `read(name)`.

    `path` is what errors call it. Sources are context managers that close their files.

    Example:
    >>> import numpy as np
    >>> from kerasattn.weights import Source
    >>> class InMemory(Source):
    ...     names = ("a",)
    ...     def shape(self, name):
    ...         return (2,)
    ...     def read(self, name):
    ...         return np.zeros(2)
    >>> with InMemory("memory") as source:
    ...     "a" in source, source.read("a").shape
    (True, (2,))
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def __contains__(self, name):
        return name in self.names

    @property
    def names(self):
        """The names of all tensors."""
        raise NotImplementedError

    def shape(self, name):
        """The tensor's shape, without reading the tensor."""
        raise NotImplementedError

    def read(self, name):
        """The tensor as a numpy array."""
        raise NotImplementedError

    @contextlib.contextmanager
    def guard(self, *errors):
        """Turns what a reader raises on a bad file into one error that names the file."""
        try:
            yield
        except FileNotFoundError as error:
            raise ValueError(f"{self.path} does not exist.") from error
        except (OSError, MemoryError, *errors) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint ({reason}). It is probably truncated "
                "or of another format; fetch it again."
            ) from error


class Files(Source):
    """One file, or the shards that an index (`*.index.json`) lists; a subclass says of which kind.

    Raises:
        ValueError: as the kind does; for an index that points outside its folder or at shards
            without the tensors it says.
    """

    file = Source

    def __init__(self, path):
        super().__init__(path)
        self.where = {}  # name of a tensor -> its file
        shards = {self.path.name: None}
        if self.path.suffix == ".json":
            shards = read_index(self.path)
        for shard, names in shards.items():
            file = self.stack.enter_context(self.file(self.path.parent / shard))
            names = file.names if names is None else names
            absent = [name for name in names if name not in file]
            if absent:
                raise ValueError(f"{file.path} lacks tensors of its index: {absent}.")
            self.where |= dict.fromkeys(names, file)

    @property
    def names(self):
        return self.where.keys()

    def shape(self, name):
        return self.where[name].shape(name)

    def read(self, name):
        return self.where[name].read(name)


class SafetensorsFile(Source):
    """One `.safetensors` file.

    Raises:
        ValueError: for a file that is truncated, corrupt or missing.
    """

    def __init__(self, path):
        super().__init__(path)
        with self.guard(safetensors.SafetensorError):
            self.file = self.stack.enter_context(
                safetensors.safe_open(self.path, framework="numpy")
            )
            self._names = frozenset(self.file.keys())

    @property
    def names(self):
        return self._names

    def shape(self, name):
        return tuple(self.file.get_slice(name).get_shape())

    def read(self, name):
        with self.guard(safetensors.SafetensorError, TypeError):
            return self.file.get_tensor(name)


class SafetensorsSource(Files):
    """A `.safetensors` file, or the shards that an index (`*.safetensors.index.json`) lists.

    Raises:
        ValueError: for a file that is truncated, corrupt or missing, or an index that points
            outside its folder or at shards without the tensors it says.

    Example:
    >>> import os, tempfile
    >>> import numpy as np
    >>> import safetensors.numpy
    >>> from kerasattn.weights import SafetensorsSource
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> safetensors.numpy.save_file({"a": np.zeros((2, 3))}, path)
    >>> with SafetensorsSource(path) as source:
    ...     list(source.names), tuple(source.shape("a"))
    (['a'], (2, 3))
    """

    file = SafetensorsFile


class NpzSource(Source):
    """A numpy `.npz` file, read without pickles.

    Raises:
        ValueError: for a file that is truncated, corrupt or missing, or holds Python objects.

    Example:
    >>> import os, tempfile
    >>> import numpy as np
    >>> from kerasattn.weights import NpzSource
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.npz")
    >>> np.savez(path, a=np.zeros((2, 3)))
    >>> with NpzSource(path) as source:
    ...     list(source.names), tuple(source.shape("a"))
    (['a'], (2, 3))
    """

    def __init__(self, path):
        super().__init__(path)
        with self.guard(Exception):  # a damaged archive raises errors of every kind
            self.stack.enter_context(zipfile.ZipFile(self.path))  # np.load takes other files too
            self.file = self.stack.enter_context(np.load(self.path, allow_pickle=False))
            self.shapes = {name: self._header(name) for name in self.file.files}

    def _header(self, name):
        entry = name if name in self.file.zip.NameToInfo else f"{name}.npy"
        with self.file.zip.open(entry) as array:
            version = np.lib.format.read_magic(array)
            reader = {1: np.lib.format.read_array_header_1_0}.get(
                version[0], np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = reader(array)
        # A header can claim any size: believe none that the entry is too small for.
        claimed = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or claimed > self.file.zip.getinfo(entry).file_size:
            raise ValueError(f"{name} claims {claimed} bytes of {dtype}, which are not there")
        return tuple(shape)

    @property
    def names(self):
        return self.shapes.keys()

    def shape(self, name):
        return self.shapes[name]

    def read(self, name):
        with self.guard(Exception):
            return self.file[name]


class TensorFlowSource(Source):
    """A TensorFlow checkpoint, given by its prefix, such as `folder/bert_model.ckpt`.

    Raises:
        ImportError: where TensorFlow is not installed.
        ValueError: for a file that is truncated, corrupt or missing.
    """

    def __init__(self, path):
        super().__init__(path)
        try:
            import tensorflow as tf
        except ImportError as error:
            raise ImportError(
                f"Reading {path}, a TensorFlow checkpoint, needs TensorFlow: pip install tensorflow"
            ) from error
        self.errors = (tf.errors.OpError, RuntimeError, ValueError, IndexError)
        with self.guard(*self.errors):
            self.reader = tf.train.load_checkpoint(str(self.path))
            self.shapes = self.reader.get_variable_to_shape_map()

    @property
    def names(self):
        return self.shapes.keys()

    def shape(self, name):
        return tuple(self.shapes[name])

    def read(self, name):
        with self.guard(*self.errors):
            return self.reader.get_tensor(name)


def read_json(path):
    """The object in a JSON file.

    Raises:
        ValueError: naming the file, if it is missing or does not hold a JSON object.
    """
    try:
        value = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a readable JSON file ({error}).") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object, got a {type(value).__name__}.")
    return value


def read_index(path):
    """The shards that an index lists, and the names of the tensors in each.

    Raises:
        ValueError: for an index without a map, or one that points outside its folder.
    """
    path = pathlib.Path(path)
    index = read_json(path).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(v, str) for v in index.values()):
        raise ValueError(f"{path} has no weight_map from tensors to files.")
    shards = {}
    for name, shard in sorted(index.items(), key=lambda item: item[1]):
        if pathlib.PurePath(shard).name != shard or "\\" in shard or shard in ("", ".", ".."):
            raise ValueError(f"{path} points outside its folder: {shard!r}.")
        shards.setdefault(shard, []).append(name)
    return shards


def find_safetensors(folder):
    """The `.safetensors` file of a folder, or the index of its shards, or None."""
    folder = pathlib.Path(folder)
    for name in ("model.safetensors", "model.safetensors.index.json"):
        if (folder / name).is_file():
            return folder / name
    return None


def find_npz(folder):
    """`weights.npz` of a folder, or None."""
    path = pathlib.Path(folder) / "weights.npz"
    return path if path.is_file() else None


def find_tensorflow(folder):
    """The prefix of the TensorFlow checkpoint in a folder, or None.

    Of several, the one that the folder's `checkpoint` file names.

    Raises:
        ValueError: if there are several and nothing says which.
    """
    folder = pathlib.Path(folder)
    prefixes = sorted(path.with_suffix("") for path in folder.glob("*.index"))
    if len(prefixes) > 1:
        state = folder / "checkpoint"
        text = state.read_text(encoding="utf-8", errors="replace") if state.is_file() else ""
        latest = text.partition('model_checkpoint_path: "')[2].partition('"')[0]
        named = [prefix for prefix in prefixes if prefix.name == pathlib.PurePath(latest).name]
        if not named:
            names = ", ".join(prefix.name for prefix in prefixes)
            raise ValueError(f"{folder} has several checkpoints ({names}); leave one in it.")
        return named[0]
    return prefixes[0] if prefixes else None
