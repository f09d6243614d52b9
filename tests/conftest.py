"""What every test has: quiet logs, fixed seeds, and the golden files."""

import gc
import os
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# oneDNN makes a program for each shape of a product, which here comes once.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# What XLA compiles here runs a few times on tiny sizes: optimizing it takes longer than it saves.
if os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":  # JAX may not know the last
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
        "--xla_cpu_use_fusion_emitters=false",
    )
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
# Workers that share the cores (pytest -n) must not each start a thread for every core.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

from pathlib import Path

import pytest

collect_ignore = ["compatibility/make.py"]  # a script, which needs other libraries
HERE = Path(__file__).parent
GOLDEN_FOLDERS = (HERE.parent.parent / "shared" / "golden", HERE / "golden")


def pytest_configure(config):
    """What tests run with, but for the process that only hands them out to workers."""
    if config.getoption("numprocesses", None):
        return
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        # As of XLA: a graph that runs a few times is not worth optimizing.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        _make_steps_that_are_traced_once(keras)
    # What the libraries hold stays: going through it for garbage again and again, as Keras does
    # when layers are quantized, would take more time than the tests. So would looking for garbage
    # as often as Python does: tracing a model makes many objects that stay.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 1000)


def _make_steps_that_are_traced_once(keras):
    """As our models do: a step that makes its optimizer's variables would be traced twice."""
    make = keras.Model.make_train_function

    def make_train_function(self, force=False):
        optimizer = getattr(self, "optimizer", None)
        if self.built and optimizer and not optimizer.built and self.trainable_variables:
            with self.distribute_strategy.scope():
                optimizer.build(self.trainable_variables)
        return make(self, force)

    keras.Model.make_train_function = make_train_function


def pytest_collection_modifyitems(items):
    """The longest first, so that no worker ends with one while the other has nothing to do."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True, scope="module")
def _what_stays():
    """TensorFlow's and Keras' caches grow with every module, and stay as well."""
    yield
    import keras

    if keras.backend.backend() == "tensorflow":
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _fixed_start(request):
    """Each test starts from the same seed and the same policy; what trains, from the same data."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(7)
    if request.node.get_closest_marker("trains") and hasattr(request.module, "RANDOM"):
        request.module.RANDOM = np.random.default_rng(zlib.crc32(request.node.name.encode()))
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture
def eager_loops(monkeypatch):
    """What `ops.compiled` wraps runs as it is: tracing a loop takes longer than a few steps of it.

    On JAX, whose loops are compiled one way or another, this changes nothing.
    """
    import importlib

    import keras

    def eager(wrapped):
        def convert(leaf):
            return leaf if leaf is None else keras.ops.convert_to_tensor(leaf)

        return lambda *arguments: wrapped.trace(*keras.tree.map_structure(convert, arguments))

    module = importlib.import_module("kerasattn.ops.compiled")
    if keras.backend.backend() == "tensorflow":
        monkeypatch.setitem(module._WRAPPERS, "tensorflow", eager)


def pytest_runtest_setup(item):
    """What only trains is left to TensorFlow: JAX compiles its loops for minutes."""
    if item.get_closest_marker("trains") and os.environ.get("KERAS_BACKEND") == "jax":
        pytest.skip("it trains, which takes minutes here; it is tried on TensorFlow")


@pytest.fixture(scope="session")
def golden():
    """A function from a golden file's or folder's name to its path; skips where it is not there."""

    def find(name):
        for folder in GOLDEN_FOLDERS:
            if (folder / name).exists():
                return folder / name
        pytest.skip(f"the golden files of {name} are not beside this checkout")

    return find
