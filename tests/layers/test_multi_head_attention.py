"""Multi-head attention against float64 numpy and Keras' own: masks, caches, other widths."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import layers
from kerasattn.ops import masks
from kerasattn.ops.compiled import compiled
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(ops.convert_to_numpy(ops.cast(x, "float32")))


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def made(query, value=None, key=None, **options):
    """An attention layer with random weights, biases too, and its weights by name."""
    layer = layers.MultiHeadAttention(**options)
    layer.build(*(x.shape for x in (query, value, key) if x is not None))
    layer.set_weights([normal(*w.shape) * 0.5 for w in layer.weights])
    names = {"/".join(w.path.split("/")[-2:]): array(w).astype("float64") for w in layer.weights}
    return layer, names


def project(x, weights, name, heads):
    y = x.astype("float64") @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]
    return y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def by_formula(weights, query, value, key, heads, groups, mask, bias=0.0):
    q = project(query, weights, "query", heads)
    k = np.repeat(project(key, weights, "key", groups), heads // groups, axis=1)
    v = np.repeat(project(value, weights, "value", groups), heads // groups, axis=1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + bias
    exp = np.where(mask, np.exp(scores), 0)
    mixed = (exp / np.maximum(exp.sum(-1, keepdims=True), 1e-300) @ v).transpose(0, 2, 1, 3)
    return mixed.reshape(*mixed.shape[:2], -1) @ weights["output/kernel"] + weights["output/bias"]


# === Numbers ===


@pytest.mark.parametrize("groups", [4, 2, 1])
def test_cross_attention_of_other_widths(groups):
    query, value, key = normal(2, 3, 10), normal(2, 5, 7), normal(2, 5, 9)
    options = dict(num_heads=4, head_dim=6, value_dim=5, output_dim=8, num_key_value_heads=groups)
    layer, weights = made(query, value, key, **options)
    mask, bias = RANDOM.random((2, 4, 3, 5)) < 0.7, normal(1, 4, 3, 5)
    found = layer(query, value, key, attention_mask=mask, bias=bias)
    expected = by_formula(weights, query, value, key, 4, groups, mask, bias)
    assert found.shape == (2, 3, 8)
    np.testing.assert_allclose(array(found), expected, atol=1e-5)


def test_equals_keras():
    """Keras' own layer, with the same weights in its shape."""
    query, value = normal(2, 4, 12), normal(2, 6, 8)
    ours, _ = made(query, value, num_heads=3)
    theirs = keras.layers.MultiHeadAttention(num_heads=3, key_dim=4)
    theirs.build(query.shape, value.shape)
    mine = {"/".join(w.path.split("/")[-2:]): array(w) for w in ours.weights}
    for weight in theirs.weights:
        name = next(n for n in ("query", "key", "value", "output") if n in weight.path)
        kind = "kernel" if "kernel" in weight.path else "bias"
        weight.assign(mine[f"{name}/{kind}"].reshape(weight.shape))
    mask = RANDOM.random((2, 4, 6)) < 0.6
    mask[:, :, 0] = True
    np.testing.assert_allclose(
        array(ours(query, value, attention_mask=mask)),
        array(theirs(query, value, attention_mask=mask)),
        atol=1e-5,
    )


def test_grouped_heads_equal_repeated_heads():
    x = normal(2, 5, 12)
    grouped, _ = made(x, num_heads=6, num_key_value_heads=2)
    full = layers.MultiHeadAttention(num_heads=6)
    full.build(x.shape)
    for ours, theirs in zip(grouped.weights, full.weights, strict=True):
        value = array(ours)
        if value.shape != theirs.shape:  # of 2 heads 2 wide, each for 3 heads of the query
            split = value.reshape(*value.shape[:-1], 2, 2)
            value = np.repeat(split, 3, axis=-2).reshape(theirs.shape)
        theirs.assign(value)
    np.testing.assert_allclose(array(grouped(x)), array(full(x)), atol=1e-5)


def test_rotary_is_of_queries_and_keys():
    """With rotary, only distances count: equal vectors at any place give the same scores."""
    x = normal(1, 6, 8)
    layer, _ = made(x, num_heads=2, rotary=layers.RotaryEmbedding())
    near = layer(x, return_scores=True)
    places = np.arange(6)[None] + 100
    far = layer(x, query_positions=places, key_positions=places, return_scores=True)
    np.testing.assert_allclose(array(near[1]), array(far[1]), atol=1e-4)
    shifted = layer(x, query_positions=places, return_scores=True)
    assert np.abs(array(near[1]) - array(shifted[1])).max() > 0.1
    plain, _ = made(x, num_heads=2)
    plain.set_weights(layer.get_weights())
    at_zero = layer(x, query_positions=np.zeros((1, 6), int), key_positions=np.zeros((1, 6), int))
    np.testing.assert_allclose(array(plain(x)), array(at_zero), atol=1e-5)


