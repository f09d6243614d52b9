"""Every tokenizer against what other programs made of the same texts (../shared/golden)."""

import json

import pytest

from kerasattn.tokenizers import Tokenizer

pytest.importorskip("tensorflow", reason="tokenizers run in TensorFlow's graph")

FOLDERS = {
    "wordpiece_uncased": None,
    "wordpiece_cased": None,
    "roformer_jieba": "jieba",
    "spm_t5": None,
    "bpe_gpt2": "tokenizers",
    "bpe_roberta": "tokenizers",
    "bpe_openai_gpt": "tokenizers",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_published_tokenizer(golden, name):
    if FOLDERS[name]:
        pytest.importorskip(FOLDERS[name], reason="an extra that is not installed")
    folder = golden("tokenizers") / name
    files = sorted(folder.glob("golden_*.json"))
    assert files
    for file in files:
        data = json.loads(file.read_text(encoding="utf-8"))
        options = {k: v for k, v in data["init_kwargs"].items() if k == "extra_ids"}
        tokenizer = Tokenizer.from_pretrained(folder, **options)
        assert tokenizer.vocabulary_size == data["vocab_size_len"]
        for role, (token, token_id) in data["special"].items():
            assert tokenizer.vocabulary[token_id] == token
            ours = getattr(tokenizer, role.removesuffix("token") + "id")
            assert ours in (None, token_id)
        check_singles(tokenizer, [item for item in data["items"] if item["pair"] is None])
        check_pairs(tokenizer, [item for item in data["items"] if item["pair"] is not None])


def check_singles(tokenizer, items):
    texts = [item["text"] for item in items]
    rows = tokenizer.encode_ragged(texts)
    plain = tokenizer.rows(texts)
    tokens = tokenizer.tokenize(texts, special_tokens=True)
    offsets = tokenizer.offsets(texts, special_tokens=True)
    options = dict(whole=True, spacing="hugging_face")
    decoded = tokenizer.decode(rows, skip_special_tokens=False, **options)
    skipped = tokenizer.decode(rows, **options)
    same = 0
    for i, item in enumerate(items):
        ids = rows[i].tolist()
        assert ids in (item["accept"] or [item["ids"]]), item["text"]
        if ids != item["ids"]:
            assert not item["agree"] and len(offsets[i]) == len(ids)
            continue
        same += 1
        assert plain[i].tolist() == item["ids_no_special"], item["text"]
        assert tokens[i] == item["tokens"], item["text"]
        assert [list(span) for span in offsets[i]] == item["offsets"], item["text"]
        assert decoded[i] == item["decoded"]
        assert skipped[i] == item["decoded_skip_special"]
    assert same >= 0.9 * len(items)


def check_pairs(tokenizer, items):
    for item in items:
        texts = item["text"], item["pair"]
        inputs = tokenizer.encode_pair(*texts)
        ids = inputs["token_ids"][0].tolist()
        assert ids in (item["accept"] or [item["ids"]]), texts
        if item["agree"]:
            assert inputs["segment_ids"][0].tolist() == item["type_ids"]
            assert tokenizer.tokenize(*texts, special_tokens=True) == item["tokens"]
            spans = tokenizer.offsets(*texts, special_tokens=True)
            assert [list(span) for span in spans] == item["offsets"], texts
