"""What the tests of bert4keras' models share."""

import numpy as np
import pytest
from keras import ops

from kerasattn.compat.bert4keras import set_gelu


@pytest.fixture(autouse=True)
def _usual_gelu():
    yield
    set_gelu("erf")


@pytest.fixture
def run():
    """A function of a model and its inputs that returns its outputs, a list of arrays."""

    def call(model, *inputs):
        outputs = model(list(inputs) if len(inputs) > 1 else inputs[0], training=False)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        return [np.asarray(ops.convert_to_numpy(x)) for x in outputs]

    return call
