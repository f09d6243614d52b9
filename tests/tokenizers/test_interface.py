"""What is the same for all tokenizers: pairs, cutting, padding, offsets, strangers' text."""

import json

import keras
import numpy as np
import pytest

from kerasattn.tokenizers import (
    SPECIAL_TOKENS,
    BytePairTokenizer,
    CharacterTokenizer,
    HostTokenizer,
    RoFormerTokenizer,
    Tokenizer,
    WordPieceTokenizer,
    from_pretrained,
)
from kerasattn.tokenizers.layout import keep_lengths

tf = pytest.importorskip("tensorflow", reason="tokenizers run in TensorFlow's graph")

TEXTS = ["the cat sat", "", "a dog, a [MASK]!", "今天天气好"]
WORDS = ["the", "cat", "sat", "a", "dog", ",", "!", "[", "]", "mask", *"今天气好", "天气", "##s"]


def wordpiece(**options):
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS], **options)


def byte_pairs(**options):
    pytest.importorskip("tokenizers", reason="an extra that is not installed")
    from tokenizers.pre_tokenizers import ByteLevel

    names = ["<s>", "<pad>", "</s>", "<unk>", *sorted(ByteLevel.alphabet()), "th", "the", "<mask>"]
    vocabulary = {name: i for i, name in enumerate(names)}
    return BytePairTokenizer.from_files(vocabulary, [("t", "h"), ("th", "e")], **options)


def roformer(**options):
    pytest.importorskip("jieba", reason="an extra that is not installed")
    return RoFormerTokenizer([*SPECIAL_TOKENS, *WORDS], **options)


def characters():
    return CharacterTokenizer.build(TEXTS)


ALL = pytest.mark.parametrize("make", [wordpiece, byte_pairs, roformer, characters])


@ALL
def test_one_interface(make, tmp_path):
    tokenizer = make()
    rows = tokenizer.encode_ragged(TEXTS)
    padded = tokenizer.encode(TEXTS)
    assert padded.shape == (4, max(map(len, rows)))
    assert [row[row != tokenizer.pad_id].tolist() for row in padded] == [r.tolist() for r in rows]
    tokens, offsets = tokenizer.tokenize(TEXTS), tokenizer.offsets(TEXTS)
    assert [len(t) for t in tokens] == [len(o) for o in offsets] == [len(r) - 2 for r in rows]
    assert tokens[0] == tokenizer.tokenize(TEXTS[0])
    for text, spans in zip(TEXTS, offsets):
        assert all(0 <= start <= end <= len(text) for start, end in spans)
        assert spans == sorted(spans)
    np.testing.assert_array_equal(tokenizer(tf.constant(TEXTS), 9), tokenizer(TEXTS, 9))
    data = tf.data.Dataset.from_tensor_slices(TEXTS).batch(4).map(lambda t: tokenizer(t, 9))
    np.testing.assert_array_equal(next(iter(data)), tokenizer.encode(TEXTS, 9))
    names = tokenizer.tokenize(tf.constant(TEXTS)).to_list()
    assert [[t.decode() for t in row] for row in names] == tokens

    tokenizer.save(tmp_path)
    again = from_pretrained(tmp_path)
    assert type(again) is type(tokenizer) and again.get_config() == tokenizer.get_config()
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(tokenizer)))
    again = keras.saving.deserialize_keras_object(config)
    assert [r.tolist() for r in again.encode_ragged(TEXTS)] == [r.tolist() for r in rows]


@ALL
def test_pairs(make):
    tokenizer = make()
    first, second = TEXTS[:2] + TEXTS[3:], ["a dog", "the cat sat", "好"]
    inputs = tokenizer.encode_pair(first, second, max_length=10)
    in_graph = tokenizer.encode_pair_tensor(tf.constant(first), tf.constant(second), 10)
    for name, value in inputs.items():
        np.testing.assert_array_equal(in_graph[name], value, err_msg=name)
        assert value.shape == (3, 10)
    for i, row in enumerate(inputs["token_ids"]):
        ids = row[inputs["padding_mask"][i]].tolist()
        a, b = (tokenizer.rows([texts[i]])[0].tolist() for texts in (first, second))
        room = tokenizer.layout.room(10, True)
        while len(a) + len(b) > room:
            (a if len(a) > len(b) else b).pop()
        assert ids == tokenizer.layout.fill(a, b)
    tokens = tokenizer.tokenize("the cat", "a dog", special_tokens=True)
    assert len(tokenizer.offsets("the cat", "a dog", special_tokens=True)) == len(tokens)
    with pytest.raises(ValueError, match="as many second texts as first ones, got 1 and 2"):
        tokenizer.encode_pair(["a"], ["a", "b"])
    with pytest.raises(ValueError, match=r"at least \d, for the \d special tokens"):
        tokenizer.encode_pair("a", "a", max_length=2)


@ALL
def test_text_of_strangers(make):
    tokenizer = make()
    for text in ("[MASK]", "</s><mask>", "a[SEP]"):
        ids = tokenizer.encode(text, allow_special=False)[0]
        inside = set(ids[1:-1].tolist()) - {tokenizer.unk_id}
        assert not inside & set(tokenizer.special_ids), text
        spans = tokenizer.offsets(text, allow_special=False)
        assert len(spans) == len(ids) - 2
    hostile = ["\ud800", "\x00", "e" * 10_000, "💩💩💩", "\u202e\ufeff", "[MA\x00SK]"]
    assert tokenizer.encode(hostile).shape[0] == 6
    for text, spans in zip(hostile, tokenizer.offsets(hostile)):
        assert all(0 <= start <= end <= len(text) for start, end in spans)
    for bad, message in [([], "empty"), ([3], "int at 0"), (None, "a list of strings")]:
        for method in (tokenizer.encode, tokenizer.tokenize, tokenizer.offsets):
            with pytest.raises(ValueError, match=message):
                method(bad)


