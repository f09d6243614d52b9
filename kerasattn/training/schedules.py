"""Learning rates that follow the progress of training."""

import math

from kerasattn.training.callbacks import StepCallback


class WarmupCosine(StepCallback):
    """Raises the learning rate linearly, then lowers it along a cosine, to `final` of the peak.

    As a callback it may be told the number of steps after training has begun, which a schedule
    compiled into the step may not. The rate is a function of `optimizer.iterations` alone, so that
    training which was stopped and resumed goes on as if it was not.

    Args:
        peak: float > 0, the highest learning rate.
        total_steps: int >= 1, steps of the whole training; the attribute may be changed.
        warmup_steps: int >= 0, until the peak is reached.
        final: float in [0, 1], the share of the peak at the end.

    Raises:
        ValueError: if a number is out of its range.

    Example:
    >>> from kerasattn.training.schedules import WarmupCosine
    >>> schedule = WarmupCosine(peak=1.0, total_steps=100, warmup_steps=10)
    >>> [round(schedule.rate(step), 3) for step in (0, 9, 54, 99)]
    [0.1, 1.0, 0.505, 0.01]

    Source: https://arxiv.org/abs/1608.03983, equation 5.
    """

    def __init__(self, peak, total_steps, warmup_steps=0, final=0.01):
        super().__init__()
        if not (peak > 0 and total_steps >= 1 and warmup_steps >= 0 and 0 <= final <= 1):
            raise ValueError(
                "WarmupCosine needs peak > 0, total_steps >= 1, warmup_steps >= 0 and final in "
                f"[0, 1], got {peak}, {total_steps}, {warmup_steps} and {final}."
            )
        self.peak, self.total_steps, self.warmup_steps = peak, total_steps, warmup_steps
        self.final = final

    def rate(self, step):
        """The learning rate of a step, counted from 0."""
        if step < self.warmup_steps:
            return self.peak * (step + 1) / self.warmup_steps
        left = max(1, self.total_steps - self.warmup_steps)
        progress = min(1.0, (step + 1 - self.warmup_steps) / left)
        cosine = (1 + math.cos(math.pi * progress)) / 2
        return self.peak * (self.final + (1 - self.final) * cosine)

    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.learning_rate = self.rate(self.step_at(batch))


class InverseSquareRoot(StepCallback):
    """Raises the learning rate linearly, then lowers it as the root of steps: Transformer's.

    The rate of step n is factor · hidden_dim^-0.5 · min(n^-0.5, n · warmup_steps^-1.5), a function
    of `optimizer.iterations` alone.

    Args:
        hidden_dim: int >= 1, the model's width.
        warmup_steps: int >= 1, until the rate is highest.
        factor: float > 0.

    Raises:
        ValueError: if a number is out of its range.

    Example:
    >>> from kerasattn.training.schedules import InverseSquareRoot
    >>> schedule = InverseSquareRoot(hidden_dim=512)
    >>> [round(1e4 * schedule.rate(step), 2) for step in (0, 1999, 3999, 15999)]
    [0.0, 3.49, 6.99, 3.49]

    Source: https://arxiv.org/abs/1706.03762, equation 3.
    """

    def __init__(self, hidden_dim, warmup_steps=4000, factor=1.0):
        super().__init__()
        if not (hidden_dim >= 1 and warmup_steps >= 1 and factor > 0):
            raise ValueError(
                "InverseSquareRoot needs hidden_dim and warmup_steps of at least 1 and factor > 0, "
                f"got {hidden_dim}, {warmup_steps} and {factor}."
            )
        self.hidden_dim, self.warmup_steps, self.factor = hidden_dim, warmup_steps, factor

    def rate(self, step):
        """The learning rate of a step, counted from 0."""
        n = step + 1
        rising, falling = n * self.warmup_steps**-1.5, n**-0.5
        return self.factor * self.hidden_dim**-0.5 * min(rising, falling)

    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.learning_rate = self.rate(self.step_at(batch))
