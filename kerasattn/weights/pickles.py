"""What PyTorch writes as `pytorch_model.bin`, read without unpickling.

Such a file is a pickle, a program for a machine that can call anything. Here it is not run: its
instructions are decoded, and those that build dicts, tuples, numbers, texts and descriptions of
tensors are followed by a machine that knows nothing else. Any other instruction, or the name of
anything but a tensor, a storage or an ordered dict, is an error.
"""

import dataclasses
import math
import pickletools

import ml_dtypes
import numpy as np

STORAGES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
}
# The three functions that a file of tensors names.
TENSOR, PARAMETER, DICT = "tensor", "parameter", "dict"
FUNCTIONS = {
    "torch._utils._rebuild_tensor_v2": TENSOR,
    "torch._utils._rebuild_parameter": PARAMETER,
    "collections.OrderedDict": DICT,
}
MARK = object()


@dataclasses.dataclass(frozen=True)
class Storage:
    """A run of numbers in the file: its name there and how many of which kind."""

    key: str
    dtype: np.dtype
    size: int


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor's place in a storage."""

    storage: Storage
    offset: int
    shape: tuple
    strides: tuple

    def __post_init__(self):
        # Nothing is printed, compared or hashed before its type is known: nested tuples that share
        # their parts can stand for more than fits in memory.
        if not (type(self.shape) is type(self.strides) is tuple):
            raise ValueError("a tensor whose shape and strides are not tuples")
        numbers = (self.offset, *self.shape, *self.strides)
        if not all(type(n) is int and n >= 0 for n in numbers):
            raise ValueError("a tensor whose shape and strides are not numbers from 0 on")
        if len(self.shape) != len(self.strides):
            raise ValueError(f"{len(self.strides)} strides for the shape {self.shape}")
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        # No more numbers than are stored, though strides of 0 could claim any number.
        if math.prod(self.shape) > self.storage.size or (
            0 not in self.shape and last >= self.storage.size
        ):
            raise ValueError(f"the shape {self.shape} in a storage of {self.storage.size} numbers")


class Machine:
    """Follows the instructions of one pickle; `run` gives what it describes."""

    def __init__(self):
        self.stack = []
        self.memo = {}

    def run(self, data):
        """The value that a pickle describes: bytes, or a file that is left where it ends."""
        for opcode, argument, _ in pickletools.genops(data):
            name = opcode.name
            if name == "STOP":
                return self.stack.pop()
            if name in VALUES:
                self.stack.append(VALUES[name](argument))
            elif name in STEPS:
                STEPS[name](self, argument)
            else:
                raise ValueError(f"the instruction {name}, which no file of tensors needs")
        raise ValueError("the pickle has no end")

    def pop_to_mark(self):
        """All that stands on the stack after the last mark."""
        values = []
        while (value := self.stack.pop()) is not MARK:
            values.append(value)
        return values[::-1]

    def put(self, key):
        self.memo[key] = self.stack[-1]

    def tuple_of(self, count):
        values = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.stack.append(values)

    def append(self, values):
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("items for what is not a list")
        target.extend(values)

    def set_items(self, values):
        target = self.stack[-1]
        if type(target) is not dict or not all(type(key) in (str, int) for key in values[::2]):
            raise ValueError("items for what is not a dict, or keys that are not texts")
        target.update(zip(values[::2], values[1::2], strict=True))

    def name(self, module, name):
        """A name that stands for one of the few things that a file of tensors has."""
        if module == "torch" and name in STORAGES:
            self.stack.append(STORAGES[name])
        elif f"{module}.{name}" in FUNCTIONS:
            self.stack.append(Function(FUNCTIONS[f"{module}.{name}"]))
        else:
            raise ValueError(f"it names {module}.{name}, which is no part of a tensor")

    def stack_name(self):
        name, module = self.stack.pop(), self.stack.pop()
        if not (type(name) is type(module) is str):
            raise ValueError("a name that is no text")
        self.name(module, name)

    def storage(self):
        kind, dtype, key, _, size, *_ = self.stack.pop()
        kinds = isinstance(dtype, np.dtype), type(kind), type(key), type(size)
        if kinds != (True, str, str, int) or kind != "storage" or size < 0:
            raise ValueError("a reference to what is not a storage")
        self.stack.append(Storage(key, dtype, size))

    def reduce(self):
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, Function) or type(arguments) is not tuple:
            raise ValueError("a call of what is not a function of tensors")
        self.stack.append(function(*arguments))

    def build(self):
        # PyTorch keeps versions of modules as attributes of its dict: nothing that we need.
        self.stack.pop()
        if type(self.stack[-1]) is not dict:
            raise ValueError("attributes for what is not a dict")


@dataclasses.dataclass(frozen=True)
class Function:
    """One of the functions that the machine knows."""

    kind: str

    def __call__(self, *arguments):
        if self.kind == DICT:
            if any(arguments):  # at most an empty list
                raise ValueError("a dict made from arguments")
            return {}
        value = arguments[0]
        if self.kind == PARAMETER and isinstance(value, Tensor):
            return value
        if self.kind == TENSOR and isinstance(value, Storage):
            _, offset, shape, strides, *_ = arguments
            return Tensor(value, offset, shape, strides)
        raise ValueError(f"a {self.kind} of a {type(value).__name__}")


# Instructions that put a value on the stack, from the argument they carry.
VALUES = dict.fromkeys(
    ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"),
    lambda argument: argument,
) | {
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
    "MARK": lambda _: MARK,
}
# Instructions that change the stack or the memo.
STEPS = {
    "PROTO": lambda machine, version: None,
    "FRAME": lambda machine, size: None,
    "POP": lambda machine, _: machine.stack.pop(),
    "BINPUT": Machine.put,
    "LONG_BINPUT": Machine.put,
    "MEMOIZE": lambda machine, _: machine.put(len(machine.memo)),
    "BINGET": lambda machine, key: machine.stack.append(machine.memo[key]),
    "LONG_BINGET": lambda machine, key: machine.stack.append(machine.memo[key]),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_to_mark())),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": lambda machine, _: machine.append([machine.stack.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.pop_to_mark()),
    "SETITEM": lambda machine, _: machine.set_items([machine.stack.pop(-2), machine.stack.pop()]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_to_mark()),
    "GLOBAL": lambda machine, names: machine.name(*names.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.stack_name(),
    "BINPERSID": lambda machine, _: machine.storage(),
    "REDUCE": lambda machine, _: machine.reduce(),
    "BUILD": lambda machine, _: machine.build(),
}
