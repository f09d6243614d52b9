import keras
import numpy as np
import pytest

from kerasattn.models import MemoryNetwork
from kerasattn.testing import check_model

RANDOM = np.random.default_rng(0)
TINY = dict(vocabulary_size=9, hidden_dim=4, num_hops=2, max_sentences=4, initializer_stddev=0.5)


def stories(batch, length):
    story_ids = RANDOM.integers(1, 9, (batch, length, 3)).astype("int32")
    return {
        "story_ids": story_ids,
        "question_ids": RANDOM.integers(1, 9, (batch, 2)).astype("int32"),
    }


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


@pytest.mark.parametrize("tying", ["adjacent", "layerwise"])
def test_model(tying):
    again = dict.fromkeys(["save", "precision", "jit"], "as adjacent")
    check_model(
        MemoryNetwork,
        {**TINY, "tying": tying, "seed": 0},
        stories,
        pad_values={"story_ids": 0},
        targets=lambda batch, length: RANDOM.integers(1, 9, batch),
        errors=[({"story_ids": np.ones((1, 2, 3), "int32")}, "question_ids")],
        config_errors=[
            ({"num_hops": 0}, "num_hops must be an int of at least 1"),
            ({"tying": "none"}, "tying must be one of"),
            ({"temporal_noise": 1.0}, r"temporal_noise must be in \[0, 1\)"),
        ],
        skip={
            "causal": "it reads the whole",
            "decoding": "it writes nothing",
            "saved_model": "the layers' own tests have it",
            **(again if tying == "layerwise" else {}),
        },
        lengths=(1, 4),
    )


@pytest.mark.parametrize("tying", ["adjacent", "layerwise"])
def test_hops_are_those_of_the_paper(tying):
    """Three hops in numpy, without positions, so that a sentence is the sum of its words."""
    model = MemoryNetwork(**{**TINY, "num_hops": 3}, tying=tying, position_encoding=False)
    x = stories(2, 3)
    outputs = {name: array(value) for name, value in model(x).items()}
    bag = lambda name, ids: array(model.get_layer(name).embeddings)[ids].sum(-2)
    ago = lambda k: array(model.get_layer(f"times_{k}").embeddings)[[2, 1, 0]]
    memory = lambda k: bag(f"words_{k}", x["story_ids"]) + ago(k)
    state = bag("words_0" if tying == "adjacent" else "asked", x["question_ids"])
    for hop in range(3):
        first = hop if tying == "adjacent" else 0
        scores = np.exp(np.einsum("bd,bnd->bn", state, memory(first)))
        weights = scores / scores.sum(-1, keepdims=True)
        np.testing.assert_allclose(outputs["attention_weights"][:, hop], weights, atol=1e-5)
        if tying == "layerwise":
            state = state @ array(model.get_layer("between").kernel)
        state = state + np.einsum("bn,bnd->bd", weights, memory(first + 1))
    np.testing.assert_allclose(outputs["hidden"], state, atol=1e-5)
    words = model.get_layer("answer_logits").words
    assert (words is model.get_layer("words_3")) if tying == "adjacent" else words.name == "told_by"
    logits = state @ array(words.embeddings).T
    np.testing.assert_allclose(outputs["answer_logits"], logits, atol=1e-5)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    y = np.array([3, -100])  # the second counts for nothing
    found = float(model.compute_loss(x, y, model(x)))
    np.testing.assert_allclose(found, -log_probs[0, 3], rtol=1e-5)
    with pytest.raises(ValueError, match="all their axes but the last"):
        model.compute_loss(x, y[:, None], model(x))


def test_linear_is_seen_by_a_compiled_training():
    model = MemoryNetwork(**TINY, linear=True, seed=0)
    model.compile(keras.optimizers.SGD(0.0), jit_compile=False)
    x, y = stories(4, 3), RANDOM.integers(1, 9, 4)
    sums = []
    for linear in (True, False):
        model.set_linear(linear)
        model.train_on_batch(x, y)
        sums.append(array(model(x)["attention_weights"]).sum(-1))
    assert np.abs(sums[0] - 1).max() > 0.01
    np.testing.assert_allclose(sums[1], 1, atol=1e-5)


@pytest.mark.trains
def test_learns_where_somebody_went_last():
    """Stories in ids: "person went room"; the question is a person, the answer the last room."""
    people, rooms = np.arange(1, 4), np.arange(4, 8)
    who, where = RANDOM.choice(people, (2000, 4)), RANDOM.choice(rooms, (2000, 4))
    went = np.stack([who, np.full_like(who, 8), where], axis=-1)
    asked = who[np.arange(2000), RANDOM.integers(4, size=2000)]
    last = 3 - np.argmax(who[:, ::-1] == asked[:, None], axis=1)
    answers = where[np.arange(2000), last]
    x = {"story_ids": went.astype("int32"), "question_ids": asked[:, None].astype("int32")}
    model = MemoryNetwork(9, hidden_dim=16, num_hops=1, max_sentences=6, seed=0)
    model.compile(keras.optimizers.Adam(0.02), jit_compile=False)
    history = model.fit(x, answers, batch_size=50, epochs=8, verbose=0).history
    assert history["accuracy"][-1] > 0.85 > 0.6 > history["accuracy"][0]
