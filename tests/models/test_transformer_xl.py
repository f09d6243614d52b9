"""Transformer-XL: the numbers of others, and that segments are one text."""

import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

from kerasattn import decoding
from kerasattn.models import TransformerXL
from kerasattn.testing import check_model

SIZES = dict(
    vocabulary_size=13,
    num_layers=2,
    num_heads=2,
    head_dim=3,
    hidden_dim=8,
    intermediate_dim=12,
    cutoffs=(5, 9),
    memory_length=4,
    initializer_range=0.3,
)
NARROW = dict(embedding_dim=6, embedding_divisor=2)


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def test_golden(agrees_with_others):
    agrees_with_others(TransformerXL, "models/transfo_xl_b", tolerance=2e-4)


@pytest.mark.slow
def test_model(one_token_at_a_time):
    check_model(
        TransformerXL,
        dict(SIZES, **NARROW, num_layers=1, pad_id=0, same_length=True, max_distance=3, norm="pre"),
        causal=("hidden", "lm_logits"),
        decoding=one_token_at_a_time,
        skip={"save": "XLNet has it, of the same parts", "saved_model": "likewise"},
    )


def test_segments_are_one_text():
    model = TransformerXL(**SIZES, same_length=True)
    token_ids = np.array([[5, 6, 7, 8, 9, 10, 11]])
    whole = array(model(token_ids)["lm_logits"])
    first = model(token_ids[:, :3])
    second = model({"token_ids": token_ids[:, 3:], "memories": array(first["memories"])})
    found = np.concatenate([array(x["lm_logits"]) for x in (first, second)], axis=1)
    np.testing.assert_allclose(found, whole, atol=1e-5)
    alone = array(model(token_ids[:, 3:])["lm_logits"])
    assert np.abs(alone - whole[:, 3:]).max() > 1e-3


def test_a_batch_writes_what_each_writes_alone():
    sizes = {**SIZES, "num_layers": 1, "memory_length": 16}
    model = TransformerXL(**sizes, pad_id=0, start_id=3, end_id=1)
    prompts = [[5, 6, 7, 8], [9], [], [4, 2]]
    padded = np.zeros((4, 6), "int32")
    for row, prompt in enumerate(prompts):
        padded[row, : len(prompt)] = prompt
    options = dict(strategy=decoding.Beam(3), max_new_tokens=5, jit=False)
    together = model.generate(padded, **options)
    for row, prompt in enumerate(prompts):  # four times, as many rows as before
        alone = model.generate(np.array([prompt] * 4, "int32"), **options)
        np.testing.assert_array_equal(alone, together[[row] * 4])
    # Alone, a prompt is padded too, to as many tokens as all: here it is not.
    written = model.generate(padded, **{**options, "strategy": decoding.Greedy()})
    for prompt, row in zip(prompts[:2], written, strict=False):
        row = row[: list(row).index(1) + 1] if 1 in row else row
        whole = array(model(np.array([[*prompt, *row[:-1]]]))["lm_logits"])[0, len(prompt) - 1 :]
        np.testing.assert_array_equal(row, whole.argmax(axis=-1))


@pytest.mark.parametrize(
    "settings",
    [
        dict(NARROW, tied_projections=[False, True, False]),
        dict(embedding_dim=6, shared_biases=True),
        dict(NARROW, tied_head=False, norm="pre"),
        dict(with_head=False),
    ],
    ids=lambda settings: ",".join(settings),
)
def test_versions_are_kept(settings, tmp_path):
    model = TransformerXL(**SIZES, **settings)
    outputs = model([[5, 6, 12]])
    if "lm_logits" in outputs:
        np.testing.assert_allclose(np.exp(array(outputs["lm_logits"])).sum(-1), 1, rtol=1e-5)
    model.save_pretrained(tmp_path)
    names = load_file(tmp_path / "model.safetensors").keys()
    assert ("crit.out_layers.0.weight" in names) == (not settings.get("tied_head", True))
    again = TransformerXL.from_pretrained(tmp_path)
    found = again([[5, 6, 12]])
    assert found.keys() == outputs.keys()
    for name, value in outputs.items():
        np.testing.assert_array_equal(array(found[name]), array(value))


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="needs a memory_length"):
        TransformerXL(**{**SIZES, "memory_length": 0}, same_length=True)
    with pytest.raises(ValueError, match="give a memory_length"):
        TransformerXL(**{**SIZES, "memory_length": 0}).generate([[5]])
