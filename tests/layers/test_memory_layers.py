import keras
import numpy as np

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def ids(batch, length):
    return RANDOM.integers(1, 7, (batch, length, 3)).astype("int32")


def vectors(batch, length):
    return RANDOM.normal(size=(batch, length, 4)).astype("float32")


def test_bag_of_words():
    check_layer(
        layers.BagOfWords,
        {"vocabulary_size": 7, "dim": 4},
        ids,
        config_errors=[({"dim": 0}, "dim must be at least 1, got 0")],
        errors=[(np.ones((2, 3, 4), "float32"), "takes integers, got the dtype float32")],
        lengths=(1, 4),
    )


def test_position_encoding_is_that_of_the_paper():
    bag = layers.BagOfWords(7, 4, pad_id=6)
    words = np.array([[3, 5, 1, 6, 6], [2, 6, 6, 6, 6], [6] * 5])
    found, table = array(bag(words)), array(bag.embeddings)
    expected = np.zeros((3, 4))
    for row, real in enumerate((3, 1, 0)):
        for j in range(1, real + 1):
            for k in range(1, 5):
                weight = (1 - j / real) - (k / 4) * (1 - 2 * j / real)
                expected[row, k - 1] += weight * table[words[row, j - 1], k - 1]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    plain = layers.BagOfWords(7, 4, position_encoding=False)
    found = array(plain(np.array([3, 5, 0])))
    np.testing.assert_allclose(found, array(plain.embeddings)[[3, 5]].sum(0), atol=1e-6)


def test_word_scores():
    check_layer(
        layers.WordScores,
        lambda: {"words": layers.BagOfWords(7, 4)},
        lambda batch, length: RANDOM.normal(size=(batch, 4)).astype("float32"),
        errors=[(vectors(2, 3), r"hidden takes the shape \(batch, dim\)")],
        skip={"padding": "no sequence", "causal": "no sequence"},
        lengths=(1,),
    )


def test_time_ids():
    check_layer(
        layers.TimeIds,
        {"max_time": 3, "noise": 0.3},
        lambda batch, length: RANDOM.random((batch, length)) < 2,
        config_errors=[
            ({"max_time": 0}, "max_time must be at least 1"),
            ({"noise": 1.0}, r"noise in \[0, 1\)"),
        ],
        skip={
            "padding": "removing the last sentence makes others the last",
            "causal": "as padding",
            "fit": "nothing is trained",
            "precision": "ids are int32 under every policy",
        },
        lengths=(1, 4),
    )
    real = np.array([[True, True, True, False], [True, True, True, True]])
    layer = layers.TimeIds(3)
    assert array(layer(real)).tolist() == [[2, 1, 0, 0], [2, 2, 1, 0]]


def test_noise_lets_time_pass():
    layer, real = layers.TimeIds(100, noise=0.25, seed=0), np.ones((400, 21), bool)
    draws = array(layer(real, training=True))
    assert (draws[:, -1] == 0).all() and (np.diff(draws, axis=1) <= -1).all()
    # Twenty moments, and a quarter as many again in which nothing is told.
    np.testing.assert_allclose(draws[:, 0].mean(), 25, atol=0.4)
    assert (array(layer(real))[0] == np.arange(21)[::-1]).all()


def test_memory_hop():
    def inputs(batch, length):
        shapes = (batch, 5), (batch, length, 5), (batch, length, 5)
        return tuple(RANDOM.normal(size=shape).astype("float32") for shape in shapes)

    check_layer(
        layers.MemoryHop,
        {"linear": False},
        inputs,
        padding=lambda real: {"attention_mask": real},
        errors=[((vectors(2, 3), vectors(2, 3), vectors(2, 3)), "A hop takes a question")],
        skip={"causal": "it reads the whole"},
        lengths=(1, 4),
    )


def test_a_hop_reads_by_softmax_or_linearly():
    question, keys, values = RANDOM.normal(size=(2, 4)), vectors(2, 5), vectors(2, 5)
    mask = np.array([[True] * 5, [True, True, False, False, False]])
    scores = np.einsum("bd,bnd->bn", question, keys)
    weights = np.where(mask, np.exp(scores), 0)
    weights /= weights.sum(-1, keepdims=True)
    hop = layers.MemoryHop(linear=True)
    for expected in (scores * mask, weights):
        found, looks = hop(question.astype("float32"), keys, values, attention_mask=mask)
        np.testing.assert_allclose(array(looks), expected, atol=1e-5)
        reads = np.einsum("bn,bnd->bd", expected, values)
        np.testing.assert_allclose(array(found), reads, atol=1e-5)
        hop.is_linear.assign(0.0)
    empty, _ = hop(question.astype("float32"), keys, values, attention_mask=mask & False)
    assert not array(empty).any()
    whole = np.arange(10).reshape(2, 5, 1)
    found, looks = hop(question.astype("float32"), keys, whole)
    np.testing.assert_allclose(
        array(found), np.einsum("bn,bnd->bd", array(looks), whole), rtol=1e-5
    )
