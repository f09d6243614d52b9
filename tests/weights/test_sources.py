"""Reading tensors from files, good and bad."""

import json
import os
import pickle
import struct
import zipfile

import keras
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from kerasattn.weights import NpzSource, SafetensorsSource, TensorFlowSource
from kerasattn.weights.sources import find_npz, find_safetensors, find_tensorflow, read_json

RNG = np.random.default_rng(0)
ARRAYS = {
    "a/kernel": RNG.normal(size=(3, 4)).astype("float32"),
    "b.half": RNG.normal(size=(5,)).astype("float16"),
    "c": np.arange(4, dtype="int64").reshape(2, 2),
    "scalar": np.array(3.5, "float32"),
}
needs_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow checkpoints need TensorFlow"
)


def check_same(source, arrays):
    assert set(source.names) == set(arrays)
    for name, array in arrays.items():
        assert name in source
        assert source.shape(name) == array.shape
        read = source.read(name)
        assert read.dtype == array.dtype and np.array_equal(read, array)


def write_checkpoint(prefix, arrays):
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, array in arrays.items():
            tf.compat.v1.get_variable(name, initializer=array)
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(prefix), write_state=False)


# === Good files ===


def test_safetensors(tmp_path):
    arrays = {**ARRAYS, "brain": np.array([1.5, -2.0], ml_dtypes.bfloat16)}
    save_file(arrays, tmp_path / "model.safetensors")
    with SafetensorsSource(find_safetensors(tmp_path)) as source:
        check_same(source, arrays)


def test_shards(tmp_path):
    where = {}
    for i, (name, array) in enumerate(ARRAYS.items()):
        where[name] = f"model-{i}.safetensors"
        save_file({name: array}, tmp_path / where[name])
    index = {"metadata": {}, "weight_map": where}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with SafetensorsSource(find_safetensors(tmp_path)) as source:
        check_same(source, ARRAYS)


def test_npz(tmp_path):
    np.savez_compressed(tmp_path / "weights.npz", **ARRAYS)
    with NpzSource(find_npz(tmp_path)) as source:
        check_same(source, ARRAYS)


@needs_tensorflow
def test_tensorflow_checkpoint(tmp_path):
    arrays = {name.replace(".", "_"): array for name, array in ARRAYS.items()}
    write_checkpoint(tmp_path / "bert_model.ckpt", arrays)
    with TensorFlowSource(find_tensorflow(tmp_path)) as source:
        check_same(source, arrays)


def test_which_of_several_checkpoints(tmp_path):
    for step in (100, 200):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    with pytest.raises(ValueError, match=r"several checkpoints \(model.ckpt-100, model.ckpt-200\)"):
        find_tensorflow(tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/other/place/model.ckpt-200"\n')
    assert find_tensorflow(tmp_path) == tmp_path / "model.ckpt-200"


def test_nothing_to_find(tmp_path):
    assert find_safetensors(tmp_path) is find_npz(tmp_path) is find_tensorflow(tmp_path) is None


# === Bad files ===


def safetensors_bytes(tmp_path):
    save_file(ARRAYS, tmp_path / "good.safetensors")
    return (tmp_path / "good.safetensors").read_bytes()


@pytest.mark.parametrize("kept", [0, 4, 50, -1])
def test_truncated_safetensors(tmp_path, kept):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_bytes(tmp_path)[:kept])
    with pytest.raises(ValueError, match=r"model.safetensors cannot be read.*truncated"):
        SafetensorsSource(path)


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 10**13) + b"{}",  # a header that claims 10 TB
        struct.pack("<Q", 2) + b"no",
        struct.pack("<Q", 70)
        + b'{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4]}}    ',
        pickle.dumps({"a": 1}),
    ],
)
def test_hostile_safetensors(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model.safetensors cannot be read"):
        SafetensorsSource(path)


@pytest.mark.parametrize("place", ["../out.safetensors", "/etc/passwd", "a\\b", "", ".", ".."])
def test_an_index_that_points_outside_its_folder(tmp_path, place):
    (tmp_path / "folder").mkdir()
    save_file(ARRAYS, tmp_path / "out.safetensors")
    path = tmp_path / "folder" / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"c": place}}))
    with pytest.raises(ValueError, match=r"index.json points outside its folder"):
        SafetensorsSource(path)


@pytest.mark.parametrize("index", [{}, {"weight_map": 3}, {"weight_map": {"c": 3}}])
def test_an_index_without_a_map(tmp_path, index):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    with pytest.raises(ValueError, match="has no weight_map"):
        SafetensorsSource(path)


def test_an_index_that_promises_too_much(tmp_path):
    save_file({"c": ARRAYS["c"]}, tmp_path / "one.safetensors")
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"c": "one.safetensors", "d": "one.safetensors"}}))
    with pytest.raises(ValueError, match=r"one.safetensors lacks tensors of its index: \['d'\]"):
        SafetensorsSource(path)
    path.write_text(json.dumps({"weight_map": {"c": "two.safetensors"}}))
    with pytest.raises(ValueError, match=r"two.safetensors does not exist"):
        SafetensorsSource(path)


class Touch:
    """What a hostile pickle would do."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_pickles_in_npz_are_refused_and_not_run(tmp_path):
    path = tmp_path / "weights.npz"
    np.savez(path, a=np.array([Touch(tmp_path / "touched")], dtype=object))
    with pytest.raises(ValueError, match=r"weights.npz cannot be read"):
        NpzSource(path)
    path.write_bytes(pickle.dumps(Touch(tmp_path / "touched")))
    with pytest.raises(ValueError, match=r"weights.npz cannot be read"):
        NpzSource(path)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("kept", [0, 10, 300, -1])
def test_truncated_npz(tmp_path, kept):
    path = tmp_path / "weights.npz"
    np.savez(path, **ARRAYS)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"weights.npz cannot be read"):
        NpzSource(path)


def test_an_npz_whose_header_claims_terabytes(tmp_path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2500000000000,), }\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(16)
    path = tmp_path / "weights.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.npy", array)
    with pytest.raises(ValueError, match="claims 10000000000000 bytes"):
        NpzSource(path)


@pytest.mark.parametrize("place, value", [(8, 1), (10, 8), (10, 99)])
def test_an_npz_that_is_packed_in_no_known_way(tmp_path, place, value):
    """Encrypted, deflated though it is not, of an unknown method: each another kind of error."""
    path = tmp_path / "weights.npz"
    np.savez(path, a=np.ones(3))
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"PK\x01\x02") + place] = value
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"weights.npz cannot be read"):
        NpzSource(path)


def test_a_damaged_entry_of_an_npz(tmp_path):
    path = tmp_path / "weights.npz"
    np.savez(path, a=np.full(1000, 7.0))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with NpzSource(path) as source, pytest.raises(ValueError, match=r"weights.npz cannot be read"):
        source.read("a")


@needs_tensorflow
@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("kept", [0, 20, None])
def test_truncated_tensorflow_checkpoint(tmp_path, suffix, kept):
    write_checkpoint(tmp_path / "bert_model.ckpt", {"a": np.ones((100, 100), "float32")})
    part = tmp_path / f"bert_model.ckpt.{suffix}"
    if kept is None:
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"bert_model.ckpt cannot be read"):
        TensorFlowSource(tmp_path / "bert_model.ckpt").read("a")


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff\xfe", b"[" * 100000])
def test_bad_json(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"config.json"):
        read_json(path)
    with pytest.raises(ValueError, match=r"none.json does not exist"):
        read_json(tmp_path / "none.json")
