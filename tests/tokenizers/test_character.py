import keras
import numpy as np
import pytest

from kerasattn.tokenizers import SPECIAL_TOKENS, CharacterTokenizer

tf = pytest.importorskip("tensorflow", reason="tokenizers run in TensorFlow's graph")

TEXTS = ["我哋 去食飯", "中文文本", "Hello, world!", "💩💩💩", "  two  spaces ", "é\u0301\u3000x"]


@pytest.fixture
def tokenizer():
    return CharacterTokenizer.build(TEXTS)


def test_special_tokens_come_first(tokenizer):
    assert tuple(tokenizer.vocabulary[:5]) == SPECIAL_TOKENS
    assert [tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id] == [0, 1, 2]
    assert [tokenizer.sep_id, tokenizer.mask_id] == [3, 4]
    assert tokenizer.vocabulary_size == 5 + len(set("".join(TEXTS)))


def test_special_tokens_are_found_by_name():
    tokenizer = CharacterTokenizer(["a", "[SEP]", "[UNK]", "b", "[MASK]", "[PAD]", "[CLS]"])
    assert tokenizer.encode(["b?"], max_length=5).tolist() == [[6, 3, 2, 1, 5]]
    assert tokenizer.decode([[6, 0, 3, 1, 0]]) == ["ab"]


def test_known_characters_come_back_exactly(tokenizer):
    ids = tokenizer.encode(TEXTS)
    assert ids.dtype == np.int32
    assert ids.shape == (len(TEXTS), 2 + max(map(len, TEXTS)))
    assert tokenizer.decode(ids) == TEXTS
    assert tokenizer.encode(["中文文本"]).shape == (1, 6)  # CASES C61


def test_most_frequent_characters_are_kept():
    sentences = ["aaab", "abc"]
    assert CharacterTokenizer.build(sentences, vocabulary_size=7).vocabulary[5:] == ["a", "b"]
    assert CharacterTokenizer.build(sentences, min_count=2).vocabulary[5:] == ["a", "b"]
    with pytest.raises(ValueError, match="more than 5, got 3"):
        CharacterTokenizer.build(sentences, vocabulary_size=3)


def test_truncation_keeps_the_end_token(tokenizer):
    ids = tokenizer.encode(["中文文本", "中"], max_length=4)
    assert ids.shape == (2, 4)
    assert ids[0, -1] == tokenizer.sep_id and ids[1].tolist()[2:] == [3, 0]
    assert tokenizer.decode(ids) == ["中文", "中"]
    assert tokenizer.encode(["中"], max_length=2).tolist() == [[2, 3]]
    with pytest.raises(ValueError, match=r"at least 2.*got 1"):
        tokenizer.encode(["中"], max_length=1)


def test_unknown_and_broken_text(tokenizer):
    # CASES C61: a lone surrogate is unknown, not an exception.
    assert tokenizer.encode(["\ud800"]).tolist() == [[2, 1, 3]]
    assert tokenizer.encode(["жж"]).tolist() == [[2, 1, 1, 3]]
    assert tokenizer(tf.constant([b"\xff"])).numpy().tolist() == [[2, 1, 3]]
    assert tokenizer.encode([""]).tolist() == [[2, 3]]
    assert tokenizer.encode([""], max_length=4).tolist() == [[2, 3, 0, 0]]
    assert tokenizer.decode(tokenizer.encode(["中ж文"])) == ["中文"]
    assert tokenizer.encode(["[SEP]"]).shape == (1, 7)  # characters, no way to end a text


@pytest.mark.parametrize(
    "texts, message",
    [
        ([], "texts is empty"),
        (["a", None], "NoneType at 1"),
        ([3], "int at 0"),
        ([["a"]], "list at 0"),
        (7, "a list of strings, got 7"),
    ],
)
def test_bad_texts(tokenizer, texts, message):
    with pytest.raises(ValueError, match=message):
        tokenizer.encode(texts)