def test_the_longer_text_is_cut_first():
    for first in range(9):
        for second in range(9):
            for room in range(12):
                a, b = first, second
                while a + b > room:
                    a, b = (a - 1, b) if a > b else (a, b - 1)
                assert keep_lengths(first, second, room, min, max) == (a, b)


def test_padding_on_the_left():
    tokenizer = byte_pairs(padding_side="left")
    ids = tokenizer.encode(["the", "thea"])
    assert ids[0, 0] == tokenizer.pad_id and ids[0, -1] == tokenizer.eos_id
    inputs = tokenizer.encode_pair(["the", "a"], ["a", "athe"])
    in_graph = tokenizer.encode_pair_tensor(tf.constant(["the", "a"]), tf.constant(["a", "athe"]))
    for name, value in inputs.items():
        np.testing.assert_array_equal(in_graph[name], value, err_msg=name)
    assert inputs["padding_mask"].tolist()[0] == [False] + [True] * 6


def test_bytes_come_back_as_they_were():
    tokenizer = byte_pairs()
    texts = ["💩💩💩", "中文文本", "  two  spaces\t\n", "the\u3000é e\u0301", "\x00"]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts  # CASES C61
    ids = tokenizer.encode_pair("the", "a")["token_ids"]
    assert tokenizer.decode(ids) == ["the"] and tokenizer.decode(ids, whole=True) == ["thea"]
    assert tokenizer.decode(ids, False, True) == ["<s>the</s></s>a</s>"]
    strict = byte_pairs(allow_special=False)
    assert strict.decode(strict.encode(["</s><mask>"])) == ["</s><mask>"]


def test_spacing_and_cutting_of_word_pieces():
    tokenizer = wordpiece()
    ids = tokenizer.encode("the cats, a dog!")
    assert tokenizer.decode(ids, spacing="hugging_face") == ["the cats, a dog!"]
    assert tokenizer.tokenize("cats") == ["cat", "##s"]
    assert tokenizer.offsets(" Cats\u200b Càt") == [(1, 4), (4, 5), (7, 10)]
    long = "the " + "s" * 101 + " cat"
    assert tokenizer.tokenize(long) == ["the", "[UNK]", "cat"]
    assert tokenizer.offsets(long) == [(0, 3), (4, 105), (106, 109)]
    assert tokenizer.tokenize("é" * 100 + " " + "é" * 101 + "cat") == ["[UNK]", "[UNK]"]
    with pytest.raises(ValueError, match="spacing must be"):
        tokenizer.decode(ids, spacing="none")


def test_cased_vocabulary_is_seen(tmp_path):
    WordPieceTokenizer([*SPECIAL_TOKENS, "The"]).save(tmp_path / "vocab.txt")
    assert not Tokenizer.from_pretrained(tmp_path).lowercase
    assert Tokenizer.from_pretrained(tmp_path, lowercase=True).lowercase
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert Tokenizer.from_pretrained(tmp_path).lowercase


def test_words_of_roformer():
    tokenizer = roformer()
    tokens = ["天气", "好", "the", "cat", "##s", "[MASK]", "今", "天"]
    assert tokenizer.tokenize("天气好 the cats[MASK]今天") == tokens
    assert tokenizer.offsets("天气好 今天") == [(0, 2), (2, 3), (4, 5), (5, 6)]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no tokenizer.json"),
        ("[1]", "no JSON object"),
        ('{"model": 3}', "no tokenizer.json"),
        ("[" * 100_000, "no tokenizer.json"),
        ('{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}', "no "),
        (
            '{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,'
            '"pre_tokenizer":null,"post_processor":null,"decoder":null,'
            '"model":{"type":"BPE","vocab":{"a":4000000000},"merges":[]}}',
            "ids up to 4000000000",
        ),
    ],
)
def test_hostile_tokenizer_json(text, message, tmp_path):
    pytest.importorskip("tokenizers", reason="an extra that is not installed")
    with pytest.raises(ValueError, match=message):
        HostTokenizer(text)
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


def test_bad_folders(tmp_path):
    with pytest.raises(ValueError, match="There is no folder"):
        from_pretrained(tmp_path / "missing")
    with pytest.raises(ValueError, match="holds no tokenizer"):
        from_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ValueError, match="can't be read as UTF-8 JSON"):
        from_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="UTF-8"):
        from_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match="lacks"):
        from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "vocabulary, merges, message",
    [
        ("{", "", "JSON"),
        ("[]", "", "JSON object, got a list"),
        ('{"a": "b"}', "", "'a' has the id 'b'"),
        ('{"a": 99999999999}', "", "has the id 99999999999"),
        ('{"a": 0}', "a\n", "two tokens a line"),
        ('{"a": 0}', "a b\n", "don't go together"),
        ("{}", "", "don't go together"),
    ],
)
def test_bad_byte_pairs(tmp_path, vocabulary, merges, message):
    pytest.importorskip("tokenizers", reason="an extra that is not installed")
    (tmp_path / "vocab.json").write_text(vocabulary)
    (tmp_path / "merges.txt").write_text(merges)
    with pytest.raises(ValueError, match=message):
        from_pretrained(tmp_path)


def test_missing_extras_are_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(ImportError, match=r"kerasattn\[tokenizers\]"):
        HostTokenizer("{}")
    with pytest.raises(ImportError, match=r"kerasattn\[chinese\]"):
        RoFormerTokenizer([*SPECIAL_TOKENS, "天气"]).encode("天气")
