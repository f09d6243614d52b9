"""Adapters: what they change, what is trained, saved alone, loaded, merged."""

import fnmatch

import keras
import numpy as np
import pytest
import safetensors.numpy
from keras import ops

from kerasattn import models
from kerasattn.layers import BottleneckAdapter
from kerasattn.models import BERT
from kerasattn.models.registry import MODELS
from kerasattn.testing import check_layer
from kerasattn.training import adapters

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)
MORE = {
    "univae": dict(num_layers=2, num_latent_layers=1, latent_dim=4, max_length=8),
    "albert": dict(num_layers=2),  # one layer, called twice
}
RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def bert(**options):
    return BERT(13, **{**SIZES, **options}, dropout=0.0)


def draw(model):
    names = [name for name in model._inputs_struct if name.endswith("token_ids")]
    return {name: RANDOM.integers(1, 13, (4, 8)).astype("int32") for name in names}


def hidden(model, inputs):
    return array(model(inputs, training=False)["hidden"])


def disturb(model):
    """What training might make of the trainable weights."""
    for variable in model.trainable_variables:
        value = array(variable)
        variable.assign(value + RANDOM.normal(0, 0.3, value.shape).astype(value.dtype))


# Of families made of the same blocks there is one.
KINDS = ("bert", "albert", "nezha", "xlnet", "roformer_v2", "transformer_xl", "gpt2", "llama", "t5")
KINDS += ("bart", "univae")


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_family(name, tmp_path):
    """Nothing changes at first; what a training changes is saved, merged, and loaded."""
    model = MODELS[name](13, **SIZES | MORE.get(name, {}))
    inputs, weights = draw(model), model.get_weights()
    before, trainable = hidden(model, inputs), len(model.trainable_variables)
    adapters.add_lora(model, 2, alpha=4)
    paths = {v.path for v in model.variables}
    # Without a bias bottlenecks do not merge: XLNet's and Transformer-XL's attention has none.
    behind = [f"*{x}/output" for x in ("attention", "feed_forward")]
    behind = [x for x in behind if fnmatch.filter(paths, f"{x}/bias")]
    if behind:
        adapters.add_bottlenecks(model, 3, activation=None, layers=behind)
    np.testing.assert_array_equal(hidden(model, inputs), before)
    disturb(model)
    after = hidden(model, inputs)
    assert np.abs(after - before).max() > 1e-3
    paths = [variable.path for variable in model.trainable_variables]
    assert len(set(paths)) == len(paths)
    assert any("adapter/up" in path for path in paths) == bool(behind)
    adapters.save(model, tmp_path / "adapters.safetensors")

    adapters.merge(model)
    np.testing.assert_allclose(hidden(model, inputs), after, rtol=1e-4, atol=1e-4)
    assert [w.shape for w in model.get_weights()] == [w.shape for w in weights]
    assert len(model.trainable_variables) == trainable

    model.set_weights(weights)
    adapters.load(model, tmp_path / "adapters.safetensors")
    np.testing.assert_array_equal(hidden(model, inputs), after)
    assert {variable.path for variable in model.trainable_variables} == set(paths)


def test_adapter_layer():
    check_layer(
        BottleneckAdapter,
        {"bottleneck_dim": 3, "activation": "tanh"},
        lambda batch, length: RANDOM.normal(size=(batch, length, 4)).astype("float32"),
        config_errors=[({"bottleneck_dim": 0}, "bottleneck_dim must be at least 1, got 0")],
        skip={"errors": "any rank is taken"},
    )


def test_only_adapters_and_named_heads_are_trained():
    model = bert(heads=("class",))
    adapters.add_lora(model, 2, train=("classifier/*",))
    adapters.add_bottlenecks(model, 3)
    paths = {v.path for v in model.trainable_variables}
    frozen = [v for v in model.variables if v.path not in paths]
    values = [array(v) for v in frozen]
    start = {v.path: array(v) for v in model.trainable_variables}
    assert "classifier/logits/kernel" in paths or any(p.startswith("classifier") for p in paths)
    assert not [v for v in frozen if "lora" in v.path or "adapter" in v.path]
    model.compile(keras.optimizers.Adam(0.01), jit_compile=False)
    inputs, labels = draw(model), np.array([0, 1, 0, 1])
    losses = model.fit(inputs, labels, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    for variable, value in zip(frozen, values):
        if "seed" not in variable.path:
            np.testing.assert_array_equal(array(variable), value)
    assert not [v.path for v in model.trainable_variables if np.all(array(v) == start[v.path])]


def test_the_head_is_saved_with_the_adapters(tmp_path):
    model, twin = bert(heads=("class",)), bert(heads=("class",))
    twin.set_weights(model.get_weights())
    adapters.add_lora(model, 2, train=("classifier/*",))
    disturb(model)
    adapters.save(model, tmp_path / "a.safetensors")
    adapters.load(twin, tmp_path / "a.safetensors")
    inputs = draw(model)
    np.testing.assert_array_equal(*(array(m(inputs)["class_logits"]) for m in (model, twin)))
    names = safetensors.numpy.load_file(tmp_path / "a.safetensors").keys()
    assert names == {v.path for v in model.trainable_variables}


def test_a_compiled_model_goes_on():
    model = bert()
    model.compile(keras.optimizers.SGD(0.5), jit_compile=False)
    inputs = draw(model)
    labels = inputs["token_ids"]
    model.fit(inputs, labels, verbose=0)
    model.predict(inputs, verbose=0)
    adapters.add_lora(model, 2)
    first, *_, last = model.fit(inputs, labels, epochs=5, verbose=0).history["loss"]
    assert last < first
    expected = hidden(model, inputs)
    np.testing.assert_allclose(
        model.predict(inputs, verbose=0)["hidden"], expected, rtol=1e-4, atol=1e-5
    )
    adapters.merge(model)
    np.testing.assert_allclose(
        model.predict(inputs, verbose=0)["hidden"], expected, rtol=1e-4, atol=1e-5
    )


def test_writing_is_compiled_anew():
    """A loop that was compiled before must not write as if nothing had been added."""
    model = models.GPT2(13, **SIZES, max_length=32)
    prompts = np.array([[3, 4, 5]])
    options = dict(max_new_tokens=6, end_id=None, jit=False)
    before = model.generate(prompts, **options)
    adapters.add_bottlenecks(model, 3, activation=None)
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(1).normal(0, 2, variable.shape))
    after = model.generate(prompts, **options)
    assert np.any(before != after)
    adapters.merge(model)
    np.testing.assert_array_equal(model.generate(prompts, **options), after)


