import base64
import json

import keras
import numpy as np
import pytest

from kerasattn.tokenizers import SentencePieceTokenizer, Tokenizer
from kerasattn.tokenizers.folding import Folding
from kerasattn.tokenizers.sentencepiece_model import BYTE, CONTROL, NORMAL, UNKNOWN, read_pieces

tf = pytest.importorskip("tensorflow", reason="tokenizers run in TensorFlow's graph")

TEXTS = ["the cat sat", "", "  today 今天 the\n mat ", "<s>the</s> [MASK]cat", "💩 é"]
# family: folder, ids of a text as the published tokenizers give them, segments of its pair
FAMILIES = {
    "t5": ("t5_v1_1", [6, 5, 4, 3, 10, 15, 11, 1, 8, 34, 1], [0] * 11),
    "xlnet": ("xlnet_lm", [16, 15, 14, 13, 20, 25, 21, 4, 18, 44, 4, 3], [0] * 8 + [1] * 3 + [2]),
    "albert": ("albert_2groups", [2, 11, 10, 9, 8, 15, 20, 16, 3, 13, 39, 3], [0] * 9 + [1] * 3),
    "llama": ("llama_gqa", [1, 262, 300, 314, 267, 1, 261, 296], [0] * 5 + [1] * 3),
}


def field(number, value):
    """One field of a protocol buffer: an int, or bytes of fewer than 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def tiny_model(pieces):
    """A serialized model of (piece, type); later pieces are worse."""
    model = b""
    for i, (piece, kind) in enumerate(pieces):
        score = b"\x15" + np.float32(-i).tobytes()
        model += field(1, field(1, piece.encode()) + score + field(3, kind))
    trainer = field(3, 2)  # byte pairs
    if any(kind == BYTE for _, kind in pieces):
        trainer += b"\x98\x02\x01"  # field 35: unknown characters are read as bytes
    return model + field(2, trainer) + field(3, field(3, 1))


LLAMA = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]


@pytest.mark.parametrize("family", FAMILIES)
def test_families(golden, family, tmp_path):
    name, ids, segments = FAMILIES[family]
    tokenizer = Tokenizer.from_pretrained(golden("models") / name)
    assert isinstance(tokenizer, SentencePieceTokenizer) and tokenizer.family == family
    inputs = tokenizer.encode_pair("the cat", "a dog")
    assert inputs["token_ids"].tolist() == [ids] and inputs["segment_ids"].tolist() == [segments]
    assert tokenizer.decode([ids], whole=True) == ["the cat a dog"]

    rows = tokenizer.rows(TEXTS)
    for text, row, spans in zip(TEXTS, rows, tokenizer.offsets(TEXTS)):
        assert len(row) == len(spans), text
        assert all(0 <= start < end <= len(text) for start, end in spans), (text, spans)
    strict = tokenizer.rows(TEXTS[3:4], allow_special=False)[0]
    assert not set(strict.tolist()) & (set(tokenizer.special_ids) - {tokenizer.unk_id})

    tokenizer.save(tmp_path)
    again = Tokenizer.from_pretrained(tmp_path)
    assert again.get_config() == tokenizer.get_config()
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(tokenizer)))
    again = keras.saving.deserialize_keras_object(config)
    np.testing.assert_array_equal(again.encode(TEXTS, 12), tokenizer.encode(TEXTS, 12))


def test_in_a_pipeline_and_in_a_saved_model(golden, tmp_path):
    tokenizer = Tokenizer.from_pretrained(golden("models") / "xlnet_lm")

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def encode(self, text):
            return tokenizer.encode_tensor(text, 12)

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def decode(self, ids):
            return tokenizer.detokenize(ids)

    expected = tokenizer.encode(TEXTS, max_length=12)
    module = Module()
    data = tf.data.Dataset.from_tensor_slices(TEXTS).batch(5).map(module.encode)
    np.testing.assert_array_equal(next(iter(data)), expected)
    tf.saved_model.save(module, str(tmp_path))
    module = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(module.encode(tf.constant(TEXTS)), expected)
    decoded = [text.decode() for text in module.decode(expected).numpy()]
    assert decoded == tokenizer.decode(expected)


def test_bytes_of_unknown_characters():
    pieces = [*LLAMA, *((f"<0x{i:02X}>", BYTE) for i in range(256))]
    pieces += [("\u2581", NORMAL), ("a", NORMAL), ("\u2581a", NORMAL)]
    tokenizer = SentencePieceTokenizer(tiny_model(pieces))
    assert tokenizer.tokenize("a é") == ["\u2581a", "\u2581", "<0xC3>", "<0xA9>"]
    assert tokenizer.offsets("a é") == [(0, 1), (1, 2), (2, 3), (2, 3)]
    assert tokenizer.decode(tokenizer.encode(["a é💩"])) == ["a é💩"]
    # CASES C61: what stands behind a NUL is read too.
    assert tokenizer.tokenize("a\x00a") == ["\u2581a", "<0x00>", "a"]
    assert tokenizer.offsets("a\x00a") == [(0, 1), (1, 2), (2, 3)]
    assert tokenizer.decode([[3 + 0xC3]]) == ["\ufffd"]
    assert tokenizer.encode("a", max_length=4).tolist() == [[2, 2, 1, 261]]  # on the left
    both = SentencePieceTokenizer(tiny_model(pieces), add_bos=False, add_eos=True)
    assert both.encode("a").tolist() == [[261, 2]]


def test_a_comma_behind_a_digit_is_a_token():
    pieces = [("<pad>", CONTROL), ("<unk>", UNKNOWN)]
    pieces += [(t, CONTROL) for t in ("[CLS]", "[SEP]", "[MASK]")]
    pieces += [(t, NORMAL) for t in ("9,", "\u25819,", "\u25819", "\u2581", "9", ",", "a")]
    tokenizer = SentencePieceTokenizer(tiny_model(pieces))
    assert tokenizer.tokenize("9,9, A") == ["\u25819", ",", "9", ",", "\u2581", "a"]
    assert tokenizer.offsets("9,9, A") == [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (5, 6)]


def test_folding():
    folding = Folding(accents=False, lowercase=True)
    texts = ["  É\t``Ab''\u3000c ", "ﬁe\u0301", "", " "]
    assert [folding.fold(t)[0] for t in texts] == ['e "ab" c', "fie", "", ""]
    assert folding.fold("  É ﬁ")[1] == [(2, 3), (3, 4), (4, 5), (4, 5)]
    in_graph = folding.fold_tensor(tf.constant(texts)).numpy()
    assert [t.decode() for t in in_graph] == [folding.fold(t)[0] for t in texts]


def test_bad_models(tmp_path, golden):
    good = tiny_model([*LLAMA, ("a", NORMAL)])
    assert [piece for piece, _ in read_pieces(good)] == ["<unk>", "<s>", "</s>", "a"]
    for model in (b"", b"\x00" * 9, b"hello", b"\xff" * 50, good[:-1], good[:7], b"\x0a\xff\x7f"):
        (tmp_path / "spiece.model").write_bytes(model)
        with pytest.raises(ValueError, match=r"This is no (whole )?SentencePiece model"):
            Tokenizer.from_pretrained(tmp_path)
    broken = tiny_model([*LLAMA, ("<0x00>", BYTE)]).replace(b"\x98\x02\x01", b"\x98\x02\x00")
    with pytest.raises(ValueError, match=r"can't be used: .*byte piece"):
        SentencePieceTokenizer(broken).encode("a")
    with pytest.raises(ValueError, match="special tokens of none of"):
        SentencePieceTokenizer(tiny_model([("<unk>", UNKNOWN), ("a", NORMAL)]))
    with pytest.raises(ValueError, match=r"4 pieces lacks <cls> <sep>"):
        SentencePieceTokenizer(good, family="xlnet")
    with pytest.raises(ValueError, match="family must be one of"):
        SentencePieceTokenizer(base64.b64encode(good).decode(), family="bert")
    with pytest.raises(ValueError, match="There is no SentencePiece model"):
        SentencePieceTokenizer.load(tmp_path / "missing.model")
