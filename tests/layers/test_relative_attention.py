"""Attention by distances, against its formula written out; memories and masks of both streams."""

import numpy as np
import pytest
from keras import ops

from kerasattn import layers
from kerasattn.ops import masks, relative
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
HEADS, WIDTH, DIM = 2, 3, 6


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


def draw(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def sinusoid(distance):
    angles = distance / 10000 ** (np.arange(0, DIM, 2) / DIM)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def by_the_formula(layer, x, memory, mask, segments, places, asking):
    """Each query at its place, key by key: Transformer-XL's equation with XLNet's segments."""
    weights = {w.path.split("/", 1)[1]: array(w.value) for w in layer.weights if "/" in w.path}
    kernel = {name: weights[f"{name}/kernel"] for name in ("query", "key", "value", "position")}
    content = np.concatenate([memory, x])
    output = []
    for place, asks in zip(places, asking, strict=True):
        mixed = []
        for head in range(HEADS):
            part = slice(head * WIDTH, (head + 1) * WIDTH)
            query = asks @ kernel["query"][:, part]
            u, v, s = (weights[f"biases/{n}"][head] for n in ("content", "position", "segment"))
            scores = []
            for key in range(len(content)):
                distance = len(memory) + place - key
                other = int(segments[len(memory) + place] != segments[key])
                score = (query + u) @ (content[key] @ kernel["key"][:, part])
                score += (query + v) @ (sinusoid(distance) @ kernel["position"][:, part])
                score += (query + s) @ weights["segments"][other, head]
                scores.append(score / WIDTH**0.5 if mask[place, key] else -np.inf)
            share = np.exp(np.array(scores) - max(scores))
            mixed.append(share / share.sum() @ (content @ kernel["value"][:, part]))
        output.append(np.concatenate(mixed) @ weights["output/kernel"])
    return np.stack(output)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_scores_are_those_of_the_formula(bidirectional):
    x, memory, targets = draw(1, 4, DIM), draw(1, 3, DIM), draw(1, 2, DIM)
    layer = layers.RelativeAttention(HEADS, with_segments=True)
    segments, places = np.array([0, 0, 0, 0, 1, 1, 0]), [3, 1]
    distances = layers.RelativeSinusoids(bidirectional)(x, memory)
    assert distances.shape == (1, 11 if bidirectional else 8, DIM)
    mask = array(masks.causal(x[..., 0], np.ones((1, 7))))[0, 0]
    mask = np.ones_like(mask) if bidirectional else mask
    target_mask = mask & (RANDOM.random(mask.shape) < 0.7) | ~mask[:, :1]
    target_mask[:, 0] = True
    found, told = layer(
        x,
        distances,
        memory=memory,
        attention_mask=mask,
        same_segment=layers.SameSegment()(segments[None, 3:], memory[:, None]),
        targets=targets,
        target_mapping=np.eye(4, dtype="float32")[None, places],
        target_mask=target_mask & mask,
    )
    settings = (layer, x[0], memory[0])
    expected = by_the_formula(*settings, mask, segments, range(4), x[0])
    np.testing.assert_allclose(array(found)[0], expected, atol=1e-5)
    expected = by_the_formula(*settings, target_mask & mask, segments, places, targets[0])
    np.testing.assert_allclose(array(told)[0], expected, atol=1e-5)


def test_half_precision_does_not_overflow():
    """Queries and distances whose product, scaled, is past float16's 65,504."""
    layer = layers.RelativeAttention(1, dtype="float16")
    x = np.ones((1, 3, 64), "float16")
    layer.build(x.shape)
    layer.value.kernel.assign(np.eye(64))
    layer.output_dense.kernel.assign(np.eye(64))
    for dense in (layer.query, layer.position):
        dense.kernel.assign(np.full((64, 64), 100 / 64))  # 64 * 100 * 100 / 8 = 80,000
    layer.key.kernel.assign(np.zeros((64, 64)))
    np.testing.assert_allclose(array(layer(x, x[:, :1].repeat(4, 1))), x, atol=1e-3)


def test_far_distances_count_as_one():
    found = array(relative.distances(2, 6, bidirectional=True, max_distance=2))
    assert found.tolist() == [2, 2, 2, 2, 2, 1, 0, -1]


def test_biases_are_shared():
    biases = layers.QueryBiases(HEADS, WIDTH)
    first, second = (layers.RelativeAttention(HEADS, biases=biases) for _ in range(2))
    x = draw(1, 4, DIM)
    distances = layers.RelativeSinusoids(True)(x)
    first(x, distances), second(x, distances)
    assert first.biases.content is second.biases.content
    twin = layers.RelativeAttention.from_config(first.get_config())
    assert isinstance(twin.shared_biases, layers.QueryBiases)


# CASES C24: the first memory is seen, and every query of a span sees as many keys.
def test_c24_what_is_seen_of_a_memory():
    mask, memories = masks.causal(np.ones((1, 2))), np.zeros((1, 3, 2, 8))
    whole = array(layers.MemoryMask()(mask, memories))[0, 0]
    assert whole.astype(int).tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    span = array(layers.MemoryMask(span=2)(mask, memories))[0, 0]
    assert span.astype(int).tolist() == [[0, 1, 1, 0], [0, 0, 1, 1]]


def test_what_is_kept_forgets_padding_first():
    memories = np.arange(3.0).reshape(1, 1, 3, 1)
    x = np.array([10.0, 11.0, 12.0]).reshape(1, 3, 1)
    for real, expected in (
        ([1, 1, 0], [1, 2, 10, 11]),
        ([0, 1, 1], [1, 2, 11, 12]),
        ([0, 0, 0], [12, 0, 1, 2]),
    ):
        kept = layers.NextMemories(4)(memories, [x], np.array([real], bool))
        assert array(kept).ravel().tolist() == expected
    whole = layers.NextMemories()(memories, [x], np.array([[1, 1, 0]], bool))
    assert array(whole).ravel().tolist() == [0, 1, 2, 10, 11, 12]
    assert layers.NextMemories(0)(memories, [x], np.ones((1, 3), bool)).shape == (1, 1, 0, 1)


@pytest.mark.slow
def test_block():
    check_layer(
        layers.RelativeTransformerBlock,
        dict(num_heads=2, intermediate_dim=8, norm="pre", activation="relu"),
        lambda batch, length: {
            "inputs": draw(batch, length, DIM),
            "distances": np.array([[sinusoid(15 - i) for i in range(16)]], "float32"),
            "memory": draw(batch, 15 - length, DIM),
        },
        config_errors=[({"norm": "both"}, "norm"), ({"num_heads": 0}, "num_heads")],
        skip=dict.fromkeys(
            ("shapes", "padding", "causal", "fit"), "distances are no batch; the models have it"
        )
        | dict.fromkeys(("save", "saved_model"), "TransformerBlock has it"),
    )
