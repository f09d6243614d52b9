"""Encoders of others: each folder loads by itself, gives their numbers, and is saved as it was."""

import json

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

import kerasattn
from kerasattn.weights.torch_files import find_huggingface, open_huggingface

# The folders, and the one with the same weights under the names that are written.
FOLDERS = {
    "albert_2groups": None,
    "bert_pretraining": None,
    "bert_pretraining_legacy_names": "bert_pretraining",
    "bert_pretraining_sharded": "bert_pretraining",
    "bert_seqcls": None,
    "distilbert_mlm": None,
    "electra_generator": None,
    "ernie_notask": None,
    "nezha_pretraining": None,
    "roberta_mlm": None,
    "roberta_mlm_bin": "roberta_mlm",
    "roberta_seqcls": None,
    "roformer_mlm": None,
    "roformer_mlm_emb16": None,
}
CHECKPOINTS = {
    "bert_tf": "bert_pretraining",
    "nezha_tf": "nezha_pretraining",
    "roformer_tf": "roformer_mlm",
}
# Their outputs and labels, and ours.
OUTPUTS = {
    "last_hidden_state": "hidden",
    "pooler_output": "pooled",
    "prediction_logits": "mlm_logits",
    "seq_relationship_logits": "nsp_logits",
    "sop_logits": "sop_logits",
}
LABELS = {
    "next_sentence_label": "nsp_logits",
    "sentence_order_label": "sop_logits",
}
LOGITS = {
    "ForPreTraining": "mlm_logits",
    "ForMaskedLM": "mlm_logits",
    "ForSequenceClassification": "class_logits",
    "ForTokenClassification": "token_logits",
}


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def case_of(numbers, case, model_class):
    """A case's inputs and labels in our names, its outputs, and at which positions they count."""
    inputs, outputs = (
        {k.split("/", 2)[2]: v for k, v in numbers.items() if k.startswith(f"{case}/{side}/")}
        for side in ("in", "out")
    )
    token_ids = inputs["input_ids"].astype("int32")
    ours = {"token_ids": token_ids}
    if "attention_mask_3d" in inputs:
        ours["attention_mask"] = inputs["attention_mask_3d"].astype(bool)
        ours["padding_mask"] = inputs["valid"].astype(bool)
    else:
        given = inputs.get("attention_mask", np.ones_like(token_ids))
        ours["padding_mask"] = given.astype(bool)
    if "token_type_ids" in inputs:
        ours["segment_ids"] = inputs["token_type_ids"].astype("int32")
    logits = next(name for end, name in {**LOGITS, "": None}.items() if model_class.endswith(end))
    names = {**LABELS, "labels": logits}
    labels = {names[k]: v for k, v in inputs.items() if k in names}
    return ours, labels, {{**OUTPUTS, "logits": logits}.get(k, k): v for k, v in outputs.items()}


def largest_difference(model, folder, count=None):
    """From the numbers of all cases in a folder, or the first so many, at real positions."""
    described = json.loads((folder / "golden.json").read_text())
    numbers = load_file(folder / "golden.safetensors")
    differences = []
    cases = list(described["cases"])[:count]
    for case in cases:
        inputs, labels, expected = case_of(numbers, case, described["model_class"])
        real = inputs["padding_mask"]
        actual = model(inputs)
        if labels:
            actual["loss"] = model.compute_loss(inputs, labels, actual)
        if case == cases[0]:  # of the others the last is enough
            hidden = model.hidden_states(inputs)
            actual |= {f"hidden_states.{i}": x for i, x in enumerate(hidden)}
        else:
            expected = {k: v for k, v in expected.items() if not k.startswith("hidden_states")}
        for name, value in expected.items():
            found = array(actual[name])
            assert found.shape == value.shape, name
            of_tokens = value.shape[:2] == real.shape
            difference = np.abs(found - value)
            differences.append(np.max(difference[real] if of_tokens else difference))
    assert len(differences) >= len(cases)
    return max(differences)


@pytest.mark.parametrize("name", FOLDERS)
def test_folders(golden, name, tmp_path):
    folder = golden(f"models/{name}")
    model = kerasattn.from_pretrained(folder)
    # Of the same weights under other names, which they are below, a case shows the settings.
    assert largest_difference(model, folder, count=1 if FOLDERS[name] else None) <= 1e-4

    model.save_pretrained(tmp_path)
    original = golden(f"models/{FOLDERS[name] or name}")
    before = load_file(original / "model.safetensors")
    after = load_file(tmp_path / "model.safetensors")
    assert before.keys() == after.keys()
    for key, value in before.items():
        assert value.dtype == after[key].dtype
        np.testing.assert_allclose(value, after[key], rtol=0, atol=1e-6, err_msg=key)
    with open_huggingface(find_huggingface(folder)) as source:
        for key in source.names & after.keys():  # but for buffers that we compute, bit for bit
            if "position" not in key or name.startswith("roformer"):
                np.testing.assert_array_equal(source.read(key), after[key], err_msg=key)
    theirs, ours = (json.loads((f / "config.json").read_text()) for f in (folder, tmp_path))
    assert not {key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]}
    said = {"model_type", "architectures", "layer_norm_eps"}
    assert said & theirs.keys() <= ours.keys()
    if FOLDERS[name]:  # what is saved is what another case loads
        return

    again = kerasattn.from_pretrained(tmp_path)
    assert type(again) is type(model) and again.get_config() == model.get_config()
    for weight, twin in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(array(weight.value), array(twin.value))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the files are TensorFlow's")
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_tensorflow_checkpoints(golden, name, tmp_path):
    folder = golden(f"tf_checkpoints/{name}")
    model = kerasattn.from_pretrained(folder)
    assert largest_difference(model, folder, count=1) <= 1e-4  # the weights are all compared below
    model.save_pretrained(tmp_path)
    expected = load_file(golden(f"models/{CHECKPOINTS[name]}") / "model.safetensors")
    saved = load_file(tmp_path / "model.safetensors")
    assert saved.keys() == expected.keys()
    for key, value in expected.items():
        if "position" not in key:
            np.testing.assert_array_equal(saved[key], value, err_msg=key)