def test_a_seed_repeats():
    values = []
    for seed in (1, 1, 2):
        model = bert(num_layers=2)
        adapters.add_lora(model, 2, seed=seed)
        adapters.add_bottlenecks(model, 2, seed=seed)
        values.append(np.concatenate([array(v).ravel() for v in model.trainable_variables]))
    np.testing.assert_array_equal(values[0], values[1])
    assert np.any(values[0] != values[2])
    first, second = model.get_layer("block_0"), model.get_layer("block_1")
    a, b = (array(x.self_attention.query.lora_kernel_a) for x in (first, second))
    assert np.any(a != b)


def test_a_quantized_model_takes_lora():
    model = bert()
    model.quantize("int8")
    inputs = draw(model)
    adapters.add_lora(model, 2)
    disturb(model)
    after = hidden(model, inputs)
    adapters.merge(model)
    np.testing.assert_allclose(hidden(model, inputs), after, atol=0.05)


def test_errors(tmp_path):
    model = bert()
    path = tmp_path / "a.safetensors"
    for call, message in (
        (lambda: adapters.add_lora(model, 0), "rank must be at least 1, got 0"),
        (lambda: adapters.add_lora(model, layers="nope"), r"named \['nope'\]. There are \['"),
        (lambda: adapters.add_lora(model, train=("nope/*",)), "No variables are named"),
        (lambda: adapters.add_bottlenecks(model, 0), "bottleneck_dim must be at least 1, got 0"),
        (lambda: adapters.add_bottlenecks(model, activation="gellu"), "Unknown activation"),
        (lambda: adapters.save(model, path), "bert has no adapters to save"),
        (lambda: adapters.merge(model), "bert has no adapters to merge"),
        (lambda: adapters.load(model, path), "does not exist"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert len(model.trainable_variables) == len(bert().trainable_variables)
    adapters.add_lora(model, 2)
    with pytest.raises(ValueError, match="There is a LoRA already in block_0/self_attention"):
        adapters.add_lora(model, 2)
    with pytest.raises(ValueError, match="bert has adapters: merge them before"):
        model.save_pretrained(tmp_path)
    adapters.save(model, path)
    with pytest.raises(ValueError, match="has adapters already"):
        adapters.load(model, path)


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    model = bert(num_layers=2)
    adapters.add_bottlenecks(model, 2)
    adapters.save(model, path)
    with pytest.raises(ValueError, match="merges without an activation"):
        adapters.merge(model)
    other = bert(num_layers=2, hidden_dim=16)
    count = len(other.trainable_variables)
    with pytest.raises(ValueError, match="for another model: bert cannot take"):
        adapters.load(other, path)
    plain = bert(num_layers=2)
    assert len(other.trainable_variables) == count and len(other.weights) == len(plain.weights)
    with pytest.raises(ValueError, match="The adapters are for another model: gpt2"):
        adapters.load(models.GPT2(13, **SIZES), path)
    safetensors.numpy.save_file({"a": np.zeros(2)}, path)
    with pytest.raises(ValueError, match="holds no adapters"):
        adapters.load(plain, path)
    lora = '{"lora": {"block_0/self_attention/query": [%s]}, "bottlenecks": {}}'
    # The file has no array that is so wide, and no scale is a name.
    for said in (
        '{"lora": 3, "bottlenecks": {}}',
        lora % "9999999, 1",
        lora % '2, "a"',
        "[" * 99999,
    ):
        metadata = {"format": adapters.FORMAT, "adapters": said}
        safetensors.numpy.save_file({"a": np.zeros(2)}, path, metadata)
        with pytest.raises(ValueError, match="does not say which adapters"):
            adapters.load(plain, path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        adapters.load(plain, path)
