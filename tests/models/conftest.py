"""The numbers of others for models that write: forward passes, losses, generated ids."""

import json

import keras
import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

from kerasattn import decoding

INPUTS = {
    "input_ids": ("token_ids", "int32"),
    "attention_mask": ("padding_mask", "bool"),
    "token_type_ids": ("segment_ids", "int32"),
    "position_ids": ("position_ids", "int32"),
    "decoder_input_ids": ("decoder_token_ids", "int32"),
}


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def _sides(numbers, case):
    return (
        {k.split("/", 2)[2]: v for k, v in numbers.items() if k.startswith(f"{case}/{side}/")}
        for side in ("in", "out")
    )


def _check_forward(model, given, expected, tolerance):
    inputs = {ours: given[k].astype(dtype) for k, (ours, dtype) in INPUTS.items() if k in given}
    real = inputs.get("padding_mask", np.ones(given["input_ids"].shape, bool))
    memories = [value for name, value in sorted(given.items()) if name.startswith("mems.")]
    if memories:
        inputs["memories"] = np.stack(memories).transpose(2, 0, 1, 3)  # (batch, layer, memory, dim)
    reads_another = hasattr(model, "shift_right")  # an encoder-decoder
    if reads_another and "labels" in given:
        inputs["decoder_token_ids"] = array(model.shift_right(given["labels"]))
    outputs = model(inputs)
    hidden = list(map(array, model.hidden_states(inputs)))
    actual = {
        "last_hidden_state": outputs["hidden"],
        "encoder_last_hidden_state": outputs.get("encoder_hidden"),
        "logits": outputs["lm_logits"],
        "prediction_scores": outputs["lm_logits"],  # log-probabilities
    }
    if "memories" in outputs:
        kept = array(outputs["memories"]).transpose(1, 2, 0, 3)
        actual |= {f"mems.{i}": memory for i, memory in enumerate(kept)}
    if "labels" in given:
        actual["loss"] = model.compute_loss(inputs, given["labels"], outputs)
    if reads_another:
        count = sum(name.startswith("encoder_hidden") for name in expected)
        actual |= {f"encoder_hidden_states.{i}": x for i, x in enumerate(hidden[:count])}
        actual |= {f"decoder_hidden_states.{i}": x for i, x in enumerate(hidden[count:])}
    else:
        actual |= {f"hidden_states.{i}": x for i, x in enumerate(hidden)}
    for name, value in expected.items():
        if name == "losses":  # of each token, in an order of their own
            log_probs = array(outputs["lm_logits"])[:, :-1]
            found = -np.take_along_axis(log_probs, given["labels"][:, 1:, None], axis=2)
            actual[name], value = np.sort(found.ravel()), np.sort(value.ravel())
        found = array(actual[name])
        assert found.shape == value.shape, name
        if name != "loss" and not (reads_another and name.startswith(("decoder", "logits"))):
            if name.startswith("mems."):
                found, value = (x.swapaxes(0, 1) for x in (found, value))
            if found.shape[:2] == real.shape:
                found, value = found[real], value[real]
        allowed = tolerance if name == "logits" else 1e-4
        np.testing.assert_allclose(found, value, rtol=0, atol=allowed, err_msg=name)


def _check_writing(model, given, expected, settings):
    width, steps = settings["num_beams"], settings["max_new_tokens"]
    end_id = settings["eos_token_id"]
    if end_id is None:  # one that never comes, so that cases with and without share a trace
        end_id = max(set(range(model.vocabulary_size)) - set(expected["sequences"].ravel()))
    written = model.generate(
        given["input_ids"],
        decoding.Beam(width, num_return=width) if width > 1 else decoding.Greedy(),
        steps,
        padding_mask=given["attention_mask"],
        end_id=end_id,
        pad_id=settings["pad_token_id"],
        return_scores=True,
        jit=False,
    )
    if width > 1:
        scores = written.scores.reshape(-1)
        np.testing.assert_allclose(scores, expected["sequences_scores"], atol=1e-3)
    written = written.token_ids.reshape(-1, steps)
    read = 1 if "decoder_start_token_id" in settings else given["input_ids"].shape[1]
    ids = expected["sequences"][:, read:]  # theirs ends with the longest
    end = ids == settings["eos_token_id"]
    ended = np.cumsum(end, axis=1) - end > 0
    if width > 1:  # of beams they fill up with the end instead, where padding is 0
        ids = np.where(ended, settings["pad_token_id"], ids)
    np.testing.assert_array_equal(written[:, : ids.shape[1]], ids)
    assert np.all(written[:, ids.shape[1] :] == settings["pad_token_id"])


