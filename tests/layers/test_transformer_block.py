"""The Transformer block against float64 numpy; cached, with memory, with a context."""

import keras
import numpy as np
import pytest
from keras import ops
from scipy import special

from kerasattn import layers
from kerasattn.ops import masks
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)


def array(x):
    return np.asarray(ops.convert_to_numpy(ops.cast(x, "float32")))


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def made(x, context=None, **options):
    """A block of 2 heads with random weights, and its weights by name."""
    block = layers.TransformerBlock(**{"num_heads": 2, "intermediate_dim": 12, **options})
    block.build(x.shape, None if context is None else context.shape)
    block.set_weights([normal(*w.shape) * 0.5 for w in block.weights])
    weights = {w.path.split("/", 1)[1]: array(w).astype("float64") for w in block.weights}
    return block, weights


class Formula:
    """The block in float64, from its weights by name."""

    def __init__(self, weights, heads=2, norm="post", rms=False, epsilon=1e-12):
        self.weights, self.heads, self.norm = weights, heads, norm
        self.rms, self.epsilon = rms, epsilon

    def dense(self, name, x):
        return x @ self.weights[f"{name}/kernel"] + self.weights.get(f"{name}/bias", 0.0)

    def normalize(self, name, x):
        if self.rms:
            x = x / np.sqrt((x**2).mean(-1, keepdims=True) + self.epsilon)
            return x * self.weights[f"{name}/scale"]
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + self.epsilon)
        return x * self.weights[f"{name}/gamma"] + self.weights[f"{name}/beta"]

    def attend(self, name, x, value, mask):
        def split(y):
            return y.reshape(*y.shape[:2], self.heads, -1).transpose(0, 2, 1, 3)

        q = split(self.dense(f"{name}/query", x))
        k, v = (split(self.dense(f"{name}/{part}", value)) for part in ("key", "value"))
        exp = np.where(mask, np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])), 0)
        mixed = exp / np.maximum(exp.sum(-1, keepdims=True), 1e-300) @ v
        mixed = mixed.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
        return self.dense(f"{name}/output", mixed)

    def feed(self, x):
        inner = self.dense("feed_forward/intermediate", x)
        inner = inner * 0.5 * special.erfc(-inner / np.sqrt(2))
        return self.dense("feed_forward/output", inner)

    def __call__(self, x, mask=True, context=None, context_mask=True, memory=None):
        def residual(x, part, name):
            if self.norm == "pre":
                return x + part(self.normalize(name, x))
            return self.normalize(name, x + part(x))

        def attend(y):
            if memory is None:
                return self.attend("self_attention", y, y, mask)
            before = memory.astype("float64")
            if self.norm == "pre":
                before = self.normalize("self_attention_norm", before)
            return self.attend("self_attention", y, np.concatenate([before, y], 1), mask)

        x = residual(x.astype("float64"), attend, "self_attention_norm")
        if context is not None:
            cross = lambda y: self.attend(
                "cross_attention", y, context.astype("float64"), context_mask
            )
            x = residual(x, cross, "cross_attention_norm")
        return residual(x, self.feed, "feed_forward_norm")


# === Numbers ===


