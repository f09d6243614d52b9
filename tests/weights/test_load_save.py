"""Loading through a table and back."""

import weakref

import keras
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from kerasattn.weights import (
    Rule,
    SafetensorsSource,
    Source,
    Table,
    load_weights,
    save_json,
    save_safetensors,
)

TABLE = Table(
    (
        Rule("dense_{i}/kernel", "layers.{i}.weight", "transpose", aliases=("tied.{i}.weight",)),
        Rule("dense_{i}/bias", "layers.{i}.bias"),
    ),
    ignored=("*.adam_m", "step"),
)


def make(*numbers, width=3):
    """A chain of dense layers, dense_{number}."""
    inputs = x = keras.Input((4,))
    for number in numbers:
        x = keras.layers.Dense(width, name=f"dense_{number}")(x)
    return keras.Model(inputs, x)


def arrays_of(*numbers, width=3, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {}
    for place, number in enumerate(numbers):
        inputs = width if place else 4
        arrays[f"layers.{number}.weight"] = rng.normal(size=(width, inputs)).astype("float32")
        arrays[f"layers.{number}.bias"] = rng.normal(size=width).astype("float32")
    return arrays


class Arrays(Source):
    """A source in memory."""

    def __init__(self, arrays):
        super().__init__("arrays")
        self.arrays = arrays

    @property
    def names(self):
        return self.arrays.keys()

    def shape(self, name):
        return self.arrays[name].shape

    def read(self, name):
        return self.arrays[name].copy()


def values(model):
    return [np.array(keras.ops.convert_to_numpy(weight.value)) for weight in model.weights]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_loading_gives_the_layers_their_tensors():
    model, arrays = make(0, 1), arrays_of(0, 1)
    report = load_weights(
        model, TABLE, Arrays(arrays | {"step": np.ones(()), "a.adam_m": np.ones(3)})
    )
    assert report.complete and len(report.loaded) == 4
    x = np.random.default_rng(1).normal(size=(2, 4)).astype("float32")
    middle = x @ arrays["layers.0.weight"].T + arrays["layers.0.bias"]
    expected = middle @ arrays["layers.1.weight"].T + arrays["layers.1.bias"]
    np.testing.assert_allclose(model(x), expected, atol=1e-5)


# C33: a checkpoint of layers a, b in a model with a alone, with other names, with a, b and c.
@pytest.mark.parametrize(
    "layers, missing, unexpected",
    [
        ((0,), [], ["layers.1.bias", "layers.1.weight"]),
        (
            (7, 8),
            ["layers.7.weight", "layers.7.bias", "layers.8.weight", "layers.8.bias"],
            ["layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"],
        ),
        ((0, 1, 2), ["layers.2.weight", "layers.2.bias"], []),
    ],
)
def test_c33_missing_and_unexpected_weights(layers, missing, unexpected):
    model = make(*layers)
    before = values(model)
    with pytest.raises(ValueError) as error:
        load_weights(model, TABLE, Arrays(arrays_of(0, 1)))
    for name in missing + unexpected:
        assert name in str(error.value)
    assert same(values(model), before), "a model that does not fit is left as it was"

    report = load_weights(model, TABLE, Arrays(arrays_of(0, 1)), strict=False)
    assert [name for _, name in report.missing] == missing
    assert report.unused == unexpected
    assert not report.complete
    for name in missing + unexpected:
        assert name in str(report)


def test_shapes_that_differ_are_named_with_both():
    model = make(0, width=5)
    before = values(model)
    with pytest.raises(ValueError, match=r"dense_0/kernel: \(4, 5\).*layers.0.weight: \(3, 4\)"):
        load_weights(model, TABLE, Arrays(arrays_of(0)))
    report = load_weights(model, TABLE, Arrays(arrays_of(0)), strict=False)
    assert len(report.mismatched) == 2 and same(values(model), before)


def test_a_transposed_square_is_no_mismatch_but_a_vector_for_a_matrix_is():
    arrays = arrays_of(0) | {"layers.0.weight": np.zeros(12, "float32")}
    with pytest.raises(ValueError, match=r"dense_0/kernel: \(4, 3\).*\(12,\)"):
        load_weights(make(0), TABLE, Arrays(arrays))


def test_any_name_of_a_tied_tensor_will_do_but_they_must_agree():
    arrays = arrays_of(0)
    kernel = arrays["layers.0.weight"]
    both = arrays | {"tied.0.weight": kernel}
    assert load_weights(make(0), TABLE, Arrays(both)).complete
    alone = {"layers.0.bias": arrays["layers.0.bias"], "tied.0.weight": kernel}
    model = make(0)
    assert load_weights(model, TABLE, Arrays(alone)).complete
    np.testing.assert_array_equal(values(model)[0], kernel.T)
    with pytest.raises(ValueError, match=r"layers.0.weight and tied.0.weight are one tensor"):
        load_weights(make(0), TABLE, Arrays(both | {"tied.0.weight": kernel + 1}))


def test_fresh_variables_need_not_be_there():
    report = load_weights(make(0, 1), TABLE, Arrays(arrays_of(0)), fresh=("dense_1/*",))
    assert report.complete and report.fresh == ["dense_1/kernel", "dense_1/bias"]
    assert "newly initialized" in str(report)


def test_variables_without_a_rule_are_missing():
    with pytest.raises(ValueError, match="no rule for dense_0/bias"):
        load_weights(make(0), Table(TABLE.rules[:1]), Arrays(arrays_of(0)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "float32"])
@pytest.mark.parametrize("policy", ["float32", "bfloat16", "mixed_float16"])
def test_floats_of_any_width(dtype, policy):
    keras.config.set_dtype_policy(policy)
    model, arrays = make(0), arrays_of(0)
    narrow = {k: v.astype(getattr(ml_dtypes, dtype, dtype)) for k, v in arrays.items()}
    assert load_weights(model, TABLE, Arrays(narrow)).complete
    kernel, bias = values(model)
    # One rounding to the narrowest of them.
    tolerance = 2.0**-8 if "bfloat16" in (dtype, policy) else 2.0**-10 if dtype == "float16" else 0
    expected = arrays["layers.0.weight"].T
    np.testing.assert_allclose(kernel.astype("float32"), expected, rtol=2 * tolerance, atol=1e-6)
    assert bias.dtype == model.layers[-1].bias.dtype


def test_text_is_no_weight():
    arrays = arrays_of(0) | {"layers.0.bias": np.array(["a", "b", "c"])}
    with pytest.raises(ValueError, match=r"layers.0.bias holds <U1"):
        load_weights(make(0), TABLE, Arrays(arrays))


def test_one_tensor_at_a_time():
    alive = []

    class Watched(Arrays):
        def read(self, name):
            assert sum(reference() is not None for reference in alive) <= 1
            array = super().read(name)
            alive.append(weakref.ref(array))
            return array

    # Wide enough that no backend shares the memory of a small constant.
    arrays = {k: v.astype("float64") for k, v in arrays_of(0, 1, 2, 3).items()}
    load_weights(make(0, 1, 2, 3), TABLE, Watched(arrays))
    assert len(alive) == 8


def test_saving_and_loading_is_bit_exact(tmp_path):
    model, arrays = make(0, 1), arrays_of(0, 1)
    load_weights(model, TABLE, Arrays(arrays))
    extra = {"buffer": np.arange(3)}
    save_safetensors(model, TABLE, tmp_path / "new" / "folder", extra=extra)
    path = tmp_path / "new" / "folder" / "model.safetensors"
    assert [p.name for p in path.parent.iterdir()] == ["model.safetensors"]
    saved = load_file(path)
    assert saved.keys() == arrays.keys() | extra.keys()
    assert all(np.array_equal(saved[name], array) for name, array in (arrays | extra).items())

    again = make(0, 1)
    table = Table(TABLE.rules, ignored=("buffer",))
    with SafetensorsSource(path) as source:
        load_weights(again, table, source)
    assert same(values(again), values(model))


def test_saving_what_has_no_name_or_the_same_name(tmp_path):
    with pytest.raises(ValueError, match="no rule for dense_0/bias, dense_1/bias"):
        save_safetensors(make(0, 1), Table(TABLE.rules[:1]), tmp_path)
    with pytest.raises(ValueError, match="another variable would both be one"):
        save_safetensors(make(0), Table((Rule("{path}", "one"),)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")
    with pytest.raises(Exception, match=r"(?i)<U4|str"):  # texts are no tensors
        save_safetensors(make(0), TABLE, tmp_path, extra={"bad": np.array(["text"])})
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"model.safetensors cannot be written"):
        save_safetensors(make(0), TABLE, tmp_path / "file" / "folder")
    with pytest.raises(ValueError, match=r"config.json cannot be written"):
        save_json({}, tmp_path / "file" / "config.json")


def test_parts_of_one_tensor_load_and_save(tmp_path):
    rules = tuple(
        Rule(f"dense_{i}/kernel", "fused.weight", f"{part}_of_3")
        for i, part in enumerate(("query", "key", "value"))
    )
    inputs = keras.Input((4,))
    outputs = [keras.layers.Dense(2, use_bias=False, name=f"dense_{i}")(inputs) for i in (2, 0, 1)]
    model = keras.Model(inputs, outputs)
    array = np.arange(24, dtype="float32").reshape(4, 6)
    load_weights(model, Table(rules), Arrays({"fused.weight": array}))
    np.testing.assert_array_equal(values(model)[1], array[:, :2])
    save_safetensors(model, Table(rules), tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    assert list(saved) == ["fused.weight"]
    np.testing.assert_array_equal(saved["fused.weight"], array)