def test_scores_from_below_and_bias_add_up():
    """RealFormer: what a layer adds to its scores is what the layer below returned."""
    x = normal(2, 4, 8)
    layer, weights = made(x, num_heads=2)
    _, scores = layer(x, return_scores=True)
    bias = normal(1, 2, 4, 4)
    output, total = layer(x, previous_scores=scores, bias=bias, return_scores=True)
    np.testing.assert_allclose(array(total), 2 * array(scores) + bias, atol=1e-5)
    expected = by_formula(weights, x, x, x, 2, 2, True, array(scores) + bias)
    np.testing.assert_allclose(array(output), expected, atol=1e-5)

    alone = layers.MultiHeadAttention(num_heads=2, accumulate_scores=False)
    alone.build(x.shape)
    alone.set_weights(layer.get_weights())
    same, own = alone(x, previous_scores=scores, bias=bias, return_scores=True)
    np.testing.assert_allclose(array(own), array(scores) + bias, atol=1e-5)
    np.testing.assert_array_equal(array(same), array(output))


def test_a_bias_is_per_head():
    x = normal(1, 3, 8)
    layer, _ = made(x, num_heads=2)
    bias = np.zeros((1, 2, 3, 3), "float32")
    bias[:, 1, :, 2] = -1e9
    _, weights = layer(x, bias=bias, return_weights=True)
    assert array(weights)[0, 0, :, 2].min() > 0 and array(weights)[0, 1, :, 2].max() == 0


# === What is returned changes nothing ===


def test_results_come_in_their_order():
    x = normal(2, 4, 8)
    layer, _ = made(x, num_heads=2)
    mask = masks.causal(x[..., 0])
    alone = layer(x, attention_mask=mask)
    with_weights = layer(x, attention_mask=mask, return_weights=True)
    with_both = layer(x, attention_mask=mask, return_weights=True, return_scores=True)
    cached = layer(
        x, attention_mask=mask, cache=layer.empty_cache(2, 4), cache_index=0, return_weights=True
    )
    for results in (with_weights, with_both, cached):
        np.testing.assert_allclose(array(results[0]), array(alone), atol=1e-6)
        np.testing.assert_allclose(array(results[1]), array(with_both[1]), atol=1e-6)
    assert [len(with_weights), len(with_both), len(cached)] == [2, 3, 3]
    hidden = array(ops.where(mask, with_both[2], -np.inf)).astype("float64")
    exp = np.exp(hidden)
    np.testing.assert_allclose(array(with_both[1]), exp / exp.sum(-1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("scored", [False, True])
def test_c1_a_row_with_nothing_to_attend_to(scored):
    layer = layers.MultiHeadAttention(num_heads=1, use_bias=False)
    layer.build((1, 3, 2))
    layer.set_weights([np.eye(2)] * 4)
    x = ops.convert_to_tensor([[[1.0, 0], [0, 1], [1, 1]]])
    mask = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], "bool")
    found = layer(x, attention_mask=mask, return_weights=scored)
    if scored:
        found, weights = found
        np.testing.assert_allclose(array(weights).sum(-1), [[[1, 0, 1]]], atol=1e-6)
    expected = [[0.6698, 0.3302], [0, 0], [1, 0]]
    np.testing.assert_allclose(array(found)[0], expected, atol=1e-4)


def test_c1_its_gradient_is_finite():
    """Trained on a batch with such rows, the weights stay finite and all but them as they would."""
    layer = layers.MultiHeadAttention(num_heads=1)
    x, mask = keras.Input((3, 2)), keras.Input((3, 3), dtype="bool")
    model = keras.Model([x, mask], layer(x, attention_mask=mask))
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=True)
    inputs = [normal(2, 3, 2), np.zeros((2, 3, 3), "bool")]
    inputs[1][0, 0, :2] = True
    model.fit(inputs, normal(2, 3, 2), verbose=0)
    assert all(np.isfinite(array(w)).all() for w in model.weights)
    only_empty = [x[[1, 1]] for x in inputs]  # of the shape that is compiled
    before = [array(w) for w in model.weights]
    model.fit(only_empty, normal(2, 3, 2), verbose=0)
    changed = [
        w.path for w, old in zip(model.weights, before, strict=True) if (array(w) != old).any()
    ]
    assert [path.split("/")[-2:] for path in changed] == [["output", "bias"]]


