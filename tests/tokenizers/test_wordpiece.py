import json

import keras
import numpy as np
import pytest

from kerasattn.compat.bert4keras.tokenizers import load_vocab
from kerasattn.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer

tf = pytest.importorskip("tensorflow", reason="tokenizers run in TensorFlow's graph")

ENGLISH = [
    "how are you doing today?",
    "don't you think it's great, too?",
    "what (if anything) costs $2.50 at 10:30?",
    'did she say "hello there" or not?',
    "is it 1,000 or 2,000? what about well-known and/or me@home?",
    "they're sure i'd go; we've done it before!",
]
CHINESE = ["今日天氣好好，去唔去食飯？", "我在google工作。"]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer.build([*ENGLISH, *CHINESE], vocabulary_size=300, min_count=1)


@pytest.mark.parametrize("name", ["wordpiece_cased", "wordpiece_uncased"])
def test_published_ids(golden, name):
    folder = golden("tokenizers") / name
    tokenizer = WordPieceTokenizer.load(folder, lowercase=name.endswith("uncased"))
    items = json.loads((folder / "golden_easy.json").read_text(encoding="utf-8"))["items"]
    assert len(items) == 44
    first = tokenizer.encode_ragged([item["text"] for item in items])
    second = tokenizer.encode_ragged([item["pair"] or "" for item in items])
    for item, ids, pair in zip(items, first, second):
        ids = ids.tolist()
        if item["pair"] is not None:  # [CLS] text [SEP] pair [SEP]
            ids += pair.tolist()[1:]
        assert ids in (item.get("accept") or [item["ids"]]), item["text"]
        assert [tokenizer.vocabulary[i] for i in item["ids"]] == item["tokens"]


def test_decode_gives_the_text_back(tokenizer):
    assert tokenizer.unk_id not in tokenizer.encode(ENGLISH)
    assert tokenizer.decode(tokenizer.encode(ENGLISH)) == ENGLISH
    assert tokenizer.decode(tokenizer.encode(CHINESE)) == CHINESE
    assert tokenizer.normalize(["  How  ARE\tyou, café? "]) == ["how are you, cafe?"]


def test_decode_real_questions():
    from kerasattn.data import chitchat_questions

    questions = list(dict.fromkeys(chitchat_questions()))[:2000]
    tokenizer = WordPieceTokenizer.build(questions, vocabulary_size=1500, min_count=1)
    assert tokenizer.vocabulary_size <= 1500
    decoded = tokenizer.decode(tokenizer.encode_ragged(questions))
    same = np.mean([a == b for a, b in zip(decoded, tokenizer.normalize(questions))])
    assert same > 0.95  # "you ?" and "hm...ok" can't come back as they were


def test_build(tokenizer):
    assert tuple(tokenizer.vocabulary[:5]) == SPECIAL_TOKENS
    assert not any(token.startswith("##今") for token in tokenizer.vocabulary)
    cased = WordPieceTokenizer.build(["Hello Hello"], 50, min_count=1, lowercase=False)
    assert "Hello" in cased.vocabulary
    chinese = WordPieceTokenizer.build(["中文", "文中"], 50)
    assert sorted(chinese.vocabulary[5:]) == ["中", "文"]
    with pytest.raises(ValueError, match="more than 5, got 2"):
        WordPieceTokenizer.build(["a"], 2)


def test_chinese_emoji_and_broken_text(tokenizer):
    # CASES C61
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *"中文本💩", "the", "##re"])
    assert tokenizer.encode(["中文文本"]).tolist() == [[2, 5, 6, 6, 7, 3]]
    assert tokenizer.decode(tokenizer.encode(["中文文本"])) == ["中文文本"]
    assert tokenizer.encode(["💩"]).tolist() == [[2, 8, 3]]
    assert tokenizer.encode(["\ud800 the"]).shape == (1, 3)  # dropped, as BERT drops U+FFFD
    assert tokenizer.encode(["e" * 10_000 + " there"]).tolist() == [[2, 1, 9, 10, 3]]
    assert tokenizer.encode(["the" + "re" * 48, "the" + "re" * 49]).tolist()[1][:3] == [2, 1, 3]
    assert tokenizer.encode(["", "the\u200b\x00 \u3000the"]).tolist() == [
        [2, 3, 0, 0],
        [2, 9, 9, 3],
    ]


def test_special_tokens_in_a_text(tokenizer):
    ids = tokenizer.encode(["[MASK]are[SEP]"]).tolist()[0]
    assert ids[1] == tokenizer.mask_id and ids[-2:] == [tokenizer.sep_id] * 2
    with pytest.warns(DeprecationWarning, match="allow_special"):
        strict = WordPieceTokenizer(tokenizer.vocabulary, parse_special_tokens=False)
    assert not set(strict.encode(["[MASK]are[SEP] \ue003"])[0][1:-1]) & {2, 3, 4, 0}


def test_unusual_vocabulary():
    tokens = ["", "\ue003", "##", "\u3000", "[unused1]", *SPECIAL_TOKENS, "a", "##b"]
    tokenizer = WordPieceTokenizer(tokens)
    assert tokenizer.encode(["ab a"]).tolist() == [[7, 10, 11, 10, 8]]


def test_a_lines_number_is_the_id(tmp_path):
    # CASES C59
    lines = ["[PAD]", "\u2028", "\u3000", "a", "b", *SPECIAL_TOKENS[1:]]
    (tmp_path / "vocab.txt").write_bytes("\n".join([*lines, ""]).encode())
    tokenizer = WordPieceTokenizer.from_pretrained(tmp_path)
    assert tokenizer.vocabulary == lines
    assert tokenizer.encode(["a b"])[0, 1:-1].tolist() == [3, 4]
    assert load_vocab(tmp_path / "vocab.txt")["b"] == 4


def test_files_and_config(tmp_path, tokenizer):
    cased = WordPieceTokenizer(tokenizer.vocabulary, lowercase=False, allow_special=False)
    cased.save(tmp_path)
    assert WordPieceTokenizer.load(tmp_path).get_config() == cased.get_config()
    assert WordPieceTokenizer.load(tmp_path, lowercase=True).lowercase
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false, "x": 1}')
    assert not WordPieceTokenizer.load(tmp_path).lowercase
    config = keras.saving.serialize_keras_object(cased)
    again = keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
    assert again.get_config() == cased.get_config()


def test_in_a_pipeline_and_in_a_saved_model(tmp_path, tokenizer):
    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def encode(self, text):
            # A fresh one, whose constants are first made inside of the graph.
            return WordPieceTokenizer(tokenizer.vocabulary).encode_tensor(text, 40)

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
        def decode(self, ids):
            return tokenizer.detokenize(ids)

    module = Module()
    expected = tokenizer.encode(ENGLISH, max_length=40)
    data = tf.data.Dataset.from_tensor_slices(ENGLISH).batch(2).map(module.encode)
    np.testing.assert_array_equal(np.concatenate(list(data.as_numpy_iterator())), expected)
    tf.saved_model.save(module, str(tmp_path))
    module = tf.saved_model.load(str(tmp_path))
    ids = module.encode(tf.constant(ENGLISH))
    np.testing.assert_array_equal(ids, expected)
    assert [text.decode() for text in module.decode(ids).numpy()] == ENGLISH
