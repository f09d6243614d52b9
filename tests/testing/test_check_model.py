"""`check_model` passes a good model and fails each broken one, for the reason that is broken."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.models.base import BaseModel
from kerasattn.testing import check_model
from kerasattn.testing.check_model import CHECKS

registered = keras.saving.register_keras_serializable(package="kerasattn_tests")
CONFIG = dict(vocabulary_size=11, hidden_dim=4)


def only(name):
    """Switches off every check but one."""
    return {check: f"only {name} is on trial" for check in CHECKS if check != name}


@registered
class RunningSum(BaseModel):
    """A good language model: each position sees the sum of the real tokens up to it."""

    def __init__(self, vocabulary_size, hidden_dim, dtype=None, name="running_sum", **kwargs):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embedding = keras.layers.Embedding(vocabulary_size, hidden_dim, dtype=policy, name="table")
        head = keras.layers.Dense(vocabulary_size, dtype=policy, name="head")
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        mask = keras.Input((None,), dtype="bool", name="padding_mask", optional=True)
        x = self.mix(embedding(token_ids), token_ids, mask)  # (batch, length, hidden)
        inputs = {"token_ids": token_ids, "padding_mask": mask}
        super().__init__(inputs, {"hidden": x, "lm_logits": head(x)}, name=name, **kwargs)
        self._config = dict(
            vocabulary_size=vocabulary_size, hidden_dim=hidden_dim, dtype=policy.name, name=name
        )
        self._id_ranges = {"token_ids": vocabulary_size}

    def mix(self, x, token_ids, mask):
        return RealSum(dtype=x.dtype)(x, token_ids, mask)


@registered
class RealSum(keras.layers.Layer):
    def call(self, x, token_ids, mask=None):
        real = ops.not_equal(token_ids, 0) if mask is None else mask
        return ops.cumsum(x * ops.cast(real, x.dtype)[..., None], axis=1)

    def compute_output_spec(self, x, token_ids, mask=None):
        return keras.KerasTensor(x.shape, x.dtype)


def cross_entropy():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


TRAINING = dict(
    targets=lambda batch, length: {
        "hidden": np.zeros((batch, length, 4)),
        "lm_logits": np.ones((batch, length), "int32"),
    },
    compile_options=dict(loss={"hidden": "mse", "lm_logits": cross_entropy()}),
)


def last_logits(model, inputs):
    """The logits of the last position, from all tokens at once and from one at a time."""
    ids = inputs["token_ids"]
    table, head = model.get_layer("table"), model.get_layer("head")
    state = 0.0
    for i in range(ids.shape[1]):
        state = state + table(ids[:, i])
    return head(state), model(inputs)["lm_logits"][:, -1]


def wrong_logits(model, inputs):
    cached, uncached = last_logits(model, inputs)
    return cached + 1, uncached


def test_a_good_model_passes_everything():
    check_model(
        RunningSum,
        CONFIG,
        causal=["hidden", "lm_logits"],
        decoding=last_logits,
        config_errors=[({"vocabulary_size": -3}, "-3")],
        **TRAINING,
    )


@registered
class LeaksPadding(RunningSum):
    def mix(self, x, token_ids, mask):
        return ops.cumsum(x, axis=1) + ops.mean(x, axis=1, keepdims=True)


@registered
class IgnoresThePaddingMask(RunningSum):
    def mix(self, x, token_ids, mask):
        x = super().mix(x, token_ids, None)
        return x - x[:, -1:]


@registered
class SeesTheFuture(RunningSum):
    def mix(self, x, token_ids, mask):
        total = ops.max(super().mix(x, token_ids, mask), axis=1, keepdims=True)
        return ops.maximum(super().mix(x, token_ids, mask), total)


@registered
class SeesNothing(RunningSum):
    def mix(self, x, token_ids, mask):
        return ops.zeros_like(super().mix(x, token_ids, mask))


@registered
class ForgetsItsPolicy(RunningSum):
    def get_config(self):
        return {**super().get_config(), "dtype": None}


@registered
class AlwaysFloat32(RunningSum):
    def __init__(self, vocabulary_size, hidden_dim, dtype=None, **kwargs):
        super().__init__(vocabulary_size, hidden_dim, dtype="float32", **kwargs)


@registered
class TakesAnything(RunningSum):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._id_ranges = {}


@registered
class HasAnIdleWeight(RunningSum):
    def mix(self, x, token_ids, mask):
        idle = keras.layers.Dense(4, dtype=x.dtype, name="idle")
        return super().mix(x, token_ids, mask) + ops.stop_gradient(idle(x))


@registered
class LeavesALayerToTheGlobalPolicy(RunningSum):
    def mix(self, x, token_ids, mask):
        return keras.layers.Activation("linear")(super().mix(x, token_ids, mask))


@registered
class DrawsTheSameTwice(RunningSum):
    def __init__(self, vocabulary_size, hidden_dim, seed=1, **kwargs):
        self.seed = seed
        super().__init__(vocabulary_size, hidden_dim, **kwargs)
        self._config = {**self._config, "seed": seed}

    def mix(self, x, token_ids, mask):
        for _ in range(2):
            x = keras.layers.Dropout(0.5, seed=self.seed, dtype=x.dtype)(x)
        return super().mix(x, token_ids, mask)


@pytest.mark.parametrize(
    "check, model, options, message",
    [
        ("config", LeavesALayerToTheGlobalPolicy, {}, "under a global policy"),
        ("config", DrawsTheSameTwice, {}, "draw the same noise"),
        ("padding", LeaksPadding, {}, "padding removed"),
        ("padding", IgnoresThePaddingMask, {}, "under padding_mask"),
        ("causal", SeesTheFuture, dict(causal=["lm_logits"]), "future from 1 on"),
        ("causal", SeesNothing, dict(causal=["lm_logits"]), "does not depend"),
        ("causal", RunningSum, {}, "name the outputs"),
        ("config", ForgetsItsPolicy, {}, "comes back as float32"),
        ("config", AlwaysFloat32, {}, "reaches no layer"),
        ("errors", TakesAnything, {}, "token_ids"),
        ("fit", HasAnIdleWeight, TRAINING, "does not change .*idle/bias"),
        ("decoding", RunningSum, {}, "give `decoding`"),
        (
            "decoding",
            RunningSum,
            dict(decoding=wrong_logits),
            "cached decoding",
        ),
    ],
)
def test_a_broken_model_fails(check, model, options, message):
    with pytest.raises(AssertionError, match=message):
        check_model(model, CONFIG, skip=only(check), **options)


def test_a_model_without_vocabulary_needs_inputs():
    with pytest.raises(ValueError, match="give `inputs`"):
        check_model(RunningSum, {"hidden_dim": 4})