@pytest.mark.parametrize(
    "vocabulary, message",
    [
        ([], "empty"),
        ("abc", "list of tokens, got the string"),
        ([*SPECIAL_TOKENS, "a", "a"], "'a' twice, at 5 and 6"),
        (["[PAD]", "[UNK]", "[CLS]", "a"], r"lacks \[SEP\] \[MASK\]"),
        ([*SPECIAL_TOKENS, 3], "Token 5 .* must be a string, got 3"),
        ([*SPECIAL_TOKENS, "\ud800"], "Token 5"),
    ],
)
def test_bad_vocabulary(vocabulary, message):
    with pytest.raises(ValueError, match=message):
        CharacterTokenizer(vocabulary)


@pytest.mark.parametrize(
    "ids, message",
    [
        ([[2, 999]], "999 in row 0 is out of range"),
        ([[2, 3], [-1]], "-1 in row 1"),
        ([[1.7]], "integers"),
        (np.zeros((2, 5, 1), int), r"\(batch, length\), got \(2, 5, 1\)"),
    ],
)
def test_bad_ids(tokenizer, ids, message):
    with pytest.raises(ValueError, match=message):
        tokenizer.decode(ids)


def test_decode_takes_rows_of_any_kind(tokenizer):
    a, b = tokenizer.token_to_id("中"), tokenizer.token_to_id("文")
    assert tokenizer.decode([a, b]) == ["中文"]
    assert tokenizer.decode([[a], [b, a], []]) == ["中", "文中", ""]
    assert tokenizer.decode(tf.ragged.constant([[a], [b, a]])) == ["中", "文中"]
    assert tokenizer.decode(np.array([[a, 3, b]], "int64")) == ["中"]  # [SEP] ends a text
    assert tokenizer.decode(np.zeros((1, 0), int)) == [""]
    assert tokenizer.decode([]) == []


def test_vocabulary_file_is_never_stripped(tmp_path):
    # CASES C59: a line's number is the id, also after lines that strip to nothing.
    path = tmp_path / "vocab.txt"
    tokens = [*SPECIAL_TOKENS, "\u2028", "\u3000", "\r", "\x85", " ", "", "a", "b"]
    path.write_bytes("\n".join(tokens).encode())
    tokenizer = CharacterTokenizer.load(path)
    assert tokenizer.vocabulary == tokens
    assert tokenizer.encode(["a\u2028b\u3000"]).tolist() == [[2, 11, 5, 12, 6, 3]]
    tokenizer.save(path)
    assert path.read_bytes() == "".join(token + "\n" for token in tokens).encode()
    path.write_bytes("\r\n".join(tokens[:5]).encode() + b"\r\n")
    assert CharacterTokenizer.load(path).vocabulary == list(SPECIAL_TOKENS)


def test_files(tmp_path, tokenizer):
    tokenizer.save(tmp_path / "folder")
    assert CharacterTokenizer.load(tmp_path / "folder").vocabulary == tokenizer.vocabulary
    with pytest.raises(ValueError, match="no vocabulary file"):
        CharacterTokenizer.load(tmp_path / "missing.txt")
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match="empty"):
        CharacterTokenizer.load(tmp_path / "empty.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="UTF-8"):
        CharacterTokenizer.load(tmp_path / "binary.txt")


def test_config_holds_the_vocabulary(tokenizer):
    config = keras.saving.serialize_keras_object(tokenizer)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is CharacterTokenizer and again.vocabulary == tokenizer.vocabulary


def test_graph_and_host_agree(tokenizer):
    data = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3)
    data = data.map(lambda t: tokenizer(t, max_length=9))
    assert data.element_spec.shape.as_list() == [None, 9]
    ids = np.concatenate([x.numpy() for x in data])
    np.testing.assert_array_equal(ids, tokenizer.encode(TEXTS, max_length=9))
    rows = tokenizer.encode_ragged(TEXTS)
    assert [len(row) for row in rows] == [len(text) + 2 for text in TEXTS]


def test_saved_model(tmp_path, tokenizer):
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def encode(self, text):
            return tokenizer.encode_tensor(text, 12)

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def decode(self, ids):
            return tokenizer.detokenize(ids)

    tf.saved_model.save(Module(), str(tmp_path))
    module = tf.saved_model.load(str(tmp_path))
    ids = module.encode(tf.constant(TEXTS))
    np.testing.assert_array_equal(ids, tokenizer.encode(TEXTS, max_length=12))
    decoded = [text.decode() for text in module.decode(ids).numpy()]
    assert decoded == [text[:10] for text in TEXTS]
