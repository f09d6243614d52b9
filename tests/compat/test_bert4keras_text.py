"""bert4keras' tokenizer against what bert4keras itself gave (../shared/golden/bert4keras)."""

import json
import re

import numpy as np
import pytest

from kerasattn.compat.bert4keras import (
    SpTokenizer,
    Tokenizer,
    load_vocab,
    sequence_padding,
    text_segmentate,
    truncate_sequences,
)
from kerasattn.compat.bert4keras.text import open as open_text
from kerasattn.compat.bert4keras.tokenizers import save_vocab

NAMES = ["tokenizer_uncased", "tokenizer_cased"]


@pytest.mark.parametrize("name", NAMES)
def test_published_results(golden, name):
    folder = golden("bert4keras") / "text" / name
    data = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    make = lambda **options: Tokenizer(
        str(folder / "vocab.txt"), do_lower_case=data["do_lower_case"], **options
    )
    tokenizer, maxlen = make(), data["maxlen"]
    for item in data["texts"]:
        text, tokens = item["text"], tokenizer.tokenize(item["text"])
        assert tokens == item["tokens"], text
        assert tokenizer.encode(text) == (item["ids"], item["segments"])
        cut = tokenizer.encode(text, maxlen=maxlen)
        assert cut == (item["ids_maxlen"], item["segments_maxlen"])
        left = tokenizer.encode(text, maxlen=maxlen, truncate_from="left")
        assert left[0] == item["ids_maxlen_left"]
        assert tokenizer.tokenize(text, maxlen=maxlen) == item["tokens_maxlen"]
        assert tokenizer.decode(item["ids"]) == item["decoded"]
        assert tokenizer.decode(None, tokens=item["tokens"]) == item["decoded_from_tokens"]
        assert tokenizer.rematch(text, tokens) == item["rematch"], text
    for item in data["pairs"]:
        options = {k: item[k] for k in ("pattern", "truncate_from", "maxlen")}
        ids, segments = tokenizer.encode(item["first"], item["second"], **options)
        assert (ids, segments) == (item["ids"], item["segments"]), item
    other = make(**data["no_start"]["constructor"])
    for item in data["no_start"]["texts"]:
        assert other.tokenize(item["text"]) == item["tokens"]
        assert other.encode(item["text"])[0] == item["ids"]
        assert other.encode(item["text"], maxlen=maxlen)[0] == item["ids_maxlen"]
        assert other.decode(item["ids"]) == item["decoded"]
    words = re.compile("[\u4e00-\u9fff]{1,2}|[^\u4e00-\u9fff]+").findall
    other = make(pre_tokenize=words)
    for item in data["pre_tokenize"]["texts"]:
        assert other.tokenize(item["text"]) == item["tokens"]
        assert other.encode(item["text"])[0] == item["ids"]
    for item in data["word_maxlen_6"]:
        assert make(word_maxlen=6).tokenize(item["text"]) == item["tokens"]


@pytest.mark.parametrize("name", NAMES)
def test_vocabulary_files(golden, name):
    folder = golden("bert4keras") / "text" / name
    data = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    path, expected = str(folder / "vocab.txt"), data["load_vocab"]
    assert load_vocab(path) == expected["full"]
    plain = expected["simplified"]
    assert load_vocab(path, simplified=True) == (plain["token_dict"], plain["keep_tokens"])
    first = expected["simplified_startswith"]
    token_dict, kept = load_vocab(path, simplified=True, startswith=first["startswith"])
    assert (token_dict, kept) == (first["token_dict"], first["keep_tokens"])
    tokenizer = Tokenizer(token_dict, do_lower_case=data["do_lower_case"])
    for item in json.loads((folder / "golden_simplified_vocab.json").read_text(encoding="utf-8")):
        assert tokenizer.encode(item["text"])[0] == item["ids"]
    with pytest.raises(ValueError, match="lacks nothing of startswith"):
        load_vocab(path, simplified=True, startswith=["nothing"])


