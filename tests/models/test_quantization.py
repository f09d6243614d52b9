"""Keras' quantization of every family: outputs stay close, and files load."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.models import BERT, GPT2
from kerasattn.models.registry import MODELS
from kerasattn.training import adapters

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=32, intermediate_dim=64)
MORE = {"univae": dict(num_layers=3, num_latent_layers=1, latent_dim=4, max_length=8)}
RANDOM = np.random.default_rng(0)


def outputs_of(model, inputs):
    return np.asarray(ops.convert_to_numpy(model(inputs, training=False)["hidden"]))


def draw(model):
    names = [name for name in model._inputs_struct if name.endswith("token_ids")]
    return {name: RANDOM.integers(1, 13, (4, 8)).astype("int32") for name in names}


# Not those whose layers are all another's with other settings.
ALIKE = {"distilbert", "ernie", "roberta"}  # BERT's
ALIKE |= {"mass", "mt5", "t5_encoder", "mt5_encoder"}  # BART's and T5's
ALIKE |= {"elmo"}  # of whose weights most are no dense layers'
# Without a graph JAX compiles every operation by itself: of each kind of family there is one.
TENSORFLOW = keras.backend.backend() == "tensorflow"
FAMILIES = sorted(set(MODELS) - ALIKE) if TENSORFLOW else ("bert", "gpt2", "t5", "univae")


@pytest.mark.parametrize("name", FAMILIES)
def test_outputs_stay_close(name):
    """Within 5% of their spread, though all kernels and the dense layers' inputs are 8 bits."""
    model, random = MODELS[name](13, **SIZES | MORE.get(name, {})), np.random.default_rng(0)
    for variable in model.trainable_variables:  # so that the blocks count for much
        if variable.path.endswith("kernel"):
            spread = variable.shape[0] ** -0.5
            if name == "t5" and "query" in variable.path:
                spread /= 4.0  # scores of theirs are not scaled: by the root of head_dim
            variable.assign(random.normal(0, spread, variable.shape))
    inputs = draw(model)
    before = outputs_of(model, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.quantize("int8")
    dense = [x for x in model._flatten_layers() if isinstance(x, keras.layers.Dense)]
    assert {layer.kernel.dtype for layer in dense} == {"int8"}
    after = outputs_of(model, inputs)
    assert np.abs(after - before).max() > 0
    assert np.sqrt(np.mean((after - before) ** 2)) < 0.05 * before.std()


def test_a_quantized_file_loads(tmp_path):
    model = BERT(13, **SIZES)
    model.quantize("int8", filters="intermediate")
    inputs = draw(model)
    assert [v.dtype for v in model.variables].count("int8") == 1
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(outputs_of(again, inputs), outputs_of(model, inputs))
    assert [v.dtype for v in again.variables] == [v.dtype for v in model.variables]
    assert again.get_config() == model.get_config()
    with pytest.raises(ValueError, match=r"is quantized: such a model is saved as a \.keras"):
        model.save_pretrained(tmp_path)


def test_writing_goes_on_quantized():
    model = GPT2(13, **SIZES)
    prompts = np.array([[3, 4]])
    model.generate(prompts, max_new_tokens=3, jit=False)
    model.quantize("int8")
    assert model.generate(prompts, max_new_tokens=3, jit=False).shape == (1, 3)


def test_a_file_with_bottlenecks_loads_and_goes_on(tmp_path):
    model = BERT(13, **SIZES, heads=("class",), dropout=0.0)
    adapters.add_bottlenecks(model, 3, train=("classifier/*",))
    # A graph for one step takes TensorFlow longer than the step; JAX the other way round.
    model.compile(keras.optimizers.Adam(0.01), jit_compile=False, run_eagerly=TENSORFLOW)
    inputs, labels = draw(model), np.array([0, 1, 0, 1])
    model.fit(inputs, labels, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(outputs_of(again, inputs), outputs_of(model, inputs))
    paths = [[v.path for v in m.trainable_variables] for m in (model, again)]
    assert paths[0] == paths[1] and len(paths[0]) < len(model.variables)
    losses = [m.fit(inputs, labels, verbose=0).history["loss"][0] for m in (model, again)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    adapters.merge(_without_activation(tmp_path))


def _without_activation(folder):
    """A loaded model whose bottlenecks merge."""
    model = BERT(13, **SIZES)
    adapters.add_bottlenecks(model, 3, activation=None)
    model.save(folder / "linear.keras")
    return keras.models.load_model(folder / "linear.keras")
