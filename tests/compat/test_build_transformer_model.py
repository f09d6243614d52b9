"""build_transformer_model against bert4keras' own numbers, and against the zoo's models."""

import functools
import importlib
import json

import keras
import numpy as np
import pytest

from kerasattn import models
from kerasattn.compat.bert4keras import build_transformer_model, set_gelu
from kerasattn.testing import reload
from kerasattn.weights import tables

NAMES = [
    "albert_mlm_pool",
    "albert_unshared",
    "bert_compound_tokens",
    "bert_cond_layernorm",
    "bert_custom_positions",
    "bert_encoder",
    "bert_factorised",
    "bert_gelu_tanh",
    "bert_hierarchical",
    "bert_keep_tokens",
    "bert_key_size",
    "bert_lm_linear",
    "bert_lm_softmax",
    "bert_no_segment",
    "bert_nsp",
    "bert_nsp_mlm_linear",
    "bert_pool",
    "bert_pool_linear",
    "bert_pool_mlm",
    "bert_prefix",
    "bert_residual_scores",
    "bert_shared_segment",
    "bert_unilm_linear",
    "bert_unilm_softmax",
    "electra_discriminator",
    "electra_encoder",
    "gpt2",
    "gpt2_ml",
    "gpt_no_segment_tanh",
    "gpt_segments",
    "gpt_unilm",
    "mt5.1.1_decoder",
    "mt5.1.1_encoder",
    "mt5.1.1_full",
    "mt5.1.1_keep_tokens",
    "nezha_unilm",
    "roformer_encoder",
    "roformer_factorised_mlm",
    "roformer_lm",
    "roformer_residual_scores",
    "roformer_unilm",
    "roformer_v2_encoder",
    "roformer_v2_mlm",
    "t5.1.0_decoder",
    "t5.1.0_encoder",
    "t5.1.0_full",
    "t5.1.0_no_cross_bias",
    "t5.1.1_decoder",
    "t5.1.1_encoder",
    "t5.1.1_full",
]
SAVED = [
    "albert_mlm_pool",
    "bert_residual_scores",
    "bert_shared_segment",
    "gpt2_ml",
    "nezha_unilm",
    "roformer_v2_mlm",
    "t5.1.1_full",
]
SAVED_FOR_ANOTHER_PROCESS = ["bert_cond_layernorm", "roformer_unilm", "t5.1.0_decoder"]


def attribute(layer, path):
    for name in path.split("/"):
        layer = getattr(layer, name)
    return layer


