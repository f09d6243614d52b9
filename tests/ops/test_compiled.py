import keras
import numpy as np
import pytest
from keras import ops

from kerasattn.ops.compiled import compiled


def test_python_numbers_do_not_retrace():
    scale = compiled(lambda x, by, on: ops.where(on, x * by, x))
    x = np.arange(3, dtype="float32")
    for by, on in ((2.0, True), (3.5, True), (-1.0, False)):
        expected = x * by if on else x
        np.testing.assert_allclose(ops.convert_to_numpy(scale(x, by, on)), expected)
    assert scale.traces == 1
    count = compiled(lambda x, times: x + times)
    assert [int(count(1, times)) for times in range(5)] == [1, 2, 3, 4, 5]
    assert count.traces == 1


def test_one_trace_a_shape():
    total = compiled(lambda x: ops.sum(x))
    for length in (3, 4, 3, 4, 5, 5):
        assert float(total(np.ones(length, "float32"))) == length
    assert total.traces == 3


def test_nests_in_and_out():
    swap = compiled(lambda pair, more: {"a": pair[1], "b": (pair[0], more["c"] + 1)})
    out = swap((np.float32(1), np.float32(2)), more={"c": np.float32(3)})
    assert float(out["a"]) == 2 and [float(x) for x in out["b"]] == [1, 4]


def test_variables_are_read_at_every_call():
    """What training changes between two calls is seen, without another trace."""
    weight = keras.Variable(np.ones((2,), "float32"))
    apply = compiled(lambda x: x * weight, variables=[weight])
    x = np.array([1, 2], "float32")
    np.testing.assert_array_equal(ops.convert_to_numpy(apply(x)), [1, 2])
    weight.assign([10, 100])
    np.testing.assert_array_equal(ops.convert_to_numpy(apply(x)), [10, 200])
    assert apply.traces == 1


def test_variables_may_be_found_late():
    layer = keras.layers.Dense(2)
    apply = compiled(layer, variables=lambda: layer.variables)
    layer.build((None, 3))
    x = np.ones((1, 3), "float32")
    before = ops.convert_to_numpy(apply(x))
    layer.kernel.assign(layer.kernel * 2)
    np.testing.assert_allclose(ops.convert_to_numpy(apply(x)), before * 2, rtol=1e-6)


def test_a_whole_loop_is_one_trace():
    def powers(x, n):
        return ops.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0 * n, x * 0 + 1))

    power = compiled(powers)
    assert [float(power(2.0, n)[1]) for n in (0, 3, 10)] == [1, 8, 1024]
    assert power.traces == 1


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="XLA as TensorFlow sees it")
def test_it_is_compiled_by_xla_or_not():
    import tensorflow as tf

    def lengths(texts):
        return tf.strings.length(texts)

    texts = tf.constant(["a", "bcd"])
    assert compiled(lengths, jit=False)(texts).numpy().tolist() == [1, 3]
    with pytest.raises(Exception, match=r"(?i)xla|compil"):
        compiled(lengths)(texts)
