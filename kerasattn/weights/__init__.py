"""Weights of others: tables that name every tensor of a checkpoint, and what reads and writes.

A family is added with one file in `weights/tables/`: a `Table` of rows for each way in which its
checkpoints are published, and for each a `Format` that says which files those are and how the
config's sizes are called here. Its model class names them, `formats = tables.FORMATS`, and has
`from_pretrained` and `save_pretrained`.
"""

from kerasattn.weights.formats import Format, find_format
from kerasattn.weights.hdf5_files import HDF5Source
from kerasattn.weights.load import LoadReport, build_with_weights, load_weights
from kerasattn.weights.rules import TRANSFORMS, Rule, Table, Transform
from kerasattn.weights.save import save_json, save_safetensors
from kerasattn.weights.sources import NpzSource, SafetensorsSource, Source, TensorFlowSource
from kerasattn.weights.torch_files import TorchSource

__all__ = [
    "TRANSFORMS",
    "Format",
    "HDF5Source",
    "LoadReport",
    "NpzSource",
    "Rule",
    "SafetensorsSource",
    "Source",
    "Table",
    "TensorFlowSource",
    "TorchSource",
    "Transform",
    "build_with_weights",
    "find_format",
    "load_weights",
    "save_json",
    "save_safetensors",
]