@pytest.fixture
def agrees_with_others(golden, tmp_path):
    """A function that loads a golden folder, runs every case of it, and saves it back.

    `written` is the folder whose names are those that are saved, if not the same; `cases` are those
    of writing that are run: beam search, whose caches are those of greedy search, moved.
    """

    def check(
        model_class,
        name,
        written=None,
        tolerance=1e-4,
        cases=("beam4", "beam4_eos"),
    ):
        folder = golden(name)
        model = model_class.from_pretrained(folder)
        numbers = load_file(folder / "golden.safetensors")
        described = json.loads((folder / "golden.json").read_text())["cases"]
        for case, about in described.items():
            given, expected = _sides(numbers, case)
            if "generate_kwargs" not in about:
                _check_forward(model, given, expected, tolerance)
            elif case in cases:
                _check_writing(model, given, expected, about["generate_kwargs"])

        model.save_pretrained(tmp_path)
        before = load_file(golden(written or name) / "model.safetensors")
        after = load_file(tmp_path / "model.safetensors")
        assert before.keys() == after.keys()
        for key, value in before.items():
            allowed = 1e-6 if key.endswith("inv_freq") else 0  # a buffer that we compute
            np.testing.assert_allclose(value, after[key], rtol=allowed, err_msg=key)
        if (folder / "config.json").is_file():
            theirs, ours = (json.loads((f / "config.json").read_text()) for f in (folder, tmp_path))
            assert not {k for k in ours.keys() & theirs.keys() if ours[k] != theirs[k]}
        again = model_class.from_pretrained(tmp_path)
        for weight, twin in zip(model.weights, again.weights, strict=True):
            np.testing.assert_array_equal(array(weight.value), array(twin.value))
        return model

    return check


@pytest.fixture
def write_checkpoint(tmp_path):
    """A function that writes a TensorFlow folder: the name and content of its config, arrays."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("TensorFlow checkpoints need TensorFlow")
    import tensorflow as tf

    def write(config_file, config, arrays):
        folder = tmp_path / "tensorflow"
        folder.mkdir()
        (folder / config_file).write_text(json.dumps(config))
        tf.raw_ops.SaveV2(
            prefix=str(folder / "model.ckpt"),
            tensor_names=list(arrays),
            shape_and_slices=[""] * len(arrays),
            tensors=[tf.constant(array) for array in arrays.values()],
        )
        return folder

    return write


@pytest.fixture
def one_token_at_a_time():
    """For `check_model`: a model's logits with a cache, a token at a time, and without.

    A language model reads the first tokens at once.
    """

    def decode(model, inputs):
        outputs = model(inputs, training=False)["lm_logits"]
        ids = inputs.get("decoder_token_ids", inputs["token_ids"])
        read = {"token_ids": inputs["token_ids"], "padding_mask": inputs["token_ids"] != 0}
        first = 0
        if "decoder_token_ids" not in inputs:
            first = 2
            read = {name: x[:, :first] for name, x in read.items()}
        state = model.initial_state(
            {name: ops.convert_to_tensor(x) for name, x in read.items()}, ids.shape[1] - first
        )
        written = []
        for step in range(ids.shape[1] - first):
            token_ids = ops.convert_to_tensor(ids[:, first + step])
            logits, state = model.step(token_ids, ops.convert_to_tensor(step, "int32"), state)
            written.append(array(logits))
        return np.stack(written, axis=1), array(outputs)[:, first:]

    return decode


@pytest.fixture
def draw_pairs():
    """For `check_model`: texts for an encoder and a decoder of 13 tokens."""
    random = np.random.default_rng(1)

    def draw(batch, length):
        read, written = random.integers(1, 13, (2, batch, length)).astype("int32")
        return {"token_ids": read, "decoder_token_ids": written}

    return draw
