import keras
import numpy as np
import pytest

from kerasattn.training import MarginLoss

LENGTHS = np.array([[0.95, 0.05, 0.3], [0.2, 0.6, 0.1]])


def test_equation_of_the_paper():
    # 0.5 * (0.3 - 0.1)²; 0.5 * (0.2 - 0.1)² + (0.9 - 0.6)²
    rows = MarginLoss(reduction="none")(np.array([0, 1]), LENGTHS)
    np.testing.assert_allclose(keras.ops.convert_to_numpy(rows), [0.02, 0.095], atol=1e-6)
    loss = MarginLoss(m_plus=0.5, m_minus=0.2, downweight=1.0)
    # (0.3 - 0.2)²; nothing: 0.6 is long enough
    np.testing.assert_allclose(float(loss(np.array([0, 1]), LENGTHS)), 0.005, atol=1e-6)
    weighted = MarginLoss(reduction="sum")(np.array([0, 1]), LENGTHS, sample_weight=[1.0, 0.0])
    np.testing.assert_allclose(float(weighted), 0.02, atol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([[0, 2], [1, 1]]),  # a class twice counts once
        np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
        np.array([[True, False, True], [False, True, False]]),
        np.array([[1, 0, 1], [0, 1, 0]]),
    ],
)
def test_several_classes_at_once(labels):
    rows = MarginLoss(reduction="none")(labels, LENGTHS.astype("float16"))
    np.testing.assert_allclose(keras.ops.convert_to_numpy(rows), [0.36, 0.095], atol=1e-3)


def test_errors_and_config():
    with pytest.raises(ValueError, match="0 <= m_minus < m_plus <= 1"):
        MarginLoss(m_plus=0.1, m_minus=0.9)
    with pytest.raises(ValueError, match=r"classes as integers \(batch,\).*float32 \(2,\)"):
        MarginLoss()(np.array([0.0, 1.0], "float32"), LENGTHS)
    loss = MarginLoss(m_plus=0.8, downweight=0.2)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert (again.m_plus, again.m_minus, again.downweight) == (0.8, 0.1, 0.2)