def test_c10_the_future_is_hidden():
    """With dropout or not, scores returned or not, compiled or not."""
    x = normal(1, 4, 2)
    changed = x.copy()
    changed[:, 3] += 5
    mask = masks.causal(x[..., 0])
    for dropout in (0.0, 0.1):
        for scored in (False, True):
            layer, _ = made(x, num_heads=1, dropout=dropout, seed=3)

            def call(x, layer=layer, scored=scored):
                results = layer(x, attention_mask=mask, return_weights=scored, training=True)
                return results if scored else (results,)

            function = compiled(call) if scored and dropout else call
            outputs = []
            for inputs in (x, changed):
                layer.seed_generator.state.assign([3, 0])  # the same draws again
                outputs.append(function(inputs))
            before, after = outputs
            np.testing.assert_allclose(array(before[0])[:, :3], array(after[0])[:, :3], atol=1e-6)
            assert np.abs(array(before[0])[:, 3] - array(after[0])[:, 3]).max() > 1e-4
            if scored:
                assert (
                    array(before[1])[..., np.triu_indices(4, 1)[0], np.triu_indices(4, 1)[1]] == 0
                ).all()


# === One token at a time ===


def decoded(layer, x, mask=None, groups=None):
    """The outputs of feeding x token by token into a cache that is longer than it."""
    batch, length = x.shape[:2]
    cache = layer.empty_cache(batch, length + 2)
    steps = []
    for index in range(length):
        here = np.full((1, 1), index)
        step_mask = None
        if mask is not None:
            step_mask = np.pad(mask[:, :, index : index + 1], [(0, 0)] * 3 + [(0, 2)])
        output, cache = layer(
            x[:, index : index + 1],
            attention_mask=step_mask,
            query_positions=here,
            key_positions=here,
            cache=cache,
            cache_index=index,
        )
        steps.append(array(output))
    return np.concatenate(steps, axis=1), cache


@pytest.mark.parametrize("groups", [4, 2])
def test_a_cache_gives_what_the_whole_gives(groups):
    x = normal(2, 5, 8)
    layer, _ = made(
        x, num_heads=4, num_key_value_heads=groups, rotary=layers.RotaryEmbedding(), value_dim=3
    )
    causal = masks.causal(x[..., 0])
    steps, cache = decoded(layer, x)
    np.testing.assert_allclose(steps, array(layer(x, attention_mask=causal)), atol=1e-5)
    assert [tuple(part.shape) for part in cache] == [(2, groups, 2, 7), (2, groups, 7, 3)]
    ids = np.array([[5, 0, 6, 7, 8], [1, 2, 3, 4, 5]])
    padded = array(causal & masks.padding(ids)).astype(bool)
    steps, _ = decoded(layer, x, padded)
    np.testing.assert_allclose(steps, array(layer(x, attention_mask=padded)), atol=1e-5)


def test_several_tokens_at_once_into_a_cache():
    """The first three as one block, then one by one."""
    x = normal(1, 5, 8)
    layer, _ = made(x, num_heads=2)
    whole = array(layer(x, attention_mask=masks.causal(x[..., 0])))
    cache = layer.empty_cache(1, 5)
    mask = np.arange(5)[None] <= np.arange(3)[:, None]
    first, cache = layer(x[:, :3], attention_mask=mask, cache=cache, cache_index=0)
    second, cache = layer(x[:, 3:4], cache=cache, cache_index=3)
    third, _ = layer(x[:, 4:], cache=cache, cache_index=4)
    found = np.concatenate([array(y) for y in (first, second, third)], axis=1)
    np.testing.assert_allclose(found, whole, atol=1e-5)


def test_cross_attention_with_keys_computed_once():
    query, value = normal(2, 3, 8), normal(2, 4, 6)
    layer, _ = made(query, value, num_heads=2)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], "bool")[:, None, None]
    cache = layer.project_key_value(value)
    np.testing.assert_allclose(
        array(layer(query, cache=cache, attention_mask=mask)),
        array(layer(query, value, attention_mask=mask)),
        atol=1e-6,
    )


