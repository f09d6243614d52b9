"""SavedModels that write, against the models themselves, also in a process without kerasattn."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels need TensorFlow", allow_module_level=True)

import tensorflow as tf

from kerasattn import decoding
from kerasattn.export import export_generate
from kerasattn.models import GPT2, T5, ConvS2S, Luong, RoFormer
from kerasattn.testing.checks import shake
from kerasattn.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer

TEXTS = ["how are you", "you", "what is it do you", ""]
WORDS = ["how", "are", "you", "what", "is", "it", "##s", "do", "?", "well"]
SIZES = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
ELSEWHERE = """
import json, sys
import tensorflow as tf, tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
found = loaded.generate(tf.constant(json.loads(sys.argv[2])))
assert "kerasattn" not in sys.modules
texts = [text.decode() for text in found["text"].numpy().reshape(-1).tolist()]
print(json.dumps([texts, found["scores"].numpy().reshape(4, -1).tolist()]))
"""


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


def saved(model, tokenizer, strategy, folder, **options):
    export_generate(model, tokenizer, strategy, folder, 8, 5, **options)
    return tf.saved_model.load(str(folder))


def texts_of(found):
    return [text.decode() for text in found["text"].numpy().reshape(-1).tolist()]


@pytest.mark.slow
def test_an_encoder_that_writes_in_another_process(tokenizer, tmp_path):
    model = RoFormer(len(tokenizer.vocabulary), **SIZES, application="unilm")
    shake(model, size=1.0)
    prompts = tokenizer.encode(TEXTS, max_length=8)
    options = dict(end_id=tokenizer.end_id, return_scores=True, jit=False)
    processors = [decoding.NoRepeatNgram(2)]
    strategy, folder = decoding.Beam(3, num_return=2), str(tmp_path)
    export_generate(model, tokenizer, strategy, folder, 8, 5, processors=processors)
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, folder, json.dumps(TEXTS)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    texts, scores = json.loads(run.stdout.splitlines()[-1])
    got = model.generate(prompts, strategy, 5, processors=processors, **options)
    assert texts == tokenizer.decode(got.token_ids.reshape(-1, 5)) and len(set(texts)) > 1
    np.testing.assert_allclose(scores, got.scores.reshape(4, -1), atol=1e-4)


def test_a_language_model_goes_on_behind_the_text(tokenizer, tmp_path):
    model = GPT2(len(tokenizer.vocabulary) + 3, **SIZES, pad_id=0, max_length=13)
    shake(model, size=1.0)
    loaded = saved(model, tokenizer, decoding.Greedy(), tmp_path / "saved", stop=[[6, 7]])
    prompts = tokenizer.encode(TEXTS, max_length=8)
    prompts[prompts == tokenizer.end_id] = 0
    unknown = range(len(tokenizer.vocabulary), model.vocabulary_size)
    ids = model.generate(
        prompts,
        max_new_tokens=5,
        end_id=tokenizer.end_id,
        banned=unknown,
        stop=[[6, 7]],
        jit=False,
    )
    expected = tokenizer.decode(ids)
    assert len(set(expected)) > 1
    for rows in (slice(0, 4), slice(1, 2), slice(0, 0)):
        assert texts_of(loaded.generate(tf.constant(TEXTS[rows], tf.string))) == expected[rows]


@pytest.mark.parametrize(
    ("model_class", "sizes"),
    [
        (T5, dict(SIZES, head_dim=4)),
        (Luong, dict(num_layers=1, hidden_dim=8, embedding_dim=8, attention="local-p")),
        (ConvS2S, dict(num_layers=1, hidden_dim=8, max_length=8)),
    ],
)
def test_an_encoder_decoder_writes(model_class, sizes, tokenizer, tmp_path):
    model = model_class(len(tokenizer.vocabulary), **sizes, end_id=3)
    shake(model, size=1.0)
    strategy = decoding.Beam(2)
    loaded = saved(model, tokenizer, strategy, tmp_path / "saved")
    got = model.generate(
        tokenizer.encode(TEXTS, max_length=8), strategy, 5, return_scores=True, jit=False
    )
    found = loaded.generate(tf.constant(TEXTS))
    assert texts_of(found) == tokenizer.decode(got.token_ids)
    np.testing.assert_allclose(found["scores"], got.scores, atol=1e-4)


def test_draws_by_a_seed(tokenizer, tmp_path):
    model = GPT2(len(tokenizer.vocabulary), **SIZES, pad_id=0, max_length=13)
    loaded = saved(model, tokenizer, decoding.Sampling(2.0, top_p=0.9), tmp_path)
    draw = lambda texts, seed: texts_of(loaded.generate(tf.constant(texts), tf.constant(seed)))
    assert draw(TEXTS, 1) == draw(TEXTS, 1) != draw(TEXTS, 2)
    assert draw(TEXTS[:2], 1) == draw(TEXTS, 1)[:2]  # a row is the same in any batch
    same = draw(["you"] * 6, 3)
    assert len(set(same)) > 1  # but rows of one text are not all alike


def test_what_cannot_be_exported(tokenizer, tmp_path):
    model = GPT2(len(tokenizer.vocabulary), **SIZES, pad_id=0, max_length=9)
    with pytest.raises(ValueError, match="strategy takes"):
        export_generate(model, tokenizer, "greedy", tmp_path)
    with pytest.raises(ValueError, match="9 positions"):
        export_generate(model, tokenizer, None, tmp_path, 8, 3)
    with pytest.raises(ValueError, match="max_new_tokens"):
        export_generate(model, tokenizer, None, tmp_path, 8, 0)

    class CallsPython:
        pad_id, end_id, vocabulary = 0, 3, tokenizer.vocabulary

        def encode_tensor(self, text, max_length):
            shape = lambda text: np.ones((len(text), max_length), "int32")
            ids = tf.numpy_function(shape, [text], tf.int32)
            return tf.ensure_shape(ids, (None, max_length))

        def detokenize(self, token_ids):
            return tf.strings.reduce_join(tf.strings.as_string(token_ids), axis=1)

    with pytest.raises(ValueError, match="calls Python"):
        export_generate(model, CallsPython(), None, tmp_path, 4, 3)