@pytest.mark.parametrize("norm_type", ["layer", "rms"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_the_formula(norm, norm_type):
    x, context = normal(2, 4, 8), normal(2, 5, 6)
    block, weights = made(
        x, context, cross_attention=True, norm=norm, norm_type=norm_type, layer_norm_epsilon=1e-3
    )
    formula = Formula(weights, norm=norm, rms=norm_type == "rms", epsilon=1e-3)
    mask = array(masks.causal(x[..., 0])).astype(bool)
    context_mask = RANDOM.random((2, 1, 1, 5)) < 0.7
    found = block(x, attention_mask=mask, context=context, context_mask=context_mask)
    expected = formula(x, mask, context, context_mask)
    np.testing.assert_allclose(array(found), expected, atol=1e-5)


def test_the_epsilon_is_the_one_given():
    """Of rows that hardly vary, an epsilon of 1e-12 and one of 1 make very different things."""
    x = normal(1, 3, 8) * 1e-2
    for epsilon in (1e-12, 1.0):
        block, weights = made(x, norm="pre", layer_norm_epsilon=epsilon)
        np.testing.assert_allclose(
            array(block(x)), Formula(weights, norm="pre", epsilon=epsilon)(x), atol=1e-5
        )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_memory_stands_before_the_inputs(norm):
    """Hidden vectors of keys and values: as if the block had run over both, for the later ones."""
    x, memory = normal(2, 3, 8), normal(2, 2, 8)
    block, weights = made(x, norm=norm)
    mask = array(masks.causal(x[..., 0], normal(1, 5))).astype(bool)
    found = array(block(x, memory=memory, attention_mask=mask))
    np.testing.assert_allclose(
        found, Formula(weights, norm=norm)(x, mask, memory=memory), atol=1e-5
    )
    both = np.concatenate([memory, x], axis=1)
    whole = array(block(both, attention_mask=masks.causal(both[..., 0])))
    np.testing.assert_allclose(found, whole[:, 2:], atol=1e-5)


def test_memory_keeps_the_implicit_mask_of_the_inputs():
    x, memory = normal(1, 4, 8), normal(1, 1, 8)
    block, _ = made(x)
    real = np.array([[True, True, True, False]])
    found = array(block(x, memory=memory, mask=real))
    expected = array(block(x[:, :3], memory=memory))
    np.testing.assert_allclose(found[:, :3], expected, atol=1e-6)


# === One token at a time ===


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_cache_gives_what_the_whole_gives(norm):
    x, context = normal(2, 4, 8), normal(2, 3, 8)
    block, _ = made(x, context, norm=norm, cross_attention=True, rotary=layers.RotaryEmbedding())
    context_mask = np.array([[1, 1, 0], [1, 1, 1]], "bool")[:, None, None]
    whole, weights = block(
        x,
        attention_mask=masks.causal(x[..., 0]),
        context=context,
        context_mask=context_mask,
        return_weights=True,
    )
    cache = block.self_attention.empty_cache(2, 6)
    context_cache = block.cross_attention.project_key_value(context)
    for index in range(4):
        here = np.full((1, 1), index)
        step, attended, cache = block(
            x[:, index : index + 1],
            query_positions=here,
            key_positions=here,
            cache=cache,
            cache_index=index,
            context_cache=context_cache,
            context_mask=context_mask,
            return_weights=True,
        )
        np.testing.assert_allclose(array(step), array(whole)[:, index : index + 1], atol=1e-5)
        expected = np.pad(array(weights)[:, :, index : index + 1], [(0, 0)] * 3 + [(0, 2)])
        np.testing.assert_allclose(array(attended), expected, atol=1e-6)


# === Masks of Keras ===


def test_c5_a_block_of_our_layers_keeps_the_mask():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(5, 8, mask_zero=True)(ids)
    x = layers.SinusoidalPositionEncoding()(x)
    for _ in range(2):
        x = layers.TransformerBlock(num_heads=2, intermediate_dim=16)(x)
    model = keras.Model(ids, [x, keras.layers.GlobalAveragePooling1D()(x)])
    padded, padded_mean = model(np.array([[1, 2, 0]]))
    alone, alone_mean = model(np.array([[1, 2]]))
    np.testing.assert_allclose(array(padded)[:, :2], array(alone), atol=1e-6)
    np.testing.assert_allclose(array(padded_mean), array(alone_mean), atol=1e-6)


# === As a layer ===


@pytest.mark.parametrize("cross", [False, True])
def test_layer(cross):
    def inputs(batch, length):
        x = {"inputs": normal(batch, length, 8)}
        return {**x, "context": normal(batch, length, 8)} if cross else x

    def causal(batch, length):
        mask = np.tril(np.ones((batch, length, length), "bool"))
        return {"attention_mask": mask, **({"context_mask": mask} if cross else {})}

    def padding(real):
        mask = real[:, None, None, :]
        return {"attention_mask": mask, **({"context_mask": mask} if cross else {})}

    config = dict(
        num_heads=2,
        intermediate_dim=10,
        activation="gelu_tanh",
        norm="pre" if cross else "post",
        norm_type="rms" if cross else "layer",
        gated=cross,
        num_key_value_heads=1,
        cross_attention=cross,
        layer_norm_epsilon=1e-6,
        dropout=0.1,
        attention_dropout=0.2,
        seed=2,
    )
    check_layer(
        layers.TransformerBlock,
        lambda: {**config, "rotary": layers.RotaryEmbedding()},
        inputs,
        padding=padding,
        causal=causal,
        untrained={"*cross_attention/key/bias": "it moves all scores of a query alike"}
        if cross
        else None,
        errors=[
            ({"inputs": normal(1, 2, 8)}, "True was not given a context")
            if cross
            else (
                {"inputs": normal(1, 2, 8), "context": normal(1, 2, 8)},
                "False was given a context",
            ),
        ],
        config_errors=[
            ({"norm": "both"}, 'norm is "post" or "pre", got \'both\''),
            ({"norm_type": "batch"}, "norm_type is one of .*'plain_rms'.*, got 'batch'"),
        ],
        skip={}
        if cross
        else dict.fromkeys(
            ("config", "save", "precision", "jit", "saved_model"),
            "the block with every option has it",
        ),
        lengths=(1, 3, 5),
    )


def test_paths_of_the_weights():
    """Names that checkpoints are mapped to."""
    ids = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(9, 8, name="token_embedding")(ids)
    x = layers.TransformerBlock(2, 12, cross_attention=True, name="block_0")(x, context=x)
    paths = {w.path for w in keras.Model(ids, x).weights}
    parts = [
        f"{attention}/{dense}/{kind}"
        for attention in ("self_attention", "cross_attention")
        for dense in ("query", "key", "value", "output")
        for kind in ("kernel", "bias")
    ]
    parts += [
        f"feed_forward/{d}/{k}" for d in ("intermediate", "output") for k in ("kernel", "bias")
    ]
    parts += [
        f"{norm}_norm/{kind}"
        for norm in ("self_attention", "cross_attention", "feed_forward")
        for kind in ("gamma", "beta")
    ]
    assert paths == {"token_embedding/embeddings"} | {f"block_0/{part}" for part in parts}


def test_no_kernel_equals_another_at_the_start():
    """One initializer object for several kernels would make them equal."""
    unseeded = layers.TransformerBlock(2, 8)
    unseeded.build((None, None, 8))
    kernels = [array(w) for w in unseeded.weights if w.path.endswith("kernel")]
    assert len({kernel.tobytes() for kernel in kernels}) == len(kernels)
