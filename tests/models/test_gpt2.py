"""GPT-2: the numbers of others, and what its writing promises."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from keras import ops
from safetensors.numpy import load_file

import kerasattn
from kerasattn import decoding
from kerasattn.models import GPT2
from kerasattn.testing import check_model

SIZES = dict(vocabulary_size=13, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)


@pytest.mark.parametrize("name", ["gpt2_lm", "gpt2_lm_orig_names"])
def test_golden(agrees_with_others, name):
    cases = ("greedy", "greedy_eos", "beam4", "beam4_eos") if name == "gpt2_lm" else ()
    agrees_with_others(GPT2, f"models/{name}", "models/gpt2_lm", cases=cases)


def test_tensorflow_checkpoint(tmp_path, write_checkpoint):
    """As OpenAI has them: hparams.json, and dense weights with an axis of 1 before."""
    model = GPT2(13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=32, max_length=9)
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    model.save_pretrained(tmp_path)
    arrays = {}
    for name, array in load_file(tmp_path / "model.safetensors").items():
        name = name.replace("transformer.h.", "model/h").replace("transformer.", "model/")
        name = name.replace(".", "/")
        if re.search("attn|mlp", name):
            name = name.replace("weight", "w").replace("bias", "b")
            array = array[None] if name.endswith("w") else array
        name = re.sub("(wte|wpe)/weight", r"\1", name)
        arrays[re.sub("weight$", "g", re.sub("bias$", "b", name))] = array
    assert {"model/wte", "model/h1/ln_2/g", "model/ln_f/b", "model/h0/mlp/c_fc/b"} < set(arrays)
    assert arrays["model/h1/attn/c_attn/w"].shape == (1, 8, 24)
    sizes = dict(n_vocab=13, n_ctx=9, n_embd=8, n_head=2, n_layer=2)
    folder = write_checkpoint("hparams.json", sizes, arrays)
    found = kerasattn.from_pretrained(folder)
    assert type(found) is GPT2 and found.start_id == found.end_id == 12
    for variable, twin in zip(model.weights, found.weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), twin.numpy(), err_msg=twin.path)
    (folder / "hparams.json").write_text('{"n_layer": 2}')
    with pytest.raises(ValueError, match="does not say n_ctx, n_embd, n_head, n_vocab"):
        GPT2.from_pretrained(folder)


def test_model(one_token_at_a_time):
    check_model(
        GPT2,
        dict(SIZES, max_length=9, pad_id=0, tied_head=False, scale_attention_by_layer=True),
        causal=("hidden", "lm_logits"),
        decoding=one_token_at_a_time,
        untrained={"*/self_attention/key/bias": "softmax does not see it"},
        errors=[({"token_ids": np.ones((1, 10), "int32")}, "at most 9 tokens")],
    )


def test_attention_is_scaled_by_layer():
    model = GPT2(**{**SIZES, "num_layers": 2}, scale_attention_by_layer=True)
    scales = [model.get_layer(f"block_{i}").self_attention.scale for i in range(2)]
    np.testing.assert_allclose(scales, [4**-0.5, 4**-0.5 / 2])


def test_a_batch_of_prompts_gives_what_each_gives_alone():
    """Wherever padding stands, also to processors; prompts of near lengths share a trace."""
    model = GPT2(**SIZES, pad_id=0, start_id=3, end_id=1, initializer_range=1.0)
    prompts = [[5, 6, 7, 8], [9], [], [4, 2]]
    left, right = np.zeros((2, 4, 9), "int32")
    for row, prompt in enumerate(prompts):
        left[row, 9 - len(prompt) :] = right[row, : len(prompt)] = prompt
    options = dict(
        strategy=decoding.Sampling(top_k=5),
        max_new_tokens=6,
        processors=[decoding.NoRepeatNgram(1)],
        jit=False,
    )
    together = model.generate(right, seed=[1, 2, 3, 4], **options)
    assert together.shape == (4, 6)
    np.testing.assert_array_equal(model.generate(left, seed=[1, 2, 3, 4], **options), together)
    for row, prompt in enumerate(prompts):  # four times, as many rows as before
        alone = model.generate(np.array([prompt] * 4, "int32"), seed=[row + 1] * 4, **options)
        np.testing.assert_array_equal(alone, together[[row] * 4])
        written = [*together[row]]
        if 1 in written:
            end = written.index(1) + 1
            assert set(written[end:]) <= {0}
            written = written[:end]
        assert len(set(written)) == len(written) and not set(written) & {*(prompt or [3])}
    loops = vars(model)["_step_decoder"]._compiled_loops
    assert [loop.traces for loop in loops.values()] == [2]  # the other of one token alone


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory as Linux tells it")
def test_many_calls_neither_trace_nor_leak():
    model = GPT2(**SIZES, max_length=40)
    random = np.random.default_rng(0)
    run = lambda batch, length: model.generate(
        random.integers(1, 13, (batch, length)), decoding.Sampling(), 3, jit=False
    )
    for length in (9, 17):
        for batch in (3, 4):
            run(batch, length)

    def megabytes():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    before = megabytes()
    for _ in range(80):
        run(int(random.integers(3, 5)), int(random.integers(2, 18)))
    assert megabytes() - before < 20
    loops = vars(model)["_step_decoder"]._compiled_loops
    assert [loop.traces for loop in loops.values()] == [2]  # one for each bucket of lengths


def test_contrastive_search_is_that_of_the_paper():
    """Every candidate run with the whole text before it, without a cache."""
    model = GPT2(**SIZES, pad_id=0, initializer_range=0.7, max_length=7)
    got = model.generate(
        [[0, 5, 6], [1, 2, 3]], decoding.Contrastive(0.6, 3), 3, banned=[0], jit=False
    )
    for row, ids in enumerate(([5, 6], [1, 2, 3])):
        for chosen in got[row]:
            logits = ops.convert_to_numpy(model([ids])["lm_logits"])[0, -1].astype("float64")
            logits[0] = -np.inf
            p = np.exp(logits) / np.exp(logits).sum()
            best = np.argsort(-p)[:3]
            hidden = ops.convert_to_numpy(model([[*ids, token] for token in best])["hidden"])
            hidden = hidden / np.linalg.norm(hidden, axis=-1, keepdims=True)
            likeness = (hidden[:, :-1] @ hidden[:, -1, :, None]).max((1, 2))
            assert chosen == best[np.argmax(0.4 * p[best] - 0.6 * likeness)]
            ids.append(int(chosen))
    with pytest.raises(ValueError, match=r"7 positions.*take 8"):
        model.generate([[1, 2, 3]], decoding.Contrastive(), 5)


def test_errors_say_what_to_do():
    model = GPT2(**SIZES, max_length=9)
    with pytest.raises(ValueError, match=r"9 positions.*take 10"):
        model.generate([[1, 2, 3]], max_new_tokens=8)
    with pytest.raises(ValueError, match="from 0 to 12, got 13"):
        model.generate([[13]])
    with pytest.raises(ValueError, match="no start_id"):
        model.generate(np.zeros((1, 0), "int32"))
    with pytest.raises(ValueError, match="with_head"):
        GPT2(**SIZES, with_head=False).generate([[1]])


def test_the_loss_is_of_next_real_tokens():
    model = GPT2(**SIZES, pad_id=0)
    left, alone = np.array([[0, 0, 5, 6, 7]], "int32"), np.array([[5, 6, 7]], "int32")
    loss = [float(model.compute_loss(x, None, model(x))) for x in (left, alone)]
    labels = np.where(left == 0, -100, left)
    labels[0, 2] = -100
    loss.append(float(model.compute_loss(left, labels, model(left))))
    np.testing.assert_allclose(loss, loss[0], rtol=1e-5)
