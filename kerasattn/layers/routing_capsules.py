import keras
from keras import ops

from kerasattn.ops import routing


@keras.saving.register_keras_serializable(package="kerasattn")
class RoutingCapsules(keras.layers.Layer):
    """Capsules made of the capsules below, by dynamic routing.

    Each input capsule has a matrix for each output capsule, which turns it into a vote; the votes
    are routed by agreement. With `share_weights` all input capsules have the same matrices: their
    number is then open, and the layer pools a sequence of any length into `num_capsules` vectors.

    Args:
        num_capsules: int >= 1, output capsules.
        capsule_dim: int >= 1, numbers in each.
        num_routings: int >= 1, rounds of routing.
        share_weights: bool, whether all input capsules have the same matrices.
        kernel_initializer: of the matrices.

    Call arguments:
        capsules: float (batch, in, in_dim). Without `share_weights` their number must be known.
        padding_mask: bool (batch, in), True = real; padding has no vote. A Keras mask counts too.

    Shapes:
        (batch, in, in_dim) -> (batch, num_capsules, capsule_dim), with lengths in [0, 1).

    Raises:
        ValueError: for sizes below 1, inputs of another rank, or of an unknown number of capsules
            without share_weights.

    Example: a sentence's vectors become two, whatever its length.

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> pooling = layers.RoutingCapsules(2, 4, share_weights=True)
    >>> [tuple(pooling(np.ones((1, length, 8), "float32")).shape) for length in (5, 9)]
    [(1, 2, 4), (1, 2, 4)]

    Source: https://arxiv.org/abs/1710.09829, section 2.
    """

    def __init__(
        self,
        num_capsules,
        capsule_dim,
        num_routings=3,
        share_weights=False,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        sizes = dict(num_capsules=num_capsules, capsule_dim=capsule_dim, num_routings=num_routings)
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}.")
        self.num_capsules = num_capsules
        self.capsule_dim = capsule_dim
        self.num_routings = num_routings
        self.share_weights = share_weights
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                f"Capsules must be (batch, number, dim) with a known dim, got {tuple(input_shape)}."
            )
        count, dim = (1 if self.share_weights else input_shape[1]), input_shape[2]
        if count is None:
            raise ValueError(
                "The number of input capsules must be known, got "
                f"{tuple(input_shape)}. share_weights=True takes any number."
            )
        shape = (count, dim, self.num_capsules * self.capsule_dim)
        self.kernel = self.add_weight(shape, self._initial, name="kernel")

    def _initial(self, shape, dtype=None):
        """Each input capsule's matrices as a dense layer has them, whatever their number."""
        count, dim, units = shape
        flat = self.kernel_initializer((dim, count * units), dtype=dtype)
        return ops.transpose(ops.reshape(flat, (dim, count, units)), (1, 0, 2))

    def call(self, capsules, padding_mask=None, mask=None):
        if mask is not None:
            padding_mask = mask if padding_mask is None else padding_mask & mask
        batch, count = ops.shape(capsules)[:2]
        shape = (count, batch, self.num_capsules, self.capsule_dim)
        # A matrix product for each input capsule: (in, batch, out * dim).
        votes = ops.matmul(ops.transpose(capsules, (1, 0, 2)), self.kernel)
        votes = ops.transpose(ops.reshape(votes, shape), (1, 2, 0, 3))  # (batch, out, in, dim)
        return routing.dynamic_routing(votes, self.num_routings, padding_mask)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_capsules, self.capsule_dim)

    def compute_mask(self, *args, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "num_capsules": self.num_capsules,
            "capsule_dim": self.capsule_dim,
            "num_routings": self.num_routings,
            "share_weights": self.share_weights,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
