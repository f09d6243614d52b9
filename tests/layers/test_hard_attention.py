"""Hard attention: what every layer passes, and whether its gradients are those of the mean."""

import keras
import numpy as np
from scipy.special import softmax
from scipy.stats import chi2

from kerasattn import layers
from kerasattn.testing import check_layer

RANDOM = np.random.default_rng(0)
DRAWS = 20_000


def array(x):
    return np.asarray(keras.ops.convert_to_numpy(x))


def texts(batch, length):
    draw = lambda *shape: RANDOM.normal(size=shape).astype("float32")
    return draw(batch, 2, 3), draw(batch, length, 4)


def test_layer():
    check_layer(
        layers.HardAttention,
        {"units": 5, "gradient": "gumbel", "temperature": 0.7, "seed": 1},
        texts,
        call={"return_weights": True, "return_log_probs": True},
        padding=lambda real: {"attention_mask": real[:, None, :]},
        errors=[
            ((*texts(2, 3), None, np.ones((2, 2, 3))), "takes booleans"),
            ((np.ones((2, 3), "float32"), texts(2, 3)[1]), "query must be"),
        ],
        config_errors=[
            ({"units": 0}, "at least 1"),
            ({"gradient": "soft"}, "gradient must be one of"),
            ({"temperature": 0.0}, "above 0"),
        ],
        skip={
            "causal": "the keys are another text",
            "precision": "half precision may look elsewhere",
            "save": "as other layers of attention",
            "saved_model": "as other layers of attention",
        },
        lengths=(1, 4),
    )


def test_looks_at_one_place_and_at_none():
    layer, (query, value) = layers.HardAttention(5, seed=0), texts(2, 4)
    mask = np.array([[[True, False, True, True], [False] * 4]] * 2)
    for training in (True, False):
        mixed, weights = map(
            array, layer(query, value, attention_mask=mask, return_weights=True, training=training)
        )
        assert not mixed[:, 1].any() and not weights[:, 1].any() and not weights[..., 1].any()
        for row in range(2):
            assert (mixed[row, 0] == value[row, [0, 2, 3]]).all(axis=1).sum() == 1
    assert (mixed[:, 0] == value[range(2), weights[:, 0].argmax(axis=1)]).all()  # the likeliest


def gradients_by_draws(layer, query, value, target, gradient):
    """The gradient by the query of each of many draws (draws, dim)."""
    value = keras.ops.convert_to_tensor(np.tile(value, (DRAWS, 1, 1)).astype("float32"))
    reinforce = layers.ReinforceLoss(entropy_weight=0.0)
    reinforce.build()
    reinforce.mean_sum.assign(-1.0)  # a mean of other batches, not of this one
    reinforce.mean_weight.assign(1.0)

    def total(queries):
        mixed, log_probs, entropies = layer(queries, value, return_log_probs=True, training=True)
        rewards = -loss_of(mixed[:, 0], target, keras.ops)
        loss = -keras.ops.sum(rewards)
        if gradient == "reinforce":
            reinforce(rewards, log_probs, entropies, training=True)
            loss = loss + reinforce.losses[-1] * DRAWS  # its loss is a mean
        return loss

    queries = np.tile(query, (DRAWS, 1, 1)).astype("float32")
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.grad(total)(queries))[:, 0]
    import tensorflow as tf

    queries = tf.constant(queries)
    with tf.GradientTape() as tape:
        tape.watch(queries)
        loss = total(queries)
    return np.asarray(tape.gradient(loss, queries))[:, 0]


def loss_of(mixed, target, ops):
    """A loss that is not linear, so that the mean of the losses is not that of the mean."""
    return ops.sum(ops.square(ops.tanh(mixed) - target), axis=-1)


def enumerated(layer, query, value, target):
    """The gradient of the mean loss over all positions, from differences in float64."""
    weights = layer.query_dense.kernel, layer.query_dense.bias, layer.key_dense.kernel, layer.vector
    kernel, bias, keys, vector = (array(w).astype("float64") for w in weights)
    losses = loss_of(value[0], target, np)

    def mean_loss(q):
        return softmax((np.tanh(q @ kernel + bias + value[0] @ keys) @ vector)[:, 0]) @ losses

    steps = np.eye(query.shape[-1]) * 1e-5
    return np.array(
        [(mean_loss(query[0, 0] + s) - mean_loss(query[0, 0] - s)) / 2e-5 for s in steps]
    )


def test_reinforce_is_without_bias_and_gumbel_is_not():
    query, value = RANDOM.normal(size=(1, 1, 3)), RANDOM.normal(size=(1, 5, 2)) * 2
    target, statistic = RANDOM.normal(size=2), {}
    shapes = [(4, 1), (3, 4), (4,), (2, 4)]  # of the vector, of the query's layer, of the key's
    drawn_weights = [RANDOM.normal(size=shape) for shape in shapes]
    for gradient in ("reinforce", "gumbel"):
        layer = layers.HardAttention(4, gradient, seed=2)
        layer.build(query.shape, value.shape)
        for weight, values in zip(layer.trainable_weights, drawn_weights):
            weight.assign(values)
        found = gradients_by_draws(layer, query, value, target, gradient)
        off = found.mean(axis=0) - enumerated(layer, query, value, target)
        covariance = np.cov(found.T) / DRAWS
        statistic[gradient] = off @ np.linalg.solve(covariance, off)
    limit = chi2.ppf(1 - 1e-3, df=3)
    assert statistic["reinforce"] < limit < statistic["gumbel"] / 10