def test_snippets(golden):
    path = golden("bert4keras") / "text" / "snippets" / "golden.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    for item in data["truncate_sequences"]:
        out = truncate_sequences(item["maxlen"], item["indices"], *item["sequences"])
        assert out == item["out"]
    for item in data["text_segmentate"]:
        options = {k: item[k] for k in ("maxlen", "seps", "strips")}
        assert text_segmentate(item["text"], **options) == item["out"]
    for item in data["sequence_padding"]:
        inputs = [np.array(x) for x in item["inputs"]] if item["as_arrays"] else item["inputs"]
        out = sequence_padding(inputs, **item["kwargs"])
        assert out.tolist() == item["out"] and out.dtype.kind == item["dtype"]


def test_padding_says_what_it_takes():
    with pytest.raises(ValueError, match="mode must be"):
        sequence_padding([[1]], mode="both")
    with pytest.raises(ValueError, match="at least one sequence"):
        sequence_padding([])


def test_vocabularies_are_written_and_read(tmp_path):
    token_dict = {"[PAD]": 0, "[UNK]": 1, "好": 2}
    save_vocab(tmp_path / "vocab.txt", token_dict)
    assert load_vocab(str(tmp_path / "vocab.txt")) == token_dict
    with open_text(tmp_path / "vocab.txt") as file:
        assert file.read().split() == list(token_dict)


def test_truncation_takes_from_the_longest():
    a, b = [1, 2, 3, 4], [5, 6]
    assert truncate_sequences(4, -1, a, b, []) == [[1, 2], [5, 6]]
    with pytest.raises(ValueError, match="maxlen=0 is too short"):
        Tokenizer({"[CLS]": 0, "[SEP]": 1}).encode(["[CLS]", "[SEP]"], maxlen=0)
    with pytest.raises(ValueError, match="maxlen=1 is too short"):
        truncate_sequences(1, 3, [1, 2, 3])


def test_kinds_of_tokens():
    assert Tokenizer.stem("##ing") == "ing" and Tokenizer.stem("ing") == "ing"
    assert Tokenizer._is_cjk_character("好") and not Tokenizer._is_cjk_character("a")
    assert Tokenizer._is_punctuation("，") and not Tokenizer._is_punctuation("a")
    assert Tokenizer._is_redundant("##好") and not Tokenizer._is_redundant("好")


def test_a_vocabulary_without_unknown_tokens():
    tokenizer = Tokenizer({"[PAD]": 0, "a": 1}, token_start=None, token_end=None)
    assert tokenizer.encode("a")[0] == [1]
    with pytest.raises(ValueError, match=r"neither 'b' nor \[UNK\]"):
        tokenizer.encode("a b")
    tokenizer._token_unk_id = 0
    assert tokenizer.encode("a b")[0] == [1, 0]


def test_sentencepiece(golden):
    pytest.importorskip("tensorflow_text", reason="SentencePiece runs in TensorFlow")
    folder = golden("tokenizers") / "spm_t5"
    path = str(folder / "spiece.model")
    tokenizer = SpTokenizer(path, token_start=None, token_end="</s>")
    plain = SpTokenizer(path, token_start=None, token_end=None)
    assert (tokenizer._token_pad_id, tokenizer._token_end_id, tokenizer._token_unk_id) == (0, 1, 2)
    items = json.loads((folder / "golden_easy.json").read_text(encoding="utf-8"))["items"]
    texts = [item for item in items if "sp_pieces" in item]  # of the model itself
    assert len(texts) > 20
    for item in texts:
        assert plain.tokenize(item["text"]) == item["sp_pieces"], item["text"]
        assert plain.encode(item["text"])[0] == item["sp_ids"]
        ids, segments = tokenizer.encode(item["text"])
        assert ids == [*item["sp_ids"], 1] and segments == [0] * len(ids)
        assert tokenizer.decode([*ids, 10**6]) == item["sp_decoded"]
    text = texts[0]["text"]
    assert tokenizer.encode(text, maxlen=3)[0] == [*texts[0]["sp_ids"][:2], 1]
    words = SpTokenizer(path, token_start=None, token_end=None, pre_tokenize=str.split)
    assert words.tokenize(text) == [t for word in text.split() for t in plain.tokenize(word)]
    end = tokenizer.id_to_token(1)
    other = SpTokenizer(path, None, None, token_translate={tokenizer.id_to_token(5): end})
    assert other.decode(None, [end, tokenizer.id_to_token(6)]) == tokenizer.decode([5, 6])
    with pytest.raises(NotImplementedError, match="has offsets"):
        tokenizer.rematch(text, tokenizer.tokenize(text))
