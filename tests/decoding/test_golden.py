"""Greedy and beam search of transformers on a small GPT-2, ids and scores."""

import json

import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

from kerasattn import decoding

STEPS = 14  # of all cases


class GPT2(decoding.Decoder):
    """GPT-2 with all tokens run anew at each step; prompts are padded on the left."""

    def __init__(self, folder):
        config = json.loads((folder / "config.json").read_text())
        self.heads, self.layers = config["n_head"], config["n_layer"]
        self.vocabulary_size = config["vocab_size"]
        weights = load_file(folder / "model.safetensors")
        self.weights = {name.removeprefix("transformer."): w for name, w in weights.items()}

    def initial_state(self, inputs, max_new_tokens):
        room = [(0, 0), (0, max_new_tokens)]
        mask = ops.pad(inputs["attention_mask"], room, constant_values=1)
        return {"ids": ops.pad(inputs["input_ids"], room), "mask": mask}

    def step(self, token_ids, index, state):
        ids, mask = state["ids"], state["mask"]  # (batch, length)
        columns = np.arange(ids.shape[1])
        here = index + ids.shape[1] - STEPS - 1  # the prompt's last column, at first
        ids = ops.where((columns == here)[None], token_ids[:, None], ids)
        positions = ops.maximum(ops.cumsum(mask, axis=1) - 1, 0)
        x = ops.take(self.weights["wte.weight"], ids, axis=0)
        x = x + ops.take(self.weights["wpe.weight"], positions, axis=0)
        see = (columns[None] <= columns[:, None])[None] & ops.cast(mask, "bool")[:, None]
        for i in range(self.layers):
            x = x + self.attend(f"h.{i}.attn.", self.norm(f"h.{i}.ln_1.", x), see)
            inner = self.dense(f"h.{i}.mlp.c_fc.", self.norm(f"h.{i}.ln_2.", x))
            x = x + self.dense(f"h.{i}.mlp.c_proj.", ops.gelu(inner, approximate=True))
        last = ops.take(self.norm("ln_f.", x), here, axis=1)
        return ops.matmul(last, self.weights["wte.weight"].T), {"ids": ids, "mask": mask}

    def dense(self, name, x):
        return ops.matmul(x, self.weights[name + "weight"]) + self.weights[name + "bias"]

    def norm(self, name, x):
        x = x - ops.mean(x, axis=-1, keepdims=True)
        x = x / ops.sqrt(ops.mean(x * x, axis=-1, keepdims=True) + 1e-5)
        return x * self.weights[name + "weight"] + self.weights[name + "bias"]

    def attend(self, name, x, see):
        length, width = x.shape[1:]
        split = [
            ops.transpose(ops.reshape(part, (-1, length, self.heads, width // self.heads)), axes)
            for part, axes in zip(
                ops.split(self.dense(name + "c_attn.", x), 3, axis=-1),
                [(0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)],
            )
        ]
        scores = ops.matmul(split[0], split[1]) / np.sqrt(width // self.heads)
        scores = ops.where(see[:, None], scores, -1e9)
        mixed = ops.transpose(ops.matmul(ops.softmax(scores), split[2]), (0, 2, 1, 3))
        return self.dense(name + "c_proj.", ops.reshape(mixed, (-1, length, width)))


@pytest.mark.parametrize("case", ["greedy", "greedy_eos", "beam4", "beam4_eos"])
def test_gpt2(golden, case):
    folder = golden("models/gpt2_lm")
    settings = json.loads((folder / "golden.json").read_text())["cases"][case]["generate_kwargs"]
    arrays = {
        name.split("/")[-1]: array
        for name, array in load_file(folder / "golden.safetensors").items()
        if name.startswith(f"{case}/")
    }
    beams = settings["num_beams"]
    prompt = arrays["input_ids"].astype("int32")
    assert settings["max_new_tokens"] == STEPS
    got = decoding.generate(
        GPT2(folder),
        {"input_ids": prompt, "attention_mask": arrays["attention_mask"].astype("int32")},
        decoding.Beam(beams, num_return=beams) if beams > 1 else decoding.Greedy(),
        start_ids=prompt[:, -1],
        max_new_tokens=STEPS,
        end_id=settings["eos_token_id"],
        pad_id=settings["pad_token_id"],
        return_scores=True,
        jit=False,
    )
    expected = arrays["sequences"][:, prompt.shape[1] :]
    width = expected.shape[1]  # theirs ends with the longest
    ids = got.token_ids.reshape(-1, STEPS)
    np.testing.assert_array_equal(ids[:, :width], expected)
    assert np.all(ids[:, width:] == settings["pad_token_id"])
    if beams > 1:
        np.testing.assert_allclose(got.scores.reshape(-1), arrays["sequences_scores"], atol=1e-3)
