import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class ReinforceLoss(keras.layers.Layer):
    """Adds a loss whose gradient teaches what was drawn by how well it did (REINFORCE).

    The gradient of the loss is, without bias but for the entropy's, that of minus the expected
    reward by what the draws depend on: each log-probability times how much better than a moving
    mean its reward is. A reward has no gradient here: what it depends on otherwise is for the
    model's own loss. Outside of training nothing is added, and the mean stays.

    Args:
        baseline_decay: float in [0, 1), how much of the mean a batch leaves; the first batch
            begins it.
        reward_weight: float >= 0.
        entropy_weight: float >= 0 of the draws' mean entropy, which keeps them from being sure too
            early.

    Shapes:
        rewards (batch,), what is to grow; log_probs and entropies (batch, draws), of
        `HardAttention`; and a draw_mask, bool (batch, draws), of those that count, or None -> the
        rewards.

    Raises:
        ValueError: for numbers out of their ranges.

    Example:
    >>> import numpy as np
    >>> from kerasattn import layers
    >>> layer = layers.ReinforceLoss(entropy_weight=0.0)
    >>> log_probs, entropies = np.log([[0.5], [0.25]]), np.zeros((2, 1))
    >>> _ = layer(np.array([1.0, 3.0]), log_probs, entropies, training=True)
    >>> round(float(layer.losses[0]), 4)  # -((1 - 2) log 0.5 + (3 - 2) log 0.25) / 2
    0.3466

    Source: https://arxiv.org/abs/1502.03044, equations 11 and 12 and what stands before them;
    Williams 1992, Simple statistical gradient-following algorithms.
    """

    def __init__(self, baseline_decay=0.9, reward_weight=1.0, entropy_weight=0.002, **kwargs):
        super().__init__(autocast=False, **kwargs)  # float32 goes through as it is
        if not 0 <= baseline_decay < 1:
            raise ValueError(f"baseline_decay must be in [0, 1), got {baseline_decay}.")
        for name, value in (("reward", reward_weight), ("entropy", entropy_weight)):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}_weight must be finite and not negative, got {value}.")
        self.baseline_decay, self.reward_weight = float(baseline_decay), float(reward_weight)
        self.entropy_weight = float(entropy_weight)

    def build(self, *shapes, **more_shapes):
        def variable(name):
            return self.add_weight(
                (), "zeros", dtype="float32", trainable=False, autocast=False, name=name
            )

        # Of the batches before: the sum of the means, and of their weights.
        self.mean_sum, self.mean_weight = variable("mean_sum"), variable("mean_weight")

    def call(self, rewards, log_probs, entropies, draw_mask=None, training=False):
        if not training:
            return rewards
        log_probs, entropies, gained = (
            ops.cast(x, "float32") for x in (log_probs, entropies, rewards)
        )
        counts = ops.ones_like(log_probs)
        if draw_mask is not None:
            counts = ops.cast(draw_mask, "float32")
        gained = ops.stop_gradient(gained)
        mean = ops.mean(gained)
        known = ops.convert_to_tensor(self.mean_weight)
        baseline = ops.where(known > 0, self.mean_sum / ops.where(known > 0, known, 1.0), mean)
        advantage = (gained - baseline)[:, None]  # (batch, 1)
        surrogate = -self.reward_weight * ops.sum(advantage * log_probs * counts, axis=1)
        surrogate = surrogate - self.entropy_weight * ops.sum(entropies * counts, axis=1)
        self.add_loss(ops.mean(surrogate))
        self.mean_sum.assign(self.baseline_decay * self.mean_sum + mean)
        self.mean_weight.assign(self.baseline_decay * known + 1.0)
        return rewards

    def compute_output_spec(self, rewards, log_probs, entropies, draw_mask=None, training=False):
        return keras.KerasTensor(rewards.shape, rewards.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "baseline_decay": self.baseline_decay,
            "reward_weight": self.reward_weight,
            "entropy_weight": self.entropy_weight,
        }