@pytest.fixture(scope="module")
def published(golden):
    """A function of a name: the model, what bert4keras says of it, its inputs and outputs."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("the checkpoints are TensorFlow's")

    @functools.cache  # no test changes a model
    def build(name):
        folder = golden("bert4keras") / "models" / name
        case = json.loads((folder / "case.json").read_text())
        arguments = dict(case["build_transformer_model"])
        for key in ("config_path", "checkpoint_path"):
            arguments[key] = folder / arguments[key]
        set_gelu(case["gelu"])
        if case["layer_norm_cond_dim"]:
            condition = keras.Input((case["layer_norm_cond_dim"],), name="Input-Condition")
            arguments |= dict(layer_norm_cond=condition, additional_input_layers=condition)
        model = build_transformer_model(**arguments)
        if (folder / "extra_weights.npz").exists():
            for path, value in np.load(folder / "extra_weights.npz").items():
                layer, _, path = path.partition("/")
                attribute(model.get_layer(layer), path).assign(value)
        numbers = np.load(folder / "golden.npz")
        inputs = [numbers[x["key"]] for x in case["inputs"]]
        return model, case, inputs, [numbers[x["key"]] for x in case["outputs"]]

    return build


@pytest.mark.parametrize("name", NAMES)
def test_published_numbers(published, run, name):
    model, case, inputs, expected = published(name)
    actual = run(model, *inputs)
    assert len(actual) == len(expected)
    for found, value in zip(actual, expected):
        np.testing.assert_allclose(found, value, rtol=0, atol=1e-4)

    assert [x.name for x in model.inputs] == [x["name"] for x in case["inputs"]]
    layers = {layer.name for layer in model.layers}
    assert layers >= set(case["layer_names"])
    for weight in case["weights"]:
        if weight["trainable"]:
            variable = attribute(model.get_layer(weight["layer"]), weight["attr"])
            assert list(variable.shape) == weight["shape"], weight


def test_all_published_models_are_tried(golden):
    folders = (golden("bert4keras") / "models").iterdir()
    assert sorted(NAMES) == sorted(folder.name for folder in folders)


@pytest.mark.parametrize("name", SAVED)
def test_saved_models_are_the_same(published, run, tmp_path, name):
    model, _, inputs, expected = published(name)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert [x.name for x in again.inputs] == [x.name for x in model.inputs]
    for found, value in zip(run(again, *inputs), expected):
        np.testing.assert_allclose(found, value, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", SAVED_FOR_ANOTHER_PROCESS)
def test_saved_models_load_in_a_new_process(published, tmp_path, name):
    model, _, inputs, expected = published(name)
    # Where a class is not known by its name Keras looks for it in its module.
    for cls in {type(layer) for layer in model.layers}:
        assert getattr(importlib.import_module(cls.__module__), cls.__name__) is cls
    named = keras.Model({x.name: x for x in model.inputs}, {"y": model.output})
    named.save(tmp_path / "model.keras")
    inputs = {x.name: value for x, value in zip(model.inputs, inputs, strict=True)}
    found = reload.predict(tmp_path / "model.keras", inputs)["y"]
    np.testing.assert_allclose(found, expected[0], rtol=0, atol=1e-4)


# === What a checkpoint has besides ===

ALIEN = {  # of BERT with two layers, for others
    "bert": ({}, 0, ()),
    "shallow": ({"num_hidden_layers": 1}, 16, ("layer_1/output/dense/kernel",)),
    "nezha": ({"model": "nezha"}, 1, ("bert/embeddings/position_embeddings",)),
    "roformer_v2": (
        {"model": "roformer_v2"},
        29,
        ("position_embeddings", "attention/self/key/bias"),
    ),
}


@pytest.mark.parametrize("name", ALIEN)
def test_what_is_left_unused_is_named(caplog, name):
    arguments, number, expected = ALIEN[name]
    config = {**CONFIG, "num_hidden_layers": 2}
    bert = build_transformer_model(with_nsp=True, with_mlm=True, return_keras_model=False, **config)
    checkpoint = {"global_step": np.zeros(()), "bert/pooler/dense/kernel/adam_m": np.zeros(2)}
    for layer, names in bert.variable_mapping().items():
        if layer in bert.layers:
            arrays = map(keras.ops.convert_to_numpy, bert.layers[layer].trainable_weights)
            checkpoint |= {n: x.T if "seq" in n else x for n, x in zip(names, arrays)}
    build_transformer_model(checkpoint_path=checkpoint, **{**config, **arguments})
    assert all(text in caplog.text for text in expected), caplog.text
    assert (f"{number} in the file but not in the model" in caplog.text) == bool(number)
    assert not any(text in caplog.text for text in ("kernel/adam_m", "global_step"))
    if name != "roformer_v2":  # whose heads, too, have no biases
        assert "pooler" not in caplog.text and "cls/" not in caplog.text


# === Against the zoo, whose models have others' numbers ===

SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=24)
CONFIG = dict(
    vocab_size=30,
    num_hidden_layers=1,
    num_attention_heads=2,
    hidden_size=16,
    intermediate_size=24,
    hidden_act="gelu",
)
ENCODER = dict(num_segments=2, activation="gelu", layer_norm_epsilon=1e-7)
T5 = {**CONFIG, "attention_head_size": 64, "version": "t5.1.1", "hidden_act": ["gelu", "linear"]}
# Ours, its arguments, the table of its checkpoints, and what the door is asked for.
ZOO = {
    "bert": (models.BERT, ENCODER, tables.bert.TENSORFLOW.table, CONFIG),
    "nezha": (models.NEZHA, ENCODER, tables.nezha.TENSORFLOW.table, CONFIG),
    "roformer": (models.RoFormer, ENCODER, tables.roformer.TENSORFLOW.table, CONFIG),
    "roformer_v2": (models.RoFormerV2, ENCODER, tables.roformer_v2.TENSORFLOW.table, CONFIG),
    "albert": (
        models.ALBERT,
        {**ENCODER, "embedding_dim": 8},
        tables.albert.TENSORFLOW_TABLE,
        {**CONFIG, "embedding_size": 8},
    ),
    "t5.1.1": (
        models.T5,
        dict(gated=True, activation="gelu", tied_head=False, cross_position_bias=True),
        tables.t5.tensorflow_table(tables.t5.GATED),
        {**T5, "scale_output": False},
    ),
}


@pytest.mark.parametrize("name", ZOO)
def test_numbers_of_the_zoo(run, name):
    cls, options, table, config = ZOO[name]
    ours = cls(30, **SIZES, **options)
    random = np.random.default_rng(3)
    tensors = {}
    for variable in ours.weights:
        if not variable.trainable:
            continue
        variable.assign(random.normal(size=variable.shape, scale=0.3))
        rule, names = table.find(variable.path)
        tensors[names[0]] = rule.save(keras.ops.convert_to_numpy(variable))
    token_ids = random.integers(1, 30, (2, 9)).astype("int32")
    token_ids[1, 6:] = 0
    real = token_ids != 0
    if name.startswith("t5"):
        written = random.integers(1, 30, (2, 5)).astype("int32")
        expected = ours({"token_ids": token_ids, "decoder_token_ids": written})["lm_logits"]
        model = build_transformer_model(None, tensors, name, with_lm="linear", **config)
        [found] = run(model, token_ids, written)
        real = np.ones_like(written, bool)
    else:
        segment_ids = np.where(np.arange(9) < 4, 0, 1) * np.ones((2, 1), "int32")
        expected = ours({"token_ids": token_ids, "segment_ids": segment_ids})["mlm_logits"]
        model = build_transformer_model(None, tensors, name, with_mlm="linear", **config)
        [found] = run(model, token_ids, segment_ids)
    expected = np.asarray(keras.ops.convert_to_numpy(expected))
    np.testing.assert_allclose(found[real], expected[real], rtol=0, atol=1e-4)
