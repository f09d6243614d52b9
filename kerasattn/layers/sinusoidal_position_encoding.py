import keras
from keras import ops

from kerasattn.ops import positions


@keras.saving.register_keras_serializable(package="kerasattn")
class SinusoidalPositionEncoding(keras.layers.Layer):
    """Adds sines and cosines of the position, side by side, to the features.

    Args:
        mode: "add" gives x + PE, "multiply" x (1 + PE), "concatenate" PE after x's features, None
            PE alone.
        encoding_dim: int >= 1 or None, the width of PE, even or odd. None: as wide as x.
        base: float > 0, about the longest wavelength over 2 pi.

    Call arguments:
        x: float tensor (batch, length, dim), of any length.
        position_ids: integer or float (batch or 1, length) or (length,), or None for consecutive
            ones.
        start_index: int or integer tensor, scalar or (batch,), the first of the consecutive ones.

    Shapes:
        (batch, length, dim) -> (batch, length, dim), or dim + encoding_dim when concatenated, or
        (batch or 1, length, encoding_dim) alone. Angles are float32 in every policy. A Keras mask
        of x is kept.

    Raises:
        ValueError: for an unknown mode, a base that is not positive, x not of rank 3, or an
            encoding_dim other than x's width when added or multiplied.

    Example:

    >>> import numpy as np
    >>> import kerasattn.layers as layers
    >>> layer = layers.SinusoidalPositionEncoding()
    >>> [round(float(v), 3) for v in layer(np.zeros((1, 1, 4)), start_index=1)[0, 0]]
    [0.841, 0.54, 0.01, 1.0]

    Source: https://arxiv.org/abs/1706.03762, section 3.5.
    """

    def __init__(self, mode="add", encoding_dim=None, base=10000.0, **kwargs):
        # Positions may be fractions, which must not be cast to half precision; x is, in `call`.
        super().__init__(autocast=False, **kwargs)
        positions.check_mode(mode)
        if not base > 0 or (encoding_dim is not None and encoding_dim < 1):
            raise ValueError(
                f"base must be positive and encoding_dim at least 1, got base={base}, "
                f"encoding_dim={encoding_dim}."
            )
        self.mode = mode
        self.encoding_dim = encoding_dim
        self.base = float(base)
        self.supports_masking = True

    def build(self, input_shape):
        if len(input_shape) != 3:
            raise ValueError(f"x must be (batch, length, dim), got shape {tuple(input_shape)}.")
        if self.mode in ("add", "multiply") and self.encoding_dim not in (None, input_shape[-1]):
            raise ValueError(
                f"mode {self.mode!r} needs an encoding as wide as x, {input_shape[-1]}, got "
                f"encoding_dim={self.encoding_dim}. Leave encoding_dim out, or concatenate."
            )

    def call(self, x, position_ids=None, start_index=0):
        x = ops.cast(x, self.compute_dtype)
        if position_ids is None:
            position_ids = positions.consecutive(x, start_index)
        width = self.encoding_dim or x.shape[-1]
        encoding = positions.sinusoidal(position_ids, width, self.base)
        return positions.merge(x, encoding, self.mode)

    def get_config(self):
        return {
            **super().get_config(),
            "mode": self.mode,
            "encoding_dim": self.encoding_dim,
            "base": self.base,
        }
