"""Keras 2's backend functions against numpy, on tensors and on symbolic ones."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.compat.bert4keras import backend
from kerasattn.compat.bert4keras.backend import K

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
Y = np.random.default_rng(1).normal(size=(2, 4, 5)).astype("float32")
IDS = np.array([[1, 0, 2], [2, 2, 0]])
CASES = {
    "arange": (lambda: K.arange(1, 4), [1, 2, 3]),
    "arange_to": (lambda: K.arange(3, dtype="float32"), [0, 1, 2]),
    "argmax": (lambda: K.argmax(X), X.argmax(-1)),
    "argmin": (lambda: K.argmin(X, 1), X.argmin(1)),
    "batch_flatten": (lambda: K.batch_flatten(X), X.reshape(2, 12)),
    "bias_add": (lambda: K.bias_add(X, X[0, 0]), X + X[0, 0]),
    "cast": (lambda: K.cast(IDS > 0, K.floatx()), IDS > 0),
    "cast_to_floatx": (lambda: K.cast_to_floatx(IDS), IDS),
    "clip": (lambda: K.clip(X, -0.5, max_value=0.5), X.clip(-0.5, 0.5)),
    "concatenate": (lambda: K.concatenate([X, X]), np.concatenate([X, X], -1)),
    "constant": (lambda: K.constant(2, shape=(2, 3)), np.full((2, 3), 2)),
    "cumprod": (lambda: K.cumprod(X), X.cumprod(0)),
    "cumsum": (lambda: K.cumsum(IDS, axis=1), IDS.cumsum(1)),
    "cumsum_of_the_first": (lambda: K.cumsum(X), X.cumsum(0)),
    "dot": (lambda: K.dot(X, Y[0]), X @ Y[0]),
    "expand_dims": (lambda: K.expand_dims(X), X[..., None]),
    "flatten": (lambda: K.flatten(X), X.ravel()),
    "gather": (lambda: K.gather(Y[0], IDS.astype("float32")), Y[0][IDS]),
    "l2_normalize": (
        lambda: K.l2_normalize(X, -1),
        X / np.linalg.norm(X, axis=-1, keepdims=True),
    ),
    "l2_normalize_all": (lambda: K.l2_normalize(X[0]), X[0] / np.linalg.norm(X[0])),
    "mixed": (lambda: K.maximum(K.sum(K.equal(IDS, 2)), 0.5), 3),
    "not_equal": (lambda: K.not_equal(IDS, 0.0), IDS != 0),
    "permute": (lambda: K.permute_dimensions(X, (2, 0, 1)), X.transpose(2, 0, 1)),
    "pow": (lambda: K.pow(X, 2), X**2),
    "prod": (lambda: K.prod(K.shape(X)[1:]), 12),
    "relu": (
        lambda: K.relu(X, alpha=0.1, max_value=0.5),
        np.where(X > 0, X, 0.1 * X).clip(None, 0.5),
    ),
    "relu_threshold": (lambda: K.relu(X, threshold=0.5), np.where(X >= 0.5, X, 0)),
    "repeat": (lambda: K.repeat(X[0], 3), np.repeat(X[0][:, None], 3, 1)),
    "repeat_elements": (lambda: K.repeat_elements(X, 2, axis=1), np.repeat(X, 2, 1)),
    "reverse": (lambda: K.reverse(X, 1), X[:, ::-1]),
    "reshape": (lambda: K.reshape(X, (K.shape(X)[0], -1, 2)), X.reshape(2, -1, 2)),
    "switch": (lambda: K.switch(IDS > 0, X, lambda: -X), np.where((IDS > 0)[..., None], X, -X)),
    "temporal_padding": (
        lambda: K.temporal_padding(X, (1, 2)),
        np.pad(X, [(0, 0), (1, 2), (0, 0)]),
    ),
    "tile": (lambda: K.tile(X, [1, 2, 1]), np.tile(X, [1, 2, 1])),
    "zeros_like": (lambda: K.zeros_like(IDS, dtype="float32"), IDS * 0),
}


@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    make, expected = CASES[name]
    np.testing.assert_allclose(K.eval(make()), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "x, y, axes, product",
    [
        (X, Y, None, "bij,bjk->bik"),
        (X, Y, (2, 1), "bij,bjk->bik"),
        (X, X, 2, "bij,bkj->bik"),
        (X, X[:, 0], None, "bij,bj->bi"),
        (X, X, (1, -2), "bji,bjk->bik"),
    ],
)
def test_products_of_batches(x, y, axes, product):
    expected = np.einsum(product, x, y)
    np.testing.assert_allclose(K.eval(K.batch_dot(x, y, axes)), expected, rtol=1e-5)
    symbolic = K.batch_dot(*(keras.KerasTensor((None, *z.shape[1:])) for z in (x, y)), axes)
    assert K.int_shape(symbolic) == (None, *expected.shape[1:])


def test_products_of_vectors_keep_an_axis():
    expected = (X[:, 0] * X[:, 1]).sum(1, keepdims=True)
    np.testing.assert_allclose(K.eval(K.batch_dot(X[:, 0], X[:, 1], 1)), expected, rtol=1e-5)


def test_variables():
    x = K.variable([[1, 2], [3, 4]])
    assert (K.dtype(x), K.ndim(x), K.int_shape(x)) == ("float32", 2, (2, 2))
    K.set_value(x, np.ones((2, 2)))
    K.update_sub(x, 3)
    np.testing.assert_array_equal(K.eval(K.update_add(x, np.eye(2))), [[-1, -2], [-2, -1]])
    K.batch_set_value([(x, np.zeros((2, 2)))])
    assert not K.batch_get_value([x])[0].any() and not K.get_value(x).any()


def test_chance():
    assert set(np.unique(K.eval(K.random_binomial((200,), p=0.5)))) == {0, 1}
    assert np.abs(K.eval(K.truncated_normal((200,), stddev=0.5))).max() <= 1
    low = K.eval(K.random_uniform((200,), 2, 3))
    assert low.min() >= 2 and low.max() <= 3 and K.eval(K.random_normal((3,))).shape == (3,)
    dropped = K.eval(K.dropout(ops.ones((400,)), 0.5))
    assert set(np.unique(dropped)) == {0, 2}


def test_what_keras_has_no_more_says_what_to_do():
    with pytest.raises(AttributeError, match=r"no K\.gradients: use tf\.GradientTape"):
        K.gradients
    with pytest.raises(AttributeError, match="'no_such_function'"):
        K.no_such_function
    with pytest.raises(AttributeError, match="'no_such_name'"):
        backend.no_such_name
    assert backend.keras is keras and K.softmax is ops.softmax


# === bert4keras' own ===


def test_functions_of_tensors():
    gathered = backend.batch_gather(X, np.array([[2.0, 0.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(gathered, np.stack([X[0, [2, 0]], X[1, [1, 1]]]))
    assert backend.align(X[0], [1, 2], 4).shape == (1, 3, 4, 1)
    schedule = {10: 1, 20: 0.5}
    values = [float(backend.piecewise_linear(t, schedule, from_zero=False)) for t in (0, 15, 30)]
    np.testing.assert_allclose(values, [1, 0.75, 0.5])
    np.testing.assert_allclose(backend.root_mean_square(X), np.sqrt((X**2).mean()), rtol=1e-5)
    turned = K.eval(backend.sinusoidal_embeddings(np.array([0.0, 1.0]), 4))
    np.testing.assert_allclose(turned[1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)], 1e-5)
    for ours, exact in (
        (backend.gelu_erf, 0.8413447),
        (backend.gelu_tanh, 0.8411920),
        (backend.swish, 0.7310586),
    ):
        np.testing.assert_allclose(float(ours(np.float32(1))), exact, atol=1e-6)
    assert float(backend.leaky_relu(np.float32(-1))) == pytest.approx(-0.2)


def test_weights_of_attention():
    scores, mask = X[:, None], np.array([[1, 1, 1, 0], [1, 1, 0, 0]])  # (batch, 1, query, key)
    real = mask[:, None, None].astype(bool)
    masked = np.where(real, scores, -np.inf)
    count = real.sum(-1, keepdims=True)
    soft = lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    for method, expected in {
        "softmax": soft(masked),
        "squared_relu": np.maximum(masked, 0) ** 2 / count,
        "softmax_plus": soft(masked * np.log(16) / np.log(512)),
    }.items():
        found = backend.attention_normalize(scores, mask, method=method)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_masks_along_several_axes_and_biases():
    mask = np.array([[1, 1, 0], [1, 0, 0]])
    grid = np.zeros((2, 1, 3, 3), "float32")
    both = mask[:, None, :, None] & mask[:, None, None, :]
    found = backend.sequence_masking(grid, mask, "-inf", [2, 3], bias=1.0)
    np.testing.assert_array_equal(found, np.where(both, 1.0, -np.inf))
    lower = np.tril(np.ones((3, 3), bool))
    found, kept = backend.sequence_masking(grid, mask, 7, -1, bias=lower, return_mask=True)
    np.testing.assert_array_equal(
        kept, np.broadcast_to(mask[:, None, None] > 0, kept.shape) & lower
    )
    np.testing.assert_array_equal(found, np.where(kept, 0, 7))
    np.testing.assert_array_equal(backend.sequence_masking(grid, bias=2.0), grid + 2)
    np.testing.assert_array_equal(backend.sequence_masking(grid), grid)


def test_labels_of_many_classes():
    """A class for each pair of positions, as of spans: no row of them for each label."""
    random = np.random.default_rng(0)
    scores = random.normal(size=(2, 3, 400)).astype("float32")
    labels = np.stack([random.permutation(400)[:5] for _ in range(6)]).reshape(2, 3, 5)
    labels[0, 0, 3:] = 0
    is_so = np.zeros(scores.shape)
    np.put_along_axis(is_so, labels, 1, axis=-1)
    is_so[..., 0] = 0  # fills rows up
    expected = np.log1p((np.exp(scores) * (1 - is_so))[..., 1:].sum(-1))
    expected += np.log1p((np.exp(-scores) * is_so)[..., 1:].sum(-1))
    found = backend.sparse_multilabel_categorical_crossentropy(
        labels.astype("float32"), scores, mask_zero=True
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