@pytest.mark.parametrize("position", ["none", "sinusoidal", "rotary"])
def test_c14_padding_on_the_left(position):
    """Positions that count real tokens, and a mask: the last step as without padding."""
    x = normal(1, 3, 8)
    rotary = layers.RotaryEmbedding() if position == "rotary" else None
    layer, _ = made(x, num_heads=2, rotary=rotary)
    real = np.array([[0, 0, 1, 1, 1]])
    places = np.maximum(np.cumsum(real, axis=1) - 1, 0)
    assert places.tolist() == [[0, 0, 0, 1, 2]]
    padded = np.concatenate([normal(1, 2, 8), x], axis=1)
    if position == "sinusoidal":
        encoding = layers.SinusoidalPositionEncoding()
        x = array(encoding(x))
        padded = array(encoding(padded, position_ids=places))
    mask = masks.causal(real) & masks.keys(real)
    left = layer(padded, attention_mask=mask, query_positions=places, key_positions=places)
    plain = layer(x, attention_mask=masks.causal(real[:, 2:]))
    np.testing.assert_allclose(array(left)[:, 2:], array(plain), atol=1e-5)


# === Masks of Keras ===


def test_c5_implicit_masks_hide_keys():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(5, 6, mask_zero=True)(ids)
    attention = layers.MultiHeadAttention(num_heads=2)
    steps = attention(x)
    model = keras.Model(ids, [steps, keras.layers.GlobalAveragePooling1D()(steps)])
    padded, padded_mean = model(np.array([[1, 2, 0]]))
    alone, alone_mean = model(np.array([[1, 2]]))
    np.testing.assert_allclose(array(padded)[:, :2], array(alone), atol=1e-6)
    np.testing.assert_allclose(array(padded_mean), array(alone_mean), atol=1e-6)


def test_implicit_masks_join_the_explicit_one():
    query, value = normal(1, 3, 8), normal(1, 4, 8)
    layer, _ = made(query, value, num_heads=2)
    explicit = RANDOM.random((3, 4)) < 0.7
    real = np.array([[True, True, True, False]])
    expected = layer(query, value, attention_mask=(explicit & real)[None])
    for given in (explicit, explicit[None], explicit[None, None]):
        found = layer(query, value, attention_mask=given, value_mask=real)
        np.testing.assert_allclose(array(found), array(expected), atol=1e-6)
    # A query's own mask hides no keys of a cross-attention.
    found = layer(
        query, value, attention_mask=explicit, query_mask=np.array([[True, False, False]])
    )
    np.testing.assert_allclose(
        array(found), array(layer(query, value, attention_mask=explicit)), atol=1e-6
    )


# === As a layer ===


def test_layer():
    def x(batch, length):
        return normal(batch, length, 6)

    check_layer(
        layers.MultiHeadAttention,
        lambda: dict(
            num_heads=4,
            head_dim=6,
            value_dim=3,
            output_dim=5,
            num_key_value_heads=2,
            rotary=layers.RotaryEmbedding(),
            kernel_initializer=keras.initializers.HeNormal(),
            scale=0.3,
            seed=1,
        ),
        x,
        padding=lambda real: {"attention_mask": real[:, None, None, :]},
        causal=lambda batch, length: {
            "attention_mask": np.tril(np.ones((batch, length, length), "bool"))
        },
        errors=[
            ({"argument_0": x(2, 3), "attention_mask": np.ones((2, 3))}, "takes booleans"),
            (
                {"argument_0": x(2, 3), "attention_mask": np.ones((2, 3), "bool")},
                r"got the shape \(2, 3\)",
            ),
            (
                {"argument_0": x(2, 3), "attention_mask": np.ones((3,), "bool")},
                r"got the shape \(3,\)",
            ),
        ],
        config_errors=[
            ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
            ({"num_key_value_heads": 3}, "must divide num_heads = 4, got 3"),
            ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ],
        skip=dict.fromkeys(("save", "jit", "saved_model"), "a block of it has it"),
        lengths=(1, 3, 5),
    )


def test_a_width_that_the_heads_do_not_divide():
    with pytest.raises(ValueError, match="num_heads = 3 must divide the query's width 8"):
        layers.MultiHeadAttention(num_heads=3)(normal(1, 2, 8))


# Mixed precision is tried as of every layer.
@pytest.mark.parametrize("policy", ["float16", "bfloat16"])
def test_half_precision_is_finite_and_near(policy):
    x = normal(2, 5, 8)
    reference, _ = made(x, num_heads=2, rotary=layers.RotaryEmbedding())
    half = layers.MultiHeadAttention(num_heads=2, rotary=layers.RotaryEmbedding(), dtype=policy)
    half.build(x.shape)
    half.set_weights(reference.get_weights())
    mask = array(masks.causal(x[..., 0])).astype(bool)
    mask[:, :, 2] = False
    found = array(half(x, attention_mask=mask))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, array(reference(x, attention_mask=mask)), atol=0.15)
