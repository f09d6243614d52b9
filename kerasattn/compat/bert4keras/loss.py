import keras
from keras import ops


class Loss(keras.layers.Layer):
    """A layer that adds a loss to the model, computed from whatever goes through it.

    Subclass it and write `compute_loss(inputs, mask=None)`. A model that has it is compiled without
    a loss: `model.compile(optimizer="adam")`. All numbers come as float32, so that segment ids can
    weight a loss as they are; `mask` of a list of inputs is a list, None where there is none.

    Args:
        output_axis: which of the inputs are returned: an int, a list of them, or None for all.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from kerasattn.compat.bert4keras import Loss
    >>> class Squared(Loss):
    ...     def compute_loss(self, inputs, mask=None):
    ...         y_true, y_pred = inputs
    ...         return keras.ops.mean((y_true - y_pred) ** 2)
    >>> x, y = keras.Input((2,)), keras.Input((1,))
    >>> model = keras.Model([x, y], Squared(output_axis=1)([y, keras.layers.Dense(1)(x)]))
    >>> model.compile("adam")
    >>> history = model.fit([np.ones((4, 2)), np.ones((4, 1))], verbose=0)
    """

    def __init__(self, output_axis=None, **kwargs):
        super().__init__(autocast=False, **kwargs)  # losses stay float32
        self.output_axis = output_axis
        self.supports_masking = True

    def call(self, inputs, mask=None):
        if mask is None and isinstance(inputs, list | tuple):
            mask = [None] * len(inputs)
        self.add_loss(self.compute_loss(keras.tree.map_structure(_float, inputs), mask))
        return self._chosen(inputs)

    def compute_loss(self, inputs, mask=None):
        """The loss, a scalar; yours to write."""
        raise NotImplementedError("A subclass of Loss writes compute_loss(inputs, mask=None).")

    def compute_output_spec(self, inputs, mask=None):
        new = lambda x: keras.KerasTensor(x.shape, x.dtype)
        return keras.tree.map_structure(new, self._chosen(inputs))

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else self._chosen(mask)

    def _chosen(self, things):
        if self.output_axis is None:
            return things
        if isinstance(self.output_axis, list | tuple):
            return [things[i] for i in self.output_axis]
        return things[self.output_axis]

    def get_config(self):
        return {**super().get_config(), "output_axis": self.output_axis}


def _float(x):
    is_mask = keras.backend.standardize_dtype(x.dtype) == "bool"
    return x if is_mask else ops.cast(x, "float32")
