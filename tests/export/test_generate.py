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
for rows in json.loads(sys.argv[2]):
    found = loaded.generate(tf.constant(rows, tf.string))
    texts = [text.decode() for text in found["text"].numpy().tolist()]
    print("found", json.dumps([texts, found["scores"].numpy().tolist()]))
assert "kerasattn" not in sys.modules
"""


@pytest.fixture(autouse=True)
def _loops(eager_loops):
    """Of the models that exported ones are compared with."""


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture
def exported(tokenizer, tmp_path, monkeypatch):
    """Exports a model and returns `generate` as it was traced, for any batch, without its files.

    Writing and loading them is TensorFlow's work, tried in the first test.
    """
    modules = []
    monkeypatch.setattr(tf.saved_model, "save", lambda module, *_: modules.append(module))

    def export(model, strategy, **options):
        export_generate(model, tokenizer, strategy, tmp_path, 8, 5, **options)
        return modules[-1].generate

    return export


def texts_of(found):
    return [text.decode() for text in found["text"].numpy().reshape(-1).tolist()]


@pytest.mark.slow
def test_a_language_model_goes_on_behind_the_text_in_another_process(tokenizer, tmp_path):
    model = GPT2(len(tokenizer.vocabulary) + 3, **SIZES, pad_id=0, max_length=13)
    shake(model, size=1.0)
    export_generate(model, tokenizer, decoding.Greedy(), tmp_path, 8, 5, stop=[[6, 7]])
    batches = [TEXTS, TEXTS[1:2], []]
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path), json.dumps(batches)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("found ")]
    all_texts, one, none = (json.loads(line.removeprefix("found ")) for line in lines)

    prompts = tokenizer.encode(TEXTS, max_length=8)
    prompts[prompts == tokenizer.end_id] = 0
    expected = model.generate(
        prompts,
        max_new_tokens=5,
        end_id=tokenizer.end_id,
        banned=range(len(tokenizer.vocabulary), model.vocabulary_size),
        stop=[[6, 7]],
        return_scores=True,
    )
    texts = tokenizer.decode(expected.token_ids)
    assert len(set(texts)) > 1
    assert all_texts[0] == texts and one[0] == texts[1:2] and none[0] == []
    np.testing.assert_allclose(all_texts[1], expected.scores, atol=1e-4)


def test_an_encoder_writes(tokenizer, exported):
    model = RoFormer(len(tokenizer.vocabulary), **SIZES, application="unilm")
    shake(model, size=1.0)
    strategy, options = decoding.Beam(2, num_return=2), dict(processors=[decoding.NoRepeatNgram(2)])
    found = exported(model, strategy, **options)(tf.constant(TEXTS))
    prompts = tokenizer.encode(TEXTS, max_length=8)
    options |= dict(end_id=tokenizer.end_id, return_scores=True)
    expected = model.generate(prompts, strategy, 5, **options)
    texts = tokenizer.decode(expected.token_ids.reshape(-1, 5))
    assert texts_of(found) == texts and len(set(texts)) > 1
    np.testing.assert_allclose(found["scores"], expected.scores, atol=1e-4)


@pytest.mark.parametrize(
    ("model_class", "sizes"),
    [
        (T5, dict(SIZES, head_dim=4)),
        (Luong, dict(num_layers=1, hidden_dim=8, embedding_dim=8, attention="local-p")),
        (ConvS2S, dict(num_layers=1, hidden_dim=8, max_length=8)),
    ],
)
def test_an_encoder_decoder_writes(model_class, sizes, tokenizer, exported):
    model = model_class(len(tokenizer.vocabulary), **sizes, end_id=3)
    shake(model, size=1.0)
    found = exported(model, decoding.Greedy())(tf.constant(TEXTS))
    prompts = tokenizer.encode(TEXTS, max_length=8)
    expected = model.generate(prompts, max_new_tokens=5, return_scores=True)
    assert texts_of(found) == tokenizer.decode(expected.token_ids)
    np.testing.assert_allclose(found["scores"], expected.scores, atol=1e-4)


def test_draws_by_a_seed(tokenizer, exported):
    # A text without a token starts from the first of several ends, for want of a start.
    model = GPT2(len(tokenizer.vocabulary), **SIZES, pad_id=0, end_id=[3, 1], max_length=13)
    generate = exported(model, decoding.Sampling(2.0, top_p=0.9))
    draw = lambda texts, seed: texts_of(generate(tf.constant(texts), tf.constant(seed)))
    once = draw(TEXTS, 1)
    assert once == draw(TEXTS, 1) != draw(TEXTS, 2)
    assert draw(TEXTS[:2], 1) == once[:2]  # a row is the same in any batch
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
