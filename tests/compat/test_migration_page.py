"""The page for people who come from bert4keras: its script runs as it stands."""

import json
import re
from pathlib import Path

import keras
import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "migrating_from_bert4keras.md"


def test_the_script_runs(tmp_path):
    (script,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf8"), re.DOTALL)
    characters = "甲乙丙丁戊己庚辛"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *characters]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), "utf8")
    sizes = dict(vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1)
    sizes |= dict(num_attention_heads=2, intermediate_size=32, hidden_act="gelu")
    sizes |= dict(max_position_embeddings=64, type_vocab_size=2)
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list(characters), n)) for n in random.integers(2, 9, 64)]
    data = [(text, [characters.index(c) % 3 for c in text]) for text in texts]
    names = dict(dict_path=str(tmp_path / "vocab.txt"), config_path=str(tmp_path / "config.json"))
    names |= dict(checkpoint_path=None, num_labels=3, train_data=data)
    exec(compile(script.replace("Adam(1e-5)", "Adam(0.01)"), str(PAGE), "exec"), names)
    losses = names["model"].history.history["loss"]
    assert np.isfinite(losses).all() and losses[-1] < 0.7 * losses[0]
    tags = names["NER"].recognize("甲乙丙")
    assert tags.shape == (5,) and tags[0] == tags[-1] == 0
    # Padding is -inf to the CRF, as Keras' mask says.
    ids = np.array([[2, 4, 5, 3, 0]])
    scores = names["model"].predict([ids, ids * 0], verbose=0)
    assert np.isneginf(scores[0, 4]).all()
    names["model"].save(tmp_path / "ner.keras")
    loaded = keras.models.load_model(tmp_path / "ner.keras")
    np.testing.assert_allclose(loaded([ids, ids * 0]), scores, rtol=0, atol=1e-5)
