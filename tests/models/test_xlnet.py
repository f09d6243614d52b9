"""XLNet: the numbers of others, and what its query stream sees."""

import functools
import json
import re

import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

import kerasattn
from kerasattn.models import XLNet
from kerasattn.ops import masks
from kerasattn.testing import check_model

SIZES = dict(vocabulary_size=13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=12)
RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


@functools.cache
def plain():
    """The model that tests share; none may change it."""
    return XLNet(**SIZES, pad_id=0)


def in_order(*order):
    return array(masks.permutation(np.array([order]), include_self=False))[:, 0]


def draw(batch, length):
    """A text, an order of its own, one target and a memory."""
    order = np.argsort(RANDOM.random((batch, length)))
    target = np.zeros((batch, 1, length), "float32")
    target[:, 0, 0] = 1
    return {
        "token_ids": RANDOM.integers(1, 13, (batch, length)).astype("int32"),
        "segment_ids": RANDOM.integers(0, 2, (batch, length)).astype("int32"),
        "permutation_mask": array(masks.permutation(order))[:, 0],
        "target_mapping": target,
        "memories": RANDOM.normal(size=(batch, 1, 3, 8)).astype("float32"),
    }


def test_golden(agrees_with_others):
    agrees_with_others(XLNet, "models/xlnet_lm")


@pytest.mark.slow
def test_model():
    check_model(
        XLNet,
        dict(SIZES, num_layers=1, pad_id=0, max_distance=5, memory_length=4),
        inputs=draw,
        targets=lambda batch, length: np.ones((batch, 1), "int32"),
        skip={
            "causal": "reads in any order",
            "decoding": "test_xlnet_writing has it",
            "jit": "Transformer-XL has it, of the same parts",
        },
    )


def test_a_target_is_told_from_what_comes_before_it_in_the_order():
    model = plain()
    inputs = {
        "token_ids": np.array([[5, 6, 7, 8]]),
        "permutation_mask": in_order(2, 0, 3, 1),
        "target_mapping": np.eye(4)[None, [0, 3]],  # third and second in the order
    }
    expected = array(model(inputs)["lm_logits"])
    assert expected.shape == (1, 2, 13)
    changed = {0: [], 1: [0, 3], 2: [], 3: [0]}  # the token that changes -> the targets that see it
    for place, seen_by in changed.items():
        token_ids = inputs["token_ids"].copy()
        token_ids[0, place] = 9
        found = array(model({**inputs, "token_ids": token_ids})["lm_logits"])
        differs = np.abs(found - expected).max(axis=(0, 2)) > 1e-6
        assert differs.tolist() == [target in seen_by for target in (0, 3)], place


def test_both_streams_are_one_where_they_know_the_same():
    model = XLNet(**SIZES, pad_id=0)
    table = array(model.get_layer("token_embedding").embeddings)
    model.get_layer("query_stream").mask_embedding.assign(table[None, None, 7])
    text = {"token_ids": np.array([[5, 7, 6, 7, 8]]), "segment_ids": np.array([[0, 0, 0, 1, 1]])}
    content = array(model(text)["hidden"])[:, [1, 3]]
    query = array(model({**text, "target_mapping": np.eye(5)[None, [1, 3]]})["hidden"])
    np.testing.assert_allclose(query, content, atol=1e-6)


def test_padding_on_the_left_changes_nothing():
    model = plain()
    alone = array(model(np.array([[5, 6, 7]]))["hidden"])
    padded = array(model(np.array([[0, 0, 5, 6, 7]]))["hidden"])
    np.testing.assert_allclose(padded[:, 2:], alone, atol=1e-6)


def test_a_masked_memory_is_none():
    model = plain()
    text = {"token_ids": np.array([[5, 6, 7]])}
    alone = array(model(text)["hidden"])
    memories = RANDOM.normal(size=(1, 2, 4, 8)).astype("float32")
    given = {**text, "memories": memories, "memory_mask": np.zeros((1, 4), bool)}
    np.testing.assert_allclose(array(model(given)["hidden"]), alone, atol=1e-6)
    del given["memory_mask"]
    assert np.abs(array(model(given)["hidden"]) - alone).max() > 1e-3


