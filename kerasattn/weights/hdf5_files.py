"""HDF5 files that hold tensors."""

import h5py

from kerasattn.weights.sources import Source


class HDF5Source(Source):
    """The datasets of an HDF5 file, by their paths, such as "CNN/W_cnn_0".

    Only what lies in the file itself is read: it may link to other files, which no weights need.

    Raises:
        ValueError: for a file that is truncated, corrupt or missing, or keeps numbers in others.

    Example:
    >>> import os, tempfile
    >>> import h5py
    >>> import numpy as np
    >>> from kerasattn.weights import HDF5Source
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.hdf5")
    >>> with h5py.File(path, "w") as file:
    ...     file["part/a"] = np.zeros((2, 3))
    >>> with HDF5Source(path) as source:
    ...     list(source.names), source.shape("part/a")
    (['part/a'], (2, 3))
    """

    errors = (KeyError, RuntimeError, ValueError, TypeError)

    def __init__(self, path):
        super().__init__(path)
        self.datasets = {}
        with self.guard(*self.errors):
            self.file = self.stack.enter_context(h5py.File(self.path, "r"))
            self.file.visititems(self._keep)  # which follows no links

    def _keep(self, name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.external or item.is_virtual or item.shape is None:
            raise ValueError(f"{name} has its numbers elsewhere")
        # A header can claim any size: believe none that no compression comes to.
        if item.nbytes > 2000 * item.id.get_storage_size():
            raise ValueError(f"{name} claims {item.nbytes} bytes, which are not there")
        self.datasets[name] = item

    @property
    def names(self):
        return self.datasets.keys()

    def shape(self, name):
        return tuple(self.datasets[name].shape)

    def read(self, name):
        with self.guard(*self.errors):
            return self.datasets[name][()]
