import itertools

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="kerasattn")
class PiecewiseLinear(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate times a factor that goes in straight lines from point to point.

    Args:
        learning_rate: float, or a `LearningRateSchedule`.
        points: dict from steps to factors. Before the first point the factor rises from 0 at step
            0; after the last it stays.

    Raises:
        ValueError: without points, or for a step below 0.

    Example: warm up within 100 steps, then fall to a tenth.

    >>> from kerasattn.training import PiecewiseLinear
    >>> schedule = PiecewiseLinear(0.2, {100: 1.0, 200: 0.1})
    >>> [round(float(schedule(step)), 6) for step in (0, 50, 100, 150, 1000)]
    [0.0, 0.1, 0.2, 0.11, 0.02]
    """

    def __init__(self, learning_rate, points):
        points = {int(step): float(factor) for step, factor in dict(points).items()}
        if not points or min(points) < 0:
            raise ValueError(f"points must be steps from 0 on and their factors, got {points}.")
        self.learning_rate = learning_rate
        self.points = dict(sorted(points.items()))

    def __call__(self, step):
        rate = self.learning_rate
        rate = rate(step) if callable(rate) else rate
        step = ops.cast(step, "float32")
        points = [(0, 0.0)] if 0 not in self.points else []
        points += self.points.items()
        factor = points[0][1]
        for (start, low), (end, high) in itertools.pairwise(points):
            line = low + (high - low) * (step - start) / (end - start)
            factor = ops.where(step >= start, line, factor)
        factor = ops.where(step >= points[-1][0], points[-1][1], factor)
        return rate * factor

    def get_config(self):
        rate = self.learning_rate
        return {
            "learning_rate": keras.saving.serialize_keras_object(rate) if callable(rate) else rate,
            # JSON has no whole numbers as keys.
            "points": {str(step): factor for step, factor in self.points.items()},
        }

    @classmethod
    def from_config(cls, config):
        rate = config["learning_rate"]
        rate = keras.saving.deserialize_keras_object(rate) if isinstance(rate, dict) else rate
        return cls(rate, config["points"])
