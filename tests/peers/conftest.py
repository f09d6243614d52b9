"""What the tests against other libraries share: the same inputs for two models."""

import numpy as np
import pytest
from keras import ops

# Their outputs and inputs -> ours.
OUTPUTS = {
    "last_hidden_state": "hidden",
    "encoder_last_hidden_state": "encoder_hidden",
    "pooler_output": "pooled",
    "prediction_logits": "mlm_logits",
    "seq_relationship_logits": "nsp_logits",
    "sop_logits": "sop_logits",
    "start_logits": "start_logits",
    "end_logits": "end_logits",
}
INPUTS = {
    "input_ids": "token_ids",
    "token_type_ids": "segment_ids",
    "task_type_ids": "task_ids",
    "decoder_input_ids": "decoder_token_ids",
}


def draw(model, left):
    """Inputs in their names, with padding, and where the tokens are real."""
    random, config = np.random.default_rng(0), model.get_config()
    ids = random.integers(5, config["vocabulary_size"], (3, 9))
    if config["pad_id"] is not None:
        ids[ids == config["pad_id"]] -= 1
    real = np.ones((3, 9), bool)
    real[1, 6:] = real[2, 4:] = False
    if left:
        real = real[:, ::-1]
    ids[~real] = config["pad_id"] or 0
    given = {"input_ids": ids, "attention_mask": real.astype("int64")}
    if "segment_ids" in model._inputs_struct:
        last = config.get("num_segments", 2) - 1
        given["token_type_ids"] = last * (np.arange(9) > 3) + np.zeros_like(ids)
    if "task_ids" in model._inputs_struct:
        given["task_type_ids"] = random.integers(0, config["num_tasks"], (3, 9))
    if "decoder_token_ids" in model._inputs_struct:
        given["decoder_input_ids"] = random.integers(5, config["vocabulary_size"], (3, 7))
    return given, real


@pytest.fixture
def same_outputs():
    """A function that asserts that a model of ours and one of transformers agree within 1e-4."""
    torch = pytest.importorskip("torch", reason="the extra [peers] installs PyTorch")

    def check(model, twin, left=False, without_mask=False, tolerance=1e-4):
        given, real = draw(model, left)
        if without_mask:
            del given["attention_mask"]
            real[:] = True
        ours = {INPUTS[k]: v.astype("int32") for k, v in given.items() if k in INPUTS}
        with torch.no_grad():
            expected = twin.eval()(**{name: torch.tensor(x) for name, x in given.items()})
        outputs = model({**ours, "padding_mask": real})
        others = [k for k in outputs if k.endswith("logits") and k not in OUTPUTS.values()]
        logits = (others or [k for k in outputs if k.endswith("logits")] or [None])[0]
        compared = 0
        for name, value in expected.items():
            ours_of = OUTPUTS.get(name, logits if name == "logits" else None)
            if ours_of is None:
                continue
            actual = np.asarray(ops.convert_to_numpy(outputs[ours_of]))
            value = value.float().numpy()
            assert actual.shape == value.shape, name
            if actual.shape[:2] == real.shape:  # of a decoder of 7 tokens all are compared
                actual, value = actual[real], value[real]
            np.testing.assert_allclose(actual, value, rtol=0, atol=tolerance, err_msg=name)
            compared += 1
        assert compared

    return check