@pytest.mark.parametrize("application", ["lm", "unilm"])
def test_it_writes_too(application):
    model = XLNet(**SIZES, pad_id=0, application=application, memory_length=0)
    inputs = {"token_ids": np.array([[5, 6, 7, 8]]), "segment_ids": np.array([[0, 0, 1, 1]])}
    outputs = model(inputs)
    assert set(outputs) == {"hidden", "lm_logits"}
    later = {**inputs, "token_ids": np.array([[5, 6, 7, 9]])}
    np.testing.assert_allclose(
        array(model(later)["lm_logits"])[:, :3], array(outputs["lm_logits"])[:, :3], atol=1e-6
    )
    log_probs = array(ops.log_softmax(outputs["lm_logits"]))[0]
    told = {"lm": [(0, 6), (1, 7), (2, 8)], "unilm": [(1, 7), (2, 8)]}[application]
    expected = -np.mean([log_probs[place, token] for place, token in told])
    loss = float(model.compute_loss(inputs, None, outputs))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_heads_and_memories_are_kept(tmp_path):
    model = XLNet(**SIZES, heads=("class",), num_classes=3, memory_length=2, max_distance=4)
    inputs = {"token_ids": np.array([[7, 8, 9, 5], [5, 6, 7, 8]])}
    outputs = model(inputs)
    assert outputs["class_logits"].shape == (2, 3)
    np.testing.assert_array_equal(  # the last real tokens: 5 is padding
        array(outputs["memories"])[:, 0],
        array(model.hidden_states(inputs)[0])[[[0], [1]], [[1, 2], [2, 3]]],
    )
    model.save_pretrained(tmp_path)
    again = XLNet.from_pretrained(tmp_path)
    assert again.get_config() == {**model.get_config(), "attention_dropout": None} | dict(
        classifier_dropout=again.get_config()["classifier_dropout"]
    )
    np.testing.assert_array_equal(
        array(again(inputs)["class_logits"]), array(outputs["class_logits"])
    )


def original_names(weights):
    """The tensors of a Hugging Face file as the authors' TensorFlow checkpoints have them."""
    arrays, stacked = {}, {}
    ends = {"layer_norm/weight": "LayerNorm/gamma", "layer_norm/bias": "LayerNorm/beta"}
    ends |= {f"rel_attn/{letter}": f"rel_attn/{letter}/kernel" for letter in "qkvro"}
    ends |= {
        "word_embedding/weight": "word_embedding/lookup_table",
        "mask_emb": "mask_emb/mask_emb",
    }
    for name, array in weights.items():
        name = "model/" + re.sub(r"layer/(\d+)", r"layer_\1", name.replace(".", "/"))
        if name.endswith(("_bias", "seg_embed")):  # of all layers, one tensor
            stacked.setdefault(name.rpartition("/")[2], []).append((name, array))
            continue
        if re.search(r"ff/layer_\d/weight", name):
            name, array = name.replace("weight", "kernel"), np.ascontiguousarray(array.T)
        for end, theirs in ends.items():
            name = re.sub(f"{end}$", theirs, name)
        arrays[name] = array
    for name, rows in stacked.items():
        arrays[f"model/transformer/{name}"] = np.stack([array for _, array in sorted(rows)])
    return arrays


def test_tensorflow_checkpoint(tmp_path, write_checkpoint):
    model = XLNet(**SIZES)
    for variable in model.trainable_variables:
        variable.assign(RANDOM.normal(size=variable.shape))
    model.save_pretrained(tmp_path)
    arrays = original_names(load_file(tmp_path / "model.safetensors"))
    assert arrays["model/transformer/r_w_bias"].shape == (2, 2, 4)
    assert arrays["model/transformer/seg_embed"].shape == (2, 2, 2, 4)
    assert arrays["model/transformer/layer_1/rel_attn/o/kernel"].shape == (8, 2, 4)
    slots = {"model/lm_loss/bias/Adam": np.zeros(13, "float32"), "global_step": np.array(7)}
    sizes = dict(n_token=13, n_layer=2, n_head=2, d_head=4, d_model=8, d_inner=12)
    config = {**sizes, "ff_activation": "gelu", "untie_r": True}
    folder = write_checkpoint("xlnet_config.json", config, arrays | slots)
    found = kerasattn.from_pretrained(folder)
    assert type(found) is XLNet and list(found.output) == list(model.output)
    for variable, twin in zip(model.weights, found.weights, strict=True):
        np.testing.assert_array_equal(array(variable.value), array(twin.value), err_msg=twin.path)
    with pytest.raises(ValueError, match=r"block_1/attention/biases/content.*missing|mismatched"):
        XLNet.from_pretrained(folder, num_layers=3)
    (folder / "xlnet_config.json").write_text(json.dumps({**config, "untie_r": False}))
    with pytest.raises(ValueError, match="untie_r = False"):
        XLNet.from_pretrained(folder)


@pytest.mark.parametrize(
    "option",
    [
        dict(bi_data=True),
        dict(reuse_len=3),
        dict(attn_type="neither"),
        dict(attn_type="uni", same_length=True),
        dict(d_head=5),
        dict(tie_word_embeddings=False),
        dict(architectures=["XLNetForSequenceClassification"], summary_type="mean"),
        dict(architectures=["XLNetForSequenceClassification"], summary_activation="relu"),
    ],
    ids=str,
)
def test_what_configs_may_not_ask_for(option):
    [huggingface, _] = XLNet.formats
    config = {"architectures": ["XLNetLMHeadModel"], "d_model": 8, "n_head": 2, **option}
    name = list(option)[-1]
    with pytest.raises(ValueError, match=f"{name} = {option[name]!r}"):
        huggingface.arguments(config, None)
